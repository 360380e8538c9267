// Buffers that belong to no thread: freed by another thread than the one that made them, which would not
// reuse them, or left by a thread that has ended. Every thread looks here before it asks the system for
// memory.
#pragma once
#include <cstdint>
#include <cstdlib>

#include "tapedeck/tensor.h"

namespace tapedeck {

struct CachedBuffer : detail::Buffer {
  std::uint32_t size_class;
  std::int64_t capacity;
  std::int64_t shift;   // from the beginning of the allocation
  // Address of the cache of the thread that has made it or taken it over, for comparison only. A later cache
  // may have the same address; its thread then takes the buffer over.
  std::uintptr_t maker;
  CachedBuffer* next;    // in a cache; or the next older shared buffer
  CachedBuffer* newer;   // the next newer shared buffer
  std::uint64_t given_at;

  std::byte* data() { return reinterpret_cast<std::byte*>(this) + 64; }
  void release() noexcept { std::free(reinterpret_cast<std::byte*>(this) - shift); }
};
static_assert(sizeof(CachedBuffer) <= 64);

inline constexpr std::uint32_t kSizeClasses = 256;

/// Keeps the buffer, and releases the buffers that have been here longest until the total is within the
/// limit. Releases a buffer immediately if it exceeds the limit, or is so small that malloc itself shares it
/// among threads.
void give_shared(CachedBuffer* buffer, std::int64_t limit) noexcept;
/// Returns a buffer of that size class, or null if there is none.
CachedBuffer* take_shared(std::uint32_t size_class) noexcept;
void release_shared() noexcept;
std::int64_t shared_bytes() noexcept;

}   // namespace tapedeck
