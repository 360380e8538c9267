// The thread's stack of recorders, the slots of tensors, and the reporting of a tensor's end to its
// recorders, on this thread and on others.
#include "op/recorder.h"

#include <algorithm>

#include "core/fork.h"
#include "core/storage.h"

namespace tapedeck {

// All recorders of the process, for tensors that end on another thread than that of their recorder. Guarded
// by rare_lock.
struct RecorderRegistry {
  std::vector<Recorder*> all;
  std::atomic<std::uint32_t> count{0};
  std::atomic<std::uint64_t> serials{1};

  RecorderRegistry() { set_tensor_end_hook(Recorder::tensor_ended); }

  // If there is no memory for the queue, a recorder keeps what it has saved for the tensor until its own end.
  void queue_on_other_threads(const detail::Block& b, const ThreadState& here) noexcept try {
    const std::uint64_t tape = b.tape.load(std::memory_order_relaxed);
    const bool mapped = b.mapped.load(std::memory_order_relaxed);
    const std::lock_guard lock(rare_lock);
    for (Recorder* r : all) {
      if (r->thread_ == &here || (tape != r->serial_ && !mapped)) continue;
      r->ended_queue_.push_back({b.id, tape == r->serial_ ? b.slot : -1});
      r->ended_pending_.store(true, std::memory_order_relaxed);
    }
  } catch (const std::bad_alloc&) {}
};

namespace {

// Never destroyed: tensors may end during the destruction of static objects.
RecorderRegistry& registry() {
  static RecorderRegistry& r = *new RecorderRegistry;
  return r;
}

}   // namespace

void Recorder::tensor_ended(const detail::Block& b) noexcept {
  ThreadState& t = thread_state;
  const std::uint64_t tape = b.tape.load(std::memory_order_relaxed);
  const bool mapped = b.mapped.load(std::memory_order_relaxed);
  for (Recorder* r = t.alive; r; r = r->next_alive_) {
    const std::int32_t slot = tape == r->serial_ ? b.slot : mapped ? r->map_.find(b.id) : -1;
    if (slot < 0) continue;
    if (b.saved)
      r->copy_ended(slot);
    else
      r->ended(slot);
  }
  if (b.saved) return;
  RecorderRegistry& all = registry();
  if (all.count.load(std::memory_order_relaxed) != t.alive_count) [[unlikely]]
    all.queue_on_other_threads(b, t);
}

std::uint64_t Recorder::next_serial() { return registry().serials.load(std::memory_order_relaxed); }

Recorder::Recorder()
    : serial_(registry().serials.fetch_add(1, std::memory_order_relaxed)), thread_(&thread_state) {
  RecorderRegistry& r = registry();
  const std::lock_guard lock(rare_lock);
  r.all.push_back(this);
  r.count.fetch_add(1, std::memory_order_relaxed);
  alive_ = true;
  next_alive_ = std::exchange(thread_->alive, this);
  ++thread_->alive_count;
}

Recorder::~Recorder() {
  leave();
  retire();
}

bool Recorder::slot_outlives_copies(const Tensor& x) const noexcept {
  const std::uint64_t first = x.handle()->tape.load(std::memory_order_relaxed);
  if (first == serial_) return true;
  for (const Recorder* r = thread_->alive; r; r = r->next_alive_)
    if (r->serial_ == first) return r->counts_copies();
  return false;
}

void Recorder::notify_copied(const Tensor& x) noexcept {
  ++x.handle()->copies;
  if (alone()) return;
  for (Recorder* r = thread_->alive; r; r = r->next_alive_)
    if (const std::int32_t slot = r->slot_of(x); slot >= 0) r->copied(slot);
}

void Recorder::retire() noexcept {
  if (!std::exchange(alive_, false)) return;
  Recorder** at = &thread_->alive;
  while (*at != this)
    at = &(*at)->next_alive_;
  *at = next_alive_;
  --thread_->alive_count;
  RecorderRegistry& r = registry();
  const std::lock_guard lock(rare_lock);
  std::erase(r.all, this);
  r.count.fetch_sub(1, std::memory_order_relaxed);
}

void Recorder::enter() {
  outer_ = std::exchange(thread_state.innermost, this);
  entered_ = true;
}

void Recorder::leave() noexcept {
  if (!std::exchange(entered_, false)) return;
  const auto unlink_from = [this](Recorder** at) {
    while (*at && *at != this)
      at = &(*at)->outer_;
    if (*at) *at = outer_;
  };
  unlink_from(&thread_->innermost);
  for (RecordingScope* s = thread_->scopes; s; s = s->around) {
    if (s->base == this) s->base = outer_;
    unlink_from(&s->suspended);
  }
}

// The first recorder that tracks a tensor uses the fields of its block. It needs no entry in its map unless
// the thread has other recorders, which could look for the tensor or for a saved copy of it.
void Recorder::assign_slot(const Tensor& x, std::int32_t slot) noexcept {
  detail::Block* b = x.handle();
  std::uint64_t none = 0;
  const bool first = b->tape.compare_exchange_strong(none, serial_, std::memory_order_relaxed);
  if (first) b->slot = slot;
  if (first && alone()) return;
  b->mapped.store(true, std::memory_order_relaxed);
  map_.insert(b->id, slot);
}

void Recorder::drop_slot(const Tensor& x) noexcept {
  detail::Block* b = x.handle();
  std::uint64_t mine = serial_;
  b->tape.compare_exchange_strong(mine, 0, std::memory_order_relaxed);
  map_.erase(b->id);
}

// Under a new serial number, the recorder no longer finds any block with the old one.
void Recorder::drop_all_slots() noexcept {
  const std::lock_guard lock(rare_lock);
  ended_queue_.clear();
  map_.clear();
  serial_ = registry().serials.fetch_add(1, std::memory_order_relaxed);
}

void Recorder::drain_ended_queue() {
  std::vector<EndedTensor> queue;
  {
    const std::lock_guard lock(rare_lock);
    queue.swap(ended_queue_);
    ended_pending_.store(false, std::memory_order_relaxed);
  }
  for (const EndedTensor& t : queue) {
    const std::int32_t slot = t.slot >= 0 ? t.slot : map_.find(t.id);
    if (slot >= 0) ended(slot);
  }
}

// Recorders that have entered inside the scope and have not left by its end continue to record, inside those
// that were suspended.
RecordingScope::RecordingScope(Recorder* innermost)
    : suspended(std::exchange(thread_state.innermost, innermost)),
      base(innermost),
      around(std::exchange(thread_state.scopes, this)) {}

RecordingScope::~RecordingScope() {
  ThreadState& t = thread_state;
  t.scopes = around;
  Recorder** end = &t.innermost;
  while (*end && *end != base)
    end = &(*end)->outer_;
  *end = suspended;
}

}   // namespace tapedeck
