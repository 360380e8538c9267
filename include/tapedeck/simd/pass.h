// What the innermost loop of an elementwise pass is given. It may be compiled in a user's program, for other
// instructions than the library, which runs it: rows are whole groups of 64 bytes, and nothing here depends
// on the width of vectors.
#pragma once
#include <cstdint>

namespace tapedeck::kernels {

/// One operand of a row: it advances, or one group of copies of its element serves.
template <class T> struct Stream {
  const T* p;
  std::int64_t mask;   // position & mask: the position itself, or always 0
};

/// How a result leaves a row.
enum class Put : std::uint8_t {
  nothing,   // not wanted
  store,     // it has every element
  add,       // the row is added to a row
  sum,       // the row is added to one element
};

template <class T, int operands, int results> struct PassRow {
  Stream<T> x[operands];
  T* out[results];
  Put put[results];
  std::int64_t n;   // a multiple of 64 bytes
};

/// Tensors that a user's map takes, and gives, at most.
inline constexpr int kMapInputs = 8, kMapResults = 8;

/// The loops of a user's function f. Operands: the inputs; then the gradients of the results, or the tangents
/// of the inputs.
template <class T> using UserRow = PassRow<T, kMapInputs + kMapResults, kMapInputs>;
template <class T> using UserLoop = void (*)(const void* f, const UserRow<T>& row);
struct UserLoops {
  UserLoop<float> f32;
  UserLoop<double> f64;
};

}   // namespace tapedeck::kernels
