#include "core/shared_buffers.h"

#include <mutex>
#include <utility>

#include "core/fork.h"

namespace tapedeck {

namespace {

constexpr std::int64_t kSmallestShared = 1 << 12;

// Buffers of one size class; the newest is reused first, since it may still be in a processor's cache.
struct Shelf {
  std::atomic<CachedBuffer*> newest{nullptr};   // changed with the lock only, compared with null without it
  CachedBuffer* oldest = nullptr;
};

// Guarded by memory_lock. Never destroyed: threads may run during process exit.
constinit Shelf shelves[kSizeClasses];
constinit std::atomic<std::int64_t> bytes{0};   // read without the lock, too
constinit std::uint64_t now = 0;

void put(Shelf& shelf, CachedBuffer* b) noexcept {
  b->next = shelf.newest.load(std::memory_order_relaxed);
  b->newer = nullptr;
  b->given_at = ++now;
  (b->next ? b->next->newer : shelf.oldest) = b;
  shelf.newest.store(b, std::memory_order_relaxed);
  bytes.fetch_add(b->capacity, std::memory_order_relaxed);
}

CachedBuffer* take_newest(Shelf& shelf) noexcept {
  CachedBuffer* const b = shelf.newest.load(std::memory_order_relaxed);
  if (!b) return nullptr;
  shelf.newest.store(b->next, std::memory_order_relaxed);
  (b->next ? b->next->newer : shelf.oldest) = nullptr;
  bytes.fetch_sub(b->capacity, std::memory_order_relaxed);
  return b;
}

CachedBuffer* take_oldest(Shelf& shelf) noexcept {
  CachedBuffer* const b = shelf.oldest;
  shelf.oldest = b->newer;
  if (b->newer)
    b->newer->next = nullptr;
  else
    shelf.newest.store(nullptr, std::memory_order_relaxed);
  bytes.fetch_sub(b->capacity, std::memory_order_relaxed);
  return b;
}

// Precondition: there is a buffer.
Shelf& shelf_of_oldest() noexcept {
  Shelf* found = nullptr;
  for (Shelf& s : shelves)
    if (s.oldest && (!found || s.oldest->given_at < found->oldest->given_at)) found = &s;
  return *found;
}

// Removes the buffers that were given first until the total is within the limit; returns them as a list.
CachedBuffer* take_until_within(std::int64_t limit) noexcept {
  CachedBuffer* taken = nullptr;
  while (bytes.load(std::memory_order_relaxed) > limit) {
    CachedBuffer* const b = take_oldest(shelf_of_oldest());
    b->next = std::exchange(taken, b);
  }
  return taken;
}

// Called without the lock, since the system may be slow.
void release_all(CachedBuffer* list) noexcept {
  while (list)
    std::exchange(list, list->next)->release();
}

}   // namespace

void give_shared(CachedBuffer* buffer, std::int64_t limit) noexcept {
  if (buffer->capacity < kSmallestShared || buffer->capacity > limit) return buffer->release();
  CachedBuffer* too_old;
  {
    const std::lock_guard lock(memory_lock);
    too_old = take_until_within(limit - buffer->capacity);
    put(shelves[buffer->size_class], buffer);
  }
  release_all(too_old);
}

CachedBuffer* take_shared(std::uint32_t size_class) noexcept {
  Shelf& shelf = shelves[size_class];
  if (!shelf.newest.load(std::memory_order_relaxed)) return nullptr;
  const std::lock_guard lock(memory_lock);
  return take_newest(shelf);
}

void release_shared() noexcept {
  CachedBuffer* all;
  {
    const std::lock_guard lock(memory_lock);
    all = take_until_within(0);
  }
  release_all(all);
}

std::int64_t shared_bytes() noexcept { return bytes.load(std::memory_order_relaxed); }

}   // namespace tapedeck
