// The thread's stack of recorders, and how they learn that tensors end, on this thread or another.
#include "op/recorder.h"

#include <algorithm>

#include "core/fork.h"
#include "core/storage.h"

namespace tapedeck {

// Every recorder of the process that is alive, for tensors that end on a thread other than their tape's.
// Guarded by rare_lock.
struct Registry {
  std::vector<Recorder*> all;
  std::atomic<std::uint32_t> count{0};
  std::atomic<std::uint64_t> serials{1};

  // Without memory for the letter, the tape keeps the entry until it ends.
  void tell_others(const detail::Block& b, const ThreadState& here) noexcept try {
    const std::uint64_t tape = b.tape.load(std::memory_order_relaxed);
    const bool mapped = b.mapped.load(std::memory_order_relaxed);
    const std::lock_guard lock(rare_lock);
    for (Recorder* r : all) {
      if (r->thread_ == &here || (tape != r->serial_ && !mapped)) continue;
      r->mail_.push_back({b.id, tape == r->serial_ ? b.slot : -1});
      r->has_mail_.store(true, std::memory_order_relaxed);
    }
  } catch (const std::bad_alloc&) {}
};

namespace {

// Never destroyed: tensors may end while the process does.
Registry& registry() {
  static Registry& r = *new Registry;
  return r;
}

}   // namespace

void tensor_ended(const detail::Block& b) noexcept {
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
  Registry& all = registry();
  if (all.count.load(std::memory_order_relaxed) != t.alive_count) [[unlikely]]
    all.tell_others(b, t);
}

Recorder::Recorder()
    : serial_(registry().serials.fetch_add(1, std::memory_order_relaxed)), thread_(&thread_state) {
  Registry& r = registry();
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

void Recorder::tell_copied(const Tensor& x) noexcept {
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
  Registry& r = registry();
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
    if (s->until == this) s->until = outer_;
    unlink_from(&s->waiting);
  }
}

// The block's own field is taken by the first recorder, and found at once. Where several could look for a
// tensor, or for a copy that another one has saved, each also knows its id.
void Recorder::name(const Tensor& x, std::int32_t slot) noexcept {
  detail::Block* b = x.handle();
  std::uint64_t none = 0;
  const bool first = b->tape.compare_exchange_strong(none, serial_, std::memory_order_relaxed);
  if (first) b->slot = slot;
  if (first && alone()) return;
  b->mapped.store(true, std::memory_order_relaxed);
  map_.insert(b->id, slot);
}

void Recorder::forget_name(const Tensor& x) noexcept {
  detail::Block* b = x.handle();
  std::uint64_t mine = serial_;
  b->tape.compare_exchange_strong(mine, 0, std::memory_order_relaxed);
  map_.erase(b->id);
}

void Recorder::unname_all() noexcept {
  const std::lock_guard lock(rare_lock);
  mail_.clear();
  map_.clear();
  serial_ = registry().serials.fetch_add(1, std::memory_order_relaxed);
}

void Recorder::read_mail() {
  std::vector<Letter> letters;
  {
    const std::lock_guard lock(rare_lock);
    letters.swap(mail_);
    has_mail_.store(false, std::memory_order_relaxed);
  }
  for (const Letter& l : letters) {
    const std::int32_t slot = l.slot >= 0 ? l.slot : map_.find(l.id);
    if (slot >= 0) ended(slot);
  }
}

// What was entered inside a scope and is still there when it ends goes on recording, inside what waited.
RecordingScope::RecordingScope(Recorder* innermost)
    : waiting(std::exchange(thread_state.innermost, innermost)),
      until(innermost),
      around(std::exchange(thread_state.scopes, this)) {}

RecordingScope::~RecordingScope() {
  ThreadState& t = thread_state;
  t.scopes = around;
  Recorder** end = &t.innermost;
  while (*end && *end != until)
    end = &(*end)->outer_;
  *end = waiting;
}

}   // namespace tapedeck
