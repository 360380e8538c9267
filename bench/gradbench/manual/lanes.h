// Four numbers in one register. Where sums over an inner loop may be reordered, a compiler that sees plain
// arrays takes the numbers of one sum together, which lie apart, and not those of four sums, which lie side
// by side.
#pragma once
#include <cstring>

namespace gradbench {

using Four = double __attribute__((vector_size(32)));
static_assert(sizeof(Four) == 4 * sizeof(double));

inline void load(const double* from, Four& to) { std::memcpy(&to, from, sizeof to); }
inline void store(const Four& from, double* to) { std::memcpy(to, &from, sizeof from); }

}   // namespace gradbench
