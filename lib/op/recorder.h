// Recorder: something on the thread's stack that sees every op, namely a tape or a forward accumulator.
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

  /// The door shows one execution. Throws nothing but what leaves the recorder as it was.
  virtual void record(const Call& call, std::span<Tensor> y) = 0;
  virtual bool tracks(const Tensor& x) const = 0;
  /// Whether it will track whatever an op takes.
  virtual bool watches_all() const { return false; }
  /// A variable is read; value is this read's own.
  virtual void read(detail::VariableCell&, Tensor& /*value*/) {}
  /// A tracked tensor ends: nobody but the recorders can reach it any more.
  virtual void ended(std::int32_t slot) noexcept = 0;
  /// A tape saves a copy of a tensor, which may still be computed with when the tensor has ended; such a copy
  /// ends.
  virtual void copied(std::int32_t) noexcept {}
  virtual void copy_ended(std::int32_t) noexcept {}
  /// Whether it keeps a tensor's slot until all copies have ended.
  virtual bool counts_copies() const { return false; }

  /// See ops from now on, as the innermost recorder; see them no more.
  void enter();
  void leave() noexcept;
  bool entered() const { return entered_; }
  Recorder* outer() const { return outer_; }

  /// The number that a tensor has here, or -1.
  std::int32_t slot_of(const Tensor& x) const {
    const detail::Block* b = x.handle();
    if (b->tape.load(std::memory_order_relaxed) == serial_) return b->slot;
    return b->mapped.load(std::memory_order_relaxed) ? map_.find(b->id) : -1;
  }

 protected:
  Recorder();
  ~Recorder();
  /// Be told of ended tensors no more.
  void retire() noexcept;
  /// Whether no other recorder is alive on the thread: a tensor that nobody tracks yet then needs no room in
  /// the map.
  bool alone() const { return thread_->alive_count == 1; }
  /// Makes room for n tensors to be named without throwing.
  void reserve_names(std::size_t n) { map_.reserve(n); }
  /// x must not have a number here yet.
  void name(const Tensor& x, std::int32_t slot) noexcept;
  /// Takes the number of x away.
  void forget_name(const Tensor& x) noexcept;
  void unname(std::uint64_t id) noexcept { map_.erase(id); }
  void unname_all() noexcept;
  /// Whether the first recorder that tracked x keeps its slot for as long as there are copies that this one
  /// has saved.
  bool slot_outlives_copies(const Tensor& x) const noexcept;
  /// Tells all recorders of the thread that x is copied.
  void tell_copied(const Tensor& x) noexcept;
  /// Looks after tensors that have ended on other threads.
  void sweep_mail() {
    if (has_mail_.load(std::memory_order_relaxed)) [[unlikely]]
      read_mail();
  }

 private:
  friend struct Registry;
  friend struct RecordingScope;
  friend void tensor_ended(const detail::Block& block) noexcept;
  struct Letter {
    std::uint64_t id;
    std::int32_t slot;
  };
  void read_mail();

  Recorder* outer_ = nullptr;
  bool entered_ = false, alive_ = false;
  std::uint64_t serial_;   // names this recorder in the blocks that it tracks first
  IdMap map_;              // the other tensors
  Recorder* next_alive_ = nullptr;
  ThreadState* thread_ = nullptr;
  std::vector<Letter> mail_;   // guarded by rare_lock
  std::atomic<bool> has_mail_{false};
};

/// For a scope, only `innermost` and the recorders around it see ops.
struct RecordingScope {
  explicit RecordingScope(Recorder* innermost);
  ~RecordingScope();
  RecordingScope(const RecordingScope&) = delete;

  Recorder* waiting;   // what records again after the scope
  Recorder* until;     // what it began with
  RecordingScope* around;
};

/// The door for outputs that are there already: they are only recorded.
void enter_computed(const Call& c, std::span<Tensor> y);

/// Whether a recorder that sees ops tracks x.
inline bool tracked(const Tensor& x) {
  for (Recorder* r = thread_state.innermost; r; r = r->outer())
    if (r->tracks(x)) return true;
  return false;
}
/// Whether one tracks x, or will as soon as an op takes it.
inline bool followed(const Tensor& x) {
  if (tracked(x)) return true;
  for (Recorder* r = thread_state.innermost; r; r = r->outer())
    if (r->watches_all()) return is_trainable(x.dtype());
  return false;
}

}   // namespace tapedeck
