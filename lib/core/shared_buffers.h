// Buffers that lie with no thread: freed by another thread than the one that made them, which would not use
// them again, or left by a thread that has ended. Every thread looks here before it asks the system.
#pragma once
#include <cstdint>
#include <cstdlib>

#include "tapedeck/tensor.h"

namespace tapedeck {

struct CachedBuffer : detail::Buffer {
  std::uint32_t size_class;
  std::int64_t capacity;
  std::int64_t shift;   // from the beginning of the allocation
  // Address of the cache of the thread that has made it or taken it over, to be compared only. A later cache
  // may have the same address; its thread then takes the buffer over.
  std::uintptr_t maker;
  CachedBuffer* next;    // in a cache
  CachedBuffer* newer;   // these two: among those that are shared
  std::uint64_t given_at;

  std::byte* data() { return reinterpret_cast<std::byte*>(this) + 64; }
  void release() noexcept { std::free(reinterpret_cast<std::byte*>(this) - shift); }
};
static_assert(sizeof(CachedBuffer) <= 64);

inline constexpr std::uint32_t kSizeClasses = 256;

/// Keeps the buffer, and releases others that nobody has taken for longest until all are within the limit.
/// Small ones it releases, since malloc shares those among threads itself.
void give_shared(CachedBuffer* buffer, std::int64_t limit) noexcept;
/// Null where there is none of that class.
CachedBuffer* take_shared(std::uint32_t size_class) noexcept;
void release_shared() noexcept;
std::int64_t shared_bytes() noexcept;

}   // namespace tapedeck
