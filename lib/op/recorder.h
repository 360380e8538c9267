// Recorder: base class of tapes and forward accumulators. A recorder is notified of every op of its thread
// while it is on the thread's stack of recorders.
//
// How recorders find a tensor. The first five columns are fields of detail::Block. Every recorder has a
// serial number; 0 means none. The recorder whose serial is in `tape` finds the tensor by `slot`; every other
// one looks up the id in its own map, but only if `mapped` is set.
//
//   tape     slot    mapped  saved  copies  state
//   0        unset   false   false  n       untracked; its end is reported to nobody
//   serial   valid   false   false  n       tracked by one recorder, which was alone when it began to track
//   serial   valid   true    false  n       tracked by `tape`, and perhaps by others; all of them have its id
//   0        unset   true    false  n       no longer tracked by its first recorder, perhaps still by others
//   0        unset   false   true   0       shape-only handle, or saved copy of a tensor nobody tracks
//   serial   valid   true    true   0       saved copy with the slot of its original
//   0        unset   true    true   0       saved copy that is found by the id alone, since the slot of its
//                                           original may end before the copy (slot_outlives_copies)
//
// A tensor ends when its last handle is destroyed. `copies` counts the saved copies of a tensor, so that an
// accumulator that starts to track it later knows how many ends to expect. A saved copy has the id of its
// original; its end is reported by copy_ended, every other end by `ended`. A variable is tracked by the slot
// of a shape-only tensor with `saved` unset.
#pragma once
#include <atomic>

#include "core/thread_state.h"
#include "op/id_map.h"
#include "tapedeck/op.h"

namespace tapedeck {

namespace detail {
struct VariableCell;
}

class Recorder {
 public:
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  /// Called after each op. Must have no effect if it throws.
  virtual void record(const Call& call, std::span<Tensor> y) = 0;
  virtual bool tracks(const Tensor& x) const = 0;
  /// Whether the recorder starts to track every trainable input of an op.
  virtual bool watches_all() const { return false; }
  /// Called when a variable is read; value is the tensor that the read returns.
  virtual void read(detail::VariableCell&, Tensor& /*value*/) {}
  /// Called when the last handle of a tracked tensor is destroyed; saved copies do not count.
  virtual void ended(std::int32_t slot) noexcept = 0;
  /// Called when a tape saves a copy of a tracked tensor, and when such a copy ends. Rules may use the copy
  /// after the tensor has ended.
  virtual void copied(std::int32_t) noexcept {}
  virtual void copy_ended(std::int32_t) noexcept {}
  /// Whether the recorder keeps a tensor's slot until all saved copies have ended.
  virtual bool counts_copies() const { return false; }

  /// enter() pushes this recorder on the thread's stack; leave() removes it.
  void enter();
  void leave() noexcept;
  bool entered() const { return entered_; }
  bool on_this_thread() const { return thread_ == &thread_state; }
  Recorder* outer() const { return outer_; }
  std::uint64_t serial() const { return serial_; }
  static std::uint64_t next_serial();   // the least one of recorders that are created later

  /// The slot of a tensor in this recorder, or -1.
  std::int32_t slot_of(const Tensor& x) const {
    const detail::Block* b = x.handle();
    if (b->tape.load(std::memory_order_relaxed) == serial_) return b->slot;
    return b->mapped.load(std::memory_order_relaxed) ? map_.find(b->id) : -1;
  }

 protected:
  Recorder();
  ~Recorder();
  /// After this call, no end of a tensor is reported to this recorder.
  void retire() noexcept;
  /// Whether the thread has no other recorder. A tensor that is not tracked yet then needs no entry in the
  /// map.
  bool alone() const { return thread_->alive_count == 1; }
  /// Guarantees that the next n calls of assign_slot do not throw.
  void reserve_ids(std::size_t n) { map_.reserve(n); }
  /// Precondition: x has no slot in this recorder.
  void assign_slot(const Tensor& x, std::int32_t slot) noexcept;
  void drop_slot(const Tensor& x) noexcept;
  /// Drops the slot of a tensor that has ended.
  void drop_id(std::uint64_t id) noexcept { map_.erase(id); }
  void drop_all_slots() noexcept;
  /// Whether the first recorder that tracked x keeps the slot of x at least as long as the copies that this
  /// recorder saves.
  bool slot_outlives_copies(const Tensor& x) const noexcept;
  /// Calls copied() of all recorders of the thread that track x.
  void notify_copied(const Tensor& x) noexcept;
  /// Calls ended() for tracked tensors that have ended on other threads since the last call.
  void drain_ended() {
    if (ended_pending_.load(std::memory_order_relaxed)) [[unlikely]]
      drain_ended_queue();
  }

 private:
  friend struct RecorderRegistry;
  friend struct RecordingScope;
  struct EndedTensor {
    std::uint64_t id;
    std::int32_t slot;   // -1: to be looked up by id
  };
  static void tensor_ended(const detail::Block& block) noexcept;
  void drain_ended_queue();

  Recorder* outer_ = nullptr;
  bool entered_ = false, alive_ = false;
  std::uint64_t serial_;
  IdMap map_;   // of tensors that another recorder tracked first, or that others may look up
  Recorder* next_alive_ = nullptr;
  ThreadState* thread_ = nullptr;
  std::vector<EndedTensor> ended_queue_;   // tensors that ended on other threads; guarded by rare_lock
  std::atomic<bool> ended_pending_{false};
};

/// Scope in which only `innermost` and the recorders around it are notified of ops.
struct RecordingScope {
  explicit RecordingScope(Recorder* innermost);
  ~RecordingScope();
  RecordingScope(const RecordingScope&) = delete;

  Recorder* suspended;   // the former stack, which is restored after the scope
  Recorder* base;        // the innermost recorder at the start of the scope
  RecordingScope* around;
};

/// Reports a call whose outputs exist already to observers, under this name, and to recorders.
void record_computed(const Call& c, std::span<Tensor> y, std::string_view name);

/// Whether a recorder on the stack tracks x.
inline bool tracked(const Tensor& x) {
  for (Recorder* r = thread_state.innermost; r; r = r->outer())
    if (r->tracks(x)) return true;
  return false;
}
/// Whether a recorder on the stack tracks x, or will track it as soon as x is an input of an op.
inline bool followed(const Tensor& x) {
  if (tracked(x)) return true;
  for (Recorder* r = thread_state.innermost; r; r = r->outer())
    if (r->watches_all()) return is_trainable(x.dtype());
  return false;
}

}   // namespace tapedeck
