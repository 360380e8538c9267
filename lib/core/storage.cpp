// Blocks and buffers: where every byte of a tensor comes from and goes to.
#include "core/storage.h"

#include <fmt/format.h>
#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>

#include <malloc.h>
#include <sys/mman.h>

#include "core/bytes.h"
#include "core/format.h"
#include "core/free_blocks.h"
#include "core/sanitizers.h"
#include "core/shared_buffers.h"
#include "core/trace.h"
#include "tapedeck/memory.h"

namespace tapedeck {

constinit thread_local ThreadState thread_state;

namespace {

using detail::Block;
using detail::Bytes;

constexpr bool kReuse = !kSanitized;   // reuse would hide a use after free

// Large buffers begin at different places of their pages, since a load waits for an earlier store at the same
// place of another page, as if it were the same address.
constexpr std::int64_t kLargeBuffer = 1 << 16, kPlace = 9 * 64, kPlaces = 7;
std::atomic<std::uint32_t> next_place{0};
// From this size on, which contains a huge page whatever the address, huge pages are requested from the
// system: a new buffer then causes fewer page faults, and each pass over it fewer page walks.
constexpr std::int64_t kHugeBuffer = 1 << 22, kHugePage = 1 << 21;

constexpr int kBlocksAtOnce = 64;
constexpr std::uint64_t kIdsPerThread = 1 << 16;
constexpr std::int64_t kMaxBytes = std::int64_t{1} << 62, kLargestElement = 16;
constexpr std::int64_t kInline = detail::kInlineBytes;
// The shared buffers of all threads may have at most 1 / kSharedPart of the bytes that one thread may cache.
constexpr std::int64_t kSharedPart = 8;

std::atomic<std::uint64_t> next_ids{1};
constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();
std::atomic<std::int64_t> live{0}, peak{0}, limit{kNoLimit};
std::atomic<std::int64_t> cache_limit{std::int64_t{1} << 30};
constinit std::atomic<TensorEndHook> tensor_end_hook{nullptr};

// Does nothing for a tensor that was never tracked; for others the hook has been set.
void report_end(const Block& b) noexcept {
  if (b.tape.load(std::memory_order_relaxed) || b.mapped.load(std::memory_order_relaxed)) [[unlikely]]
    tensor_end_hook.load(std::memory_order_relaxed)(b);
}

// A full portion of the thread's free blocks, in addition to the blocks in its state, or null. With both, a
// thread that alternately makes and frees many tensors returns or gets a portion only once per portion of
// blocks.
constinit thread_local ThreadState::Free* set_aside __attribute__((tls_model("initial-exec"))) = nullptr;

// Sets aside all free blocks of the thread except the one that was freed last.
[[gnu::noinline]] void keep_one_block(ThreadState& t) noexcept {
  if (set_aside) give_blocks({set_aside, kBlockPortion});
  set_aside = std::exchange(t.free_blocks->next, nullptr);
  t.free_block_count = 1;
}

[[gnu::noinline]] void give_up_blocks(ThreadState& t) noexcept {
  if (set_aside) give_blocks({std::exchange(set_aside, nullptr), kBlockPortion});
  if (t.free_blocks)
    give_blocks({std::exchange(t.free_blocks, nullptr), std::exchange(t.free_block_count, 0)});
}

std::int64_t shared_limit() noexcept { return cache_limit.load(std::memory_order_relaxed) / kSharedPart; }

}   // namespace

// The buffers in a thread's cache were made or taken over by this thread, so that it never caches more
// buffers of a size than it had in use at one time.
struct BufferCache {
  CachedBuffer* free[kSizeClasses] = {};
  std::int64_t bytes = 0;

  template <class F> void empty(const F& take) noexcept {
    for (CachedBuffer*& list : free)
      while (list)
        take(std::exchange(list, list->next));
    bytes = 0;
  }
};

namespace {

// Releases the thread's memory to other threads when the thread ends; memory freed later is not cached.
struct ReleaseAtThreadExit {
  ~ReleaseAtThreadExit() {
    ThreadState& t = thread_state;
    t.ended = true;
    t.registered = false;
    give_up_blocks(t);
    if (!t.buffers) return;
    t.buffers->empty([](CachedBuffer* b) { give_shared(b, shared_limit()); });
    delete std::exchange(t.buffers, nullptr);
  }
};

// Called from allocation and from freeing: some threads only ever free tensors of others.
[[gnu::noinline]] void clean_up_at_end_of(ThreadState& t) {
  thread_local ReleaseAtThreadExit at_exit;
  (void)&at_exit;
  t.registered = true;
}

void* aligned(std::size_t bytes) {
  void* p = std::aligned_alloc(64, bytes);
  if (!p) throw std::bad_alloc();
  return p;
}

FreeBlocks new_blocks() {
  const int count = kReuse ? kBlocksAtOnce : 1;
  auto* slab = static_cast<std::byte*>(aligned(static_cast<std::size_t>(count) * sizeof(Block)));
  ThreadState::Free* first = nullptr;
  for (int i = count; i-- > 0;)
    first = new (slab + i * static_cast<std::ptrdiff_t>(sizeof(Block))) ThreadState::Free{first};
  return {first, static_cast<std::uint32_t>(count)};
}

[[gnu::noinline]] void refill_blocks(ThreadState& t) {
  if (!t.registered) clean_up_at_end_of(t);
  FreeBlocks blocks{std::exchange(set_aside, nullptr), kBlockPortion};
  if (!blocks.first) blocks = take_blocks();
  if (!blocks.first) blocks = new_blocks();
  t.free_blocks = blocks.first;
  t.free_block_count = blocks.count;
}

// A thread that has ended, but still runs destructors, gets one block only, since it would not return the
// others.
[[gnu::noinline]] void refill_ended(ThreadState& t) {
  t.free_blocks = take_block();
  if (!t.free_blocks) {
    const FreeBlocks blocks = new_blocks();
    t.free_blocks = blocks.first;
    ThreadState::Free* const others = std::exchange(blocks.first->next, nullptr);
    if (others) give_blocks({others, blocks.count - 1});
  }
  t.free_blocks->next = nullptr;
  t.free_block_count = 1;
}

[[gnu::noinline]] void refill_ids(ThreadState& t) {
  t.next_id = next_ids.fetch_add(kIdsPerThread, std::memory_order_relaxed);
  t.end_id = t.next_id + kIdsPerThread;
}

std::uint64_t new_id(ThreadState& t) {
  if (t.next_id == t.end_id) refill_ids(t);
  return t.next_id++;
}

// Four sizes an octave: at most a quarter is wasted, and a freed buffer fits the next result of about its
// size.
std::uint32_t class_of(std::int64_t bytes, std::int64_t& rounded) {
  const auto b = static_cast<std::uint64_t>(bytes < 256 ? 256 : bytes);
  const int log = static_cast<int>(std::bit_width(b - 1)) - 1;
  const std::uint64_t step = std::uint64_t{1} << (log - 2);
  rounded = static_cast<std::int64_t>((b + step - 1) / step * step);
  return static_cast<std::uint32_t>(
      log * 4 + static_cast<int>((static_cast<std::uint64_t>(rounded) - 1) >> (log - 2) & 3));
}

// Only for pages that lie inside the memory, so that a buffer uses nothing beyond its capacity. A system
// without huge pages refuses, which has no effect.
[[gnu::noinline]] void advise_huge_pages(void* p, std::int64_t bytes) noexcept {
  constexpr auto page = static_cast<std::uintptr_t>(kHugePage);
  const auto begin = reinterpret_cast<std::uintptr_t>(p);
  const std::uintptr_t first = (begin + page - 1) / page * page,
                       last = (begin + static_cast<std::uintptr_t>(bytes)) / page * page;
  if (first < last) (void)::madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);
}

[[gnu::noinline]] void make_cache(ThreadState& t) {
  if (!t.registered) clean_up_at_end_of(t);
  t.buffers = new BufferCache;
}

// 64 bytes before the data hold the header; after it, the memory is padded to whole vectors, and by one more
// because slices start anywhere.
CachedBuffer* buffer_from_system(std::uint32_t size_class, std::int64_t capacity) noexcept {
  const std::int64_t shift =
      capacity < kLargeBuffer ? 0 : kPlace * (next_place.fetch_add(1, std::memory_order_relaxed) % kPlaces);
  const std::int64_t all = shift + 64 + (capacity + 63) / 64 * 64 + 64;
  void* p = std::aligned_alloc(64, static_cast<std::size_t>(all));
  if (!p) return nullptr;
  if (capacity >= kHugeBuffer) [[unlikely]]
    advise_huge_pages(p, all);
  return new (static_cast<std::byte*>(p) + shift)
      CachedBuffer{{1}, size_class, capacity, shift, 0, nullptr, nullptr, 0};
}

// A thread that has ended has no cache, and no buffer is its own: none has the address 1.
std::uintptr_t maker_of(const BufferCache* cache) noexcept {
  return cache ? reinterpret_cast<std::uintptr_t>(cache) : 1;
}

[[gnu::noinline]] CachedBuffer* uncached_buffer(const ThreadState& t, std::uint32_t size_class,
                                                std::int64_t capacity) noexcept {
  CachedBuffer* b = take_shared(size_class);
  if (!b) b = buffer_from_system(size_class, capacity);
  if (b) b->maker = maker_of(t.buffers);
  return b;
}

CachedBuffer* new_buffer(std::int64_t bytes) {   // null if there is no memory
  std::int64_t capacity;
  const std::uint32_t c = class_of(bytes, capacity);
  ThreadState& t = thread_state;
  if (!t.buffers && !t.ended) [[unlikely]]
    make_cache(t);
  CachedBuffer* b = t.buffers ? t.buffers->free[c] : nullptr;
  if (b) {
    t.buffers->free[c] = b->next;
    t.buffers->bytes -= capacity;
  } else {
    b = uncached_buffer(t, c, capacity);
    if (!b) return nullptr;
  }
  b->refs.store(1, std::memory_order_relaxed);
  return b;
}

void keep_or_free(CachedBuffer* b) noexcept {
  BufferCache* cache = thread_state.buffers;
  if (!kReuse) return b->release();
  if (b->maker != reinterpret_cast<std::uintptr_t>(cache)) [[unlikely]]
    return give_shared(b, shared_limit());
  if (cache->bytes + b->capacity <= cache_limit.load(std::memory_order_relaxed)) {
    cache->bytes += b->capacity;
    b->next = cache->free[b->size_class];
    cache->free[b->size_class] = b;
  } else {
    b->release();
  }
}

void free_buffer(CachedBuffer* b) noexcept {
  if (b->refs.load(std::memory_order_acquire) != 1 && b->refs.fetch_sub(1, std::memory_order_acq_rel) != 1)
    return;
  live.fetch_sub(b->capacity, std::memory_order_relaxed);
  keep_or_free(b);
}

Block* new_block(DType dtype, const Shape& shape, std::int64_t size) {
  ThreadState& t = thread_state;
  if (!t.free_blocks) [[unlikely]]
    t.ended ? refill_ended(t) : refill_blocks(t);
  const std::uint64_t id = new_id(t);
  ThreadState::Free* p = std::exchange(t.free_blocks, t.free_blocks->next);
  --t.free_block_count;
  Block* b = new (p) Block;
  b->refs.store(1, std::memory_order_relaxed);
  b->tape.store(0, std::memory_order_relaxed);
  b->mapped.store(false, std::memory_order_relaxed);
  b->saved = false;
  b->copies = 0;
  b->dtype = dtype;
  b->shape = shape;
  b->size = size;
  b->id = id;
  Bytes::of(*b) = Bytes::inside(*b).data();
  b->buffer = nullptr;
  return b;
}

// Zeros, since vectors read beyond the last element, and arithmetic with denormals is slow.
void clear_inline(Block& b) { std::memset(Bytes::inside(b).data(), 0, kInline); }

// Formats the message without allocating. The longest messages, with eight extents and four numbers, fit.
[[noreturn, gnu::noinline]] void throw_out_of_memory(const Block& b, std::int64_t bytes,
                                                     std::int64_t most = kNoLimit) {
  char text[512];
  char* at = fmt::format_to(text, "tensor: no memory for the {} bytes of {}[", bytes, name_of(b.dtype));
  for (int d = 0; d < b.shape.ndim(); ++d)
    at = fmt::format_to(at, "{}{}", d ? "," : "", b.shape[d]);
  *at++ = ']';
  if (most != kNoLimit)
    at = fmt::format_to(at, ": tensors have {} bytes, and the limit is {}; set_memory_limit changes it",
                        live.load(std::memory_order_relaxed), most);
  throw OutOfMemory({text, static_cast<std::size_t>(at - text)});
}

// Adds to the count of live bytes, and returns the new count, or 0 if it would exceed the limit. A refused
// request is never counted, so that it does not cause other requests to be refused.
[[gnu::noinline]] std::int64_t count_within(std::int64_t more, std::int64_t most) noexcept {
  std::int64_t now = live.load(std::memory_order_relaxed);
  do {
    if (now > most - more) return 0;
  } while (!live.compare_exchange_weak(now, now + more, std::memory_order_relaxed));
  return now + more;
}

[[gnu::noinline]] void raise_peak(std::int64_t now) noexcept {
  std::int64_t before = peak.load(std::memory_order_relaxed);
  while (before < now && !peak.compare_exchange_weak(before, now, std::memory_order_relaxed)) {}
}

[[noreturn, gnu::noinline]] void refuse(const Block& b, std::int64_t bytes, std::int64_t most,
                                        CachedBuffer* buffer) {
  keep_or_free(buffer);
  throw_out_of_memory(b, bytes, most);
}

void take_buffer(Block& b, std::int64_t bytes) {
  CachedBuffer* buffer = new_buffer(bytes);
  if (!buffer) [[unlikely]]
    throw_out_of_memory(b, bytes);
  const std::int64_t most = limit.load(std::memory_order_relaxed), more = buffer->capacity;
  const std::int64_t now =
      most == kNoLimit ? live.fetch_add(more, std::memory_order_relaxed) + more : count_within(more, most);
  if (now == 0) [[unlikely]]
    refuse(b, bytes, most, buffer);
  if (now > peak.load(std::memory_order_relaxed)) [[unlikely]]
    raise_peak(now);
  b.buffer = buffer;
  Bytes::of(b) = buffer->data();
}
void take_memory_for(Block& b) {
  const std::int64_t bytes = b.size * size_of(b.dtype);
  if (bytes > kInline) return take_buffer(b, bytes);
  Bytes::of(b) = Bytes::inside(b).data();
  clear_inline(b);
}

void refer(Block& b, const Block& x, std::int64_t first) noexcept {
  const std::int64_t bytes = b.size * size_of(b.dtype);
  std::byte* const data = Bytes::of(x) + first * size_of(x.dtype);
  if (bytes <= kInline) {   // too small to hold a large buffer alive
    Bytes::of(b) = Bytes::inside(b).data();
    clear_inline(b);
    std::memcpy(Bytes::inside(b).data(), data, static_cast<std::size_t>(bytes));
  } else {
    x.buffer->refs.fetch_add(1, std::memory_order_relaxed);
    b.buffer = x.buffer;
    Bytes::of(b) = data;
  }
}

}   // namespace

void detail::free_block(Block* b) noexcept {
  report_end(*b);
  if (b->buffer) free_buffer(static_cast<CachedBuffer*>(b->buffer));
  if (!kReuse) return std::free(b);
  ThreadState& t = thread_state;
  t.free_blocks = new (b) ThreadState::Free{t.free_blocks};
  if (++t.free_block_count <= kBlockPortion && t.registered) [[likely]]
    return;
  if (t.ended) return give_up_blocks(t);
  if (!t.registered) clean_up_at_end_of(t);
  if (t.free_block_count > kBlockPortion) keep_one_block(t);
}

Tensor allocate(DType dtype, const Shape& shape, std::int64_t size) {
  if (size > kMaxBytes / kLargestElement) [[unlikely]]
    (void)Spec{dtype, shape}.nbytes();   // throws if it overflows
  Tensor t = Tensor::adopt(new_block(dtype, shape, size));
  take_memory_for(*t.handle());
  return t;
}

Tensor allocate_like(const Tensor& x) {
  const Block& b = x.block();
  Tensor t = Tensor::adopt(new_block(b.dtype, b.shape, b.size));
  const std::int64_t bytes = b.size * size_of(b.dtype);
  if (bytes > kInline) take_buffer(*t.handle(), bytes);
  return t;
}

namespace {
void refer_to(const Tensor& y, const Tensor& x, std::int64_t first) {
  refer(*y.handle(), x.block(), first);
  if (thread_state.trace) [[unlikely]]
    thread_state.trace->on_view(y, x, first);
}
}   // namespace

Tensor share(const Tensor& x) {
  Tensor y = Tensor::adopt(new_block(x.dtype(), x.shape(), x.size()));
  refer_to(y, x, 0);
  return y;
}

Tensor share(const Tensor& x, const Shape& shape, std::int64_t first) {
  Tensor y = Tensor::adopt(new_block(x.dtype(), shape, shape.size()));
  refer_to(y, x, first);
  return y;
}

void copy_elements(const Tensor& from, Tensor& to) noexcept {
  if (from.size()) std::memcpy(to.raw(), from.raw(), static_cast<std::size_t>(from.nbytes()));
}
Tensor copy_of(const Tensor& x) {
  Tensor own = allocate(x.spec());
  copy_elements(x, own);
  return own;
}

std::span<std::byte> writable_bytes(Tensor& fresh) {
  return {fresh.raw(), static_cast<std::size_t>(fresh.nbytes())};
}

Tensor blank(const Spec& spec) {
  const std::int64_t size = spec.shape.size();
  if (size > kMaxBytes / kLargestElement) [[unlikely]]
    (void)spec.nbytes();
  Block* b = new_block(spec.dtype, spec.shape, size);
  Bytes::of(*b) = nullptr;
  return Tensor::adopt(b);
}
void allocate_for(Tensor& blank) { take_memory_for(*blank.handle()); }
void share_with(Tensor& blank, const Tensor& x, std::int64_t first) { refer_to(blank, x, first); }

Tensor shape_only(const Spec& spec) {
  Block* b = new_block(spec.dtype, spec.shape, spec.shape.size());
  b->saved = true;
  Bytes::of(*b) = nullptr;
  return Tensor::adopt(b);
}

Tensor shape_only(const Tensor& x) {
  Tensor h = shape_only(x.spec());
  h.handle()->id = x.id();
  return h;
}

Tensor saved_copy(const Tensor& x) {
  Tensor copy = share(x);
  Block* b = copy.handle();
  b->id = x.id();
  b->saved = true;
  return copy;
}

void track_copy(Tensor& copy, const Tensor& x, bool keeps_slot) noexcept {
  Block* b = copy.handle();
  if (keeps_slot) {
    b->slot = x.handle()->slot;
    b->tape.store(x.handle()->tape.load(std::memory_order_relaxed), std::memory_order_relaxed);
  }
  b->mapped.store(true, std::memory_order_relaxed);
}

void set_tensor_end_hook(TensorEndHook hook) noexcept {
  tensor_end_hook.store(hook, std::memory_order_relaxed);
}

void* take_memory(std::int64_t bytes) {
  CachedBuffer* b = new_buffer(bytes);
  if (!b) throw std::bad_alloc();
  return b->data();
}
void give_memory(void* p) noexcept {
  if (p) keep_or_free(reinterpret_cast<CachedBuffer*>(static_cast<std::byte*>(p) - 64));
}

void renew(Tensor& x) {
  Block* b = x.handle();
  report_end(*b);
  b->tape.store(0, std::memory_order_relaxed);
  b->mapped.store(false, std::memory_order_relaxed);
  b->id = new_id(thread_state);
}

std::int64_t live_bytes() { return live.load(std::memory_order_relaxed); }

void set_memory_limit(std::optional<std::int64_t> nbytes) {
  if (nbytes && *nbytes < 0)
    throw ArgumentError("set_memory_limit: " + std::to_string(*nbytes) + " bytes; use 0 or more");
  limit.store(nbytes.value_or(kNoLimit), std::memory_order_relaxed);
}
std::optional<std::int64_t> memory_limit() {
  const std::int64_t nbytes = limit.load(std::memory_order_relaxed);
  return nbytes == kNoLimit ? std::nullopt : std::optional(nbytes);
}
std::int64_t peak_memory() { return peak.load(std::memory_order_relaxed); }
void reset_peak_memory() { peak.store(live_bytes(), std::memory_order_relaxed); }

std::int64_t cached_bytes() {
  return shared_bytes() + (thread_state.buffers ? thread_state.buffers->bytes : 0);
}
void set_buffer_cache_limit(std::int64_t nbytes) {
  if (nbytes < 0)
    throw ArgumentError("set_buffer_cache_limit: " + std::to_string(nbytes) + " bytes; use 0 or more");
  cache_limit.store(nbytes, std::memory_order_relaxed);
}

namespace {
// malloc itself keeps free pages that lie between memory in use.
void give_free_pages_back() noexcept {
#ifdef __GLIBC__
  ::malloc_trim(0);
#endif
}
}   // namespace

void release_buffers() {
  if (cached_bytes() == 0) return;
  if (thread_state.buffers) thread_state.buffers->empty([](CachedBuffer* b) { b->release(); });
  release_shared();
  give_free_pages_back();
}

}   // namespace tapedeck
