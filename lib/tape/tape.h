// Tape: a flat list of ops that were executed. Each tensor that it tracks has a slot, so a backward pass
// needs no ids.
#pragma once
#include "core/trace.h"
#include "op/recorder.h"
#include "tape/entry_pool.h"
#include "tape/tape_entry.h"
#include "tape/variable.h"
#include "tapedeck/gradient_tape.h"

namespace tapedeck {

struct Origin;

/// The tape's record of a tensor. A watched tensor's slot is freed when it has no handles and is no input of
/// an entry. An output's slot is freed with the entry that produced it, once all outputs of that entry are
/// unused.
struct Tracked {
  std::int32_t producer = -1;   // index of the entry; -1: watched
  std::int32_t uses = 0;        // 1 while a handle is alive, plus 1 for each use as an input of an entry
  Slot next = -1;               // next in the list of unused or of free slots
  Spec spec;
  std::uint64_t id = 0;
};

/// The tensor that a tape tracks for a source or target.
inline const Tensor& tensor_of(const Source& s) {
  return s.variable() ? s.variable()->cell().handle : s.tensor();
}
/// Throws ArgumentError unless mode is an enumerator. The message begins with `what`.
void check_mode(std::string_view what, UnconnectedGradients mode);

/// For a use of a recorder by the user, of this name; what: "tape" or "accumulator". Throws TraceError if the
/// function of a branch or a loop is recorded and the recorder, created outside of it, does not see its ops.
inline void require_inside(const Recorder& r, std::string_view what, std::string_view use) {
  if (thread_state.trace && r.on_this_thread()) [[unlikely]]
    thread_state.trace->on_recorder(r.serial(), what, use);
}

class Tape final : public Recorder {
 public:
  explicit Tape(const TapeOptions& options);
  ~Tape() { retire(); }   // before members are destroyed: entries hold tensors that the tape tracks

  void watch(const Tensor& x);
  void watch(const Variable& v);
  void record(const Call& call, std::span<Tensor> y) override;
  bool tracks(const Tensor& x) const override { return !paused && slot_of(x) >= 0; }
  bool watches_all() const override { return !paused && options_.watch_all; }
  void read(detail::VariableCell& cell, Tensor& value) override;
  void ended(Slot slot) noexcept override;
  /// Discards everything that was recorded; the tape continues to record.
  void reset();
  /// Ends recording permanently; afterwards only the engine accesses the entries.
  void consume() noexcept;
  void free_entries() noexcept;

  std::int32_t producer(Slot s) const { return tracked_[static_cast<std::size_t>(s)].producer; }
  const Tracked& tracked(Slot s) const { return tracked_[static_cast<std::size_t>(s)]; }
  const Spec& spec(Slot s) const { return tracked_[static_cast<std::size_t>(s)].spec; }
  std::size_t slots() const { return tracked_.size(); }
  /// The number of tracked tensors that no entry has produced.
  std::size_t watched() const { return watched_; }
  bool watches(const Tensor& x) const {
    const Slot s = slot_of(x);
    return s >= 0 && producer(s) < 0;
  }
  EntryPool<TapeEntry>& entries() { return entries_; }
  /// Where an op was recorded; null unless an observer asked for it.
  const Origin* origin_of(TapeEntry& e) const;
  /// The id of the first tracked output of an entry.
  std::uint64_t id_of(TapeEntry& e) const;
  const TapeOptions& options() const { return options_; }
  std::vector<Variable> watched_variables() const;
  /// The largest size in bytes and the highest rank among the tracked tensors.
  struct Most {
    std::int64_t nbytes = 0;
    int ndim = 0;
  };
  Most most() const;
  /// The number of entries. Frees those whose outputs were released on other threads first.
  std::size_t size() {
    drain_ended();
    return entries_.size();
  }

  bool used = false;        // gradient() has consumed it
  bool has_zeros = false;   // an entry may have a derivative of zeros (Rule::zero_in)
  int paused = 0;           // StopRecording scopes for this tape alone

 private:
  std::int32_t add_entry(const Call& c, std::span<Tensor> y, const std::array<Slot, kMaxInputs>& few_x,
                         std::unique_ptr<TapeEntry::More> more);
  void track_outputs(std::int32_t entry, std::span<Tensor> y) noexcept;
  void track_copies(TapeEntry& e, std::span<Tensor> y) noexcept;
  Slot new_slot(const Tensor& x, std::int32_t producer) noexcept;
  /// Reserves slots, so that new_slot does not throw.
  void reserve_tracked(std::size_t more) {
    if (tracked_.capacity() - tracked_.size() < more) [[unlikely]]
      grow(more);
  }
  void grow(std::size_t more);
  void note_origin(std::int32_t entry) noexcept;
  void take_use(Slot s) noexcept;
  void drop_use(Slot s) noexcept;
  void free_slot(Slot s) noexcept;
  void free_unused() noexcept;

  EntryPool<TapeEntry> entries_;
  CachedVector<Tracked> tracked_;   // by slot
  Slot free_ = -1, unused_ = -1;    // heads of the lists linked by Tracked::next
  std::size_t watched_ = 0;
  bool freeing_ = false;
  std::vector<Variable> variables_;
  std::vector<std::shared_ptr<const Origin>> origins_;   // by entry; filled only if an observer asks for them
  TapeOptions options_;
};

}   // namespace tapedeck
