#include "faults/faulty_memory.h"

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <mutex>
#include <new>

namespace {

thread_local int until_failure = -1;   // allocations; -1: none fails
thread_local bool failed = false, stays = false;
thread_local std::size_t only_of = 0;
std::atomic<std::int64_t> in_use{0}, calls{0};

constexpr std::size_t kSizes = 1 << 20;
std::atomic<std::int64_t> aligned_of_size[kSizes];

// Live blocks of aligned_alloc: a hash table with open addressing, since it must not allocate.
class Pointers {
 public:
  void insert(void* p) {
    const std::lock_guard lock(mutex_);
    std::size_t i = home(p);
    while (table_[i] && table_[i] != kErased)
      i = (i + 1) % kSize;
    table_[i] = p;
    in_use.fetch_add(1, std::memory_order_relaxed);
  }
  void erase(void* p) {
    if (!p || reinterpret_cast<std::uintptr_t>(p) % 64 != 0) return;
    const std::lock_guard lock(mutex_);
    for (std::size_t i = home(p); table_[i]; i = (i + 1) % kSize) {
      if (table_[i] != p) continue;
      table_[i] = table_[(i + 1) % kSize] ? kErased : nullptr;
      in_use.fetch_sub(1, std::memory_order_relaxed);
      return;
    }
  }

 private:
  static constexpr std::size_t kSize = 1 << 18;
  static inline void* const kErased = reinterpret_cast<void*>(1);
  static std::size_t home(void* p) {
    return reinterpret_cast<std::uintptr_t>(p) / 64 * 0x9e3779b97f4a7c15u >> 46;
  }

  std::mutex mutex_;
  void* table_[kSize] = {};
};
constinit Pointers aligned;

// Under the address sanitizer, the sanitizer's own `free` is used, which detects leaks.
#if defined(__SANITIZE_ADDRESS__)
#define FREE_IS_OURS 0
#elif defined(__has_feature)
#define FREE_IS_OURS !__has_feature(address_sanitizer)
#else
#define FREE_IS_OURS 1
#endif

// Whether this allocation fails.
bool runs_out(std::size_t aligned_bytes = 0) {
  if (only_of && aligned_bytes != only_of) return false;
  if (until_failure < 0 && !(failed && stays)) return false;
  if (until_failure > 0) return --until_failure, false;
  until_failure = -1;
  return failed = true;
}

void* allocate(std::size_t size, std::size_t alignment) {
  if (runs_out()) throw std::bad_alloc();
  void* p = nullptr;
  if (posix_memalign(&p, alignment, size ? size : 1) != 0) throw std::bad_alloc();
  calls.fetch_add(1, std::memory_order_relaxed);
  in_use.fetch_add(1, std::memory_order_relaxed);
  return p;
}
void release(void* p) {
  if (!p) return;
  in_use.fetch_sub(1, std::memory_order_relaxed);
  std::free(p);
}

}   // namespace

// The linker exports these, since the library refers to them, too. The other forms of new and delete call
// them.
void* operator new(std::size_t size) { return allocate(size, alignof(std::max_align_t)); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return allocate(size, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept try {
  return operator new(size);
} catch (const std::bad_alloc&) {
  return nullptr;
}
void operator delete(void* p) noexcept { release(p); }
void operator delete(void* p, std::size_t) noexcept { release(p); }
void operator delete(void* p, std::align_val_t) noexcept { release(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { release(p); }

extern "C" void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept {
  if (runs_out(size)) return nullptr;
  if (size < kSizes) aligned_of_size[size].fetch_add(1, std::memory_order_relaxed);
  void* p = nullptr;
  if (posix_memalign(&p, alignment, size) != 0) return nullptr;
  calls.fetch_add(1, std::memory_order_relaxed);
  if (FREE_IS_OURS) aligned.insert(p);
  return p;
}

#if FREE_IS_OURS
extern "C" void __libc_free(void* p);
extern "C" void free(void* p) noexcept {
  aligned.erase(p);
  __libc_free(p);
}
#endif

namespace tapedeck::test {

NoMemory::NoMemory(int n, Then then, std::int64_t only) {
  only_of = static_cast<std::size_t>(only);
  failed = false;
  stays = then == Then::stays;
  until_failure = n;
}
NoMemory::~NoMemory() {
  until_failure = -1;
  failed = false;
  only_of = 0;
}
bool NoMemory::happened() const { return failed; }

std::int64_t blocks_in_use() { return in_use.load(std::memory_order_relaxed); }
std::int64_t allocations() { return calls.load(std::memory_order_relaxed); }
std::int64_t aligned_allocations(std::int64_t bytes) {
  return aligned_of_size[bytes].load(std::memory_order_relaxed);
}

}   // namespace tapedeck::test
