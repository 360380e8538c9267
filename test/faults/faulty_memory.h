// Memory that runs out when asked to: operator new and aligned_alloc of the whole program, the library's
// included, are those of faulty_memory.cpp. Only what the arming thread allocates is counted and fails.
#pragma once
#include <cstdint>

namespace tapedeck::test {

/// Makes the n-th allocation fail, counted from 0; then all further ones too, or none. With `only`,
/// aligned_alloc of that many bytes alone. Ends with its scope.
class OutOfMemory {
 public:
  enum class Then { recovers, stays };
  OutOfMemory(int n, Then then, std::int64_t only = 0);
  ~OutOfMemory();
  OutOfMemory(const OutOfMemory&) = delete;
  /// Whether an allocation has failed.
  bool happened() const;
};

/// Allocations that are not freed.
std::int64_t blocks_in_use();
/// Calls of aligned_alloc for that many bytes so far.
std::int64_t aligned_allocations(std::int64_t bytes);

}   // namespace tapedeck::test
