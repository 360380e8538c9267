// Memory that runs out on demand: faulty_memory.cpp replaces operator new and aligned_alloc for the whole
// program, including the library. Only allocations of the arming thread are counted and fail.
#pragma once
#include <cstdint>

namespace tapedeck::test {

/// Makes the n-th allocation fail, counted from 0; then all further ones too, or none. With `only`,
/// aligned_alloc of that many bytes alone. Ends with its scope.
class NoMemory {
 public:
  enum class Then { recovers, stays };
  NoMemory(int n, Then then, std::int64_t only = 0);
  ~NoMemory();
  NoMemory(const NoMemory&) = delete;
  /// Whether an allocation has failed.
  bool happened() const;
};

/// The number of allocations that are not freed yet.
std::int64_t blocks_in_use();
/// Calls of operator new and aligned_alloc so far, on all threads.
std::int64_t allocations();
/// Calls of aligned_alloc for that many bytes so far.
std::int64_t aligned_allocations(std::int64_t bytes);

}   // namespace tapedeck::test
