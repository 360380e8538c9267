// Tape: a flat record of executions. Each tensor that it tracks has a slot, so nothing after the recording
// needs its id.
#pragma once
#include <array>

#include "op/recorder.h"
#include "tape/entry_pool.h"
#include "tape/variable.h"
#include "tapedeck/gradient_tape.h"

namespace tapedeck {

struct Place;
using Slot = std::int32_t;   // -1: not tracked

/// One execution, with exactly the tensors that its rule reads. Ops with more than four inputs or one output
/// keep theirs in `more`.
struct TapeEntry {
  const Op* op = nullptr;
  OwnedAttrs attrs;
  std::int32_t inputs = 0, outputs = 0;
  std::int32_t reachable_outputs = 0;
  std::array<Slot, kMaxInputs> few_x = {};
  Slot one_y = -1;
  std::array<Tensor, kMaxInputs> few_kept_x;
  Tensor one_kept_y;
  struct More {
    std::vector<Slot> x, y;
    std::vector<Tensor> kept_x, kept_y;
  };
  std::unique_ptr<More> more;

  /// Lets go of what it holds, once it has run for the last time.
  void drop_kept() noexcept {
    few_kept_x = {};
    one_kept_y = {};
    more.reset();
    attrs = {};
  }
  std::span<Slot> x() {
    return more ? std::span<Slot>(more->x) : std::span<Slot>(few_x.data(), static_cast<std::size_t>(inputs));
  }
  std::span<Slot> y() { return more ? std::span<Slot>(more->y) : std::span<Slot>(&one_y, 1); }
  std::span<Tensor> kept_x() {
    return more ? std::span<Tensor>(more->kept_x)
                : std::span<Tensor>(few_kept_x.data(), static_cast<std::size_t>(inputs));
  }
  std::span<Tensor> kept_y() {
    return more ? std::span<Tensor>(more->kept_y) : std::span<Tensor>(&one_kept_y, 1);
  }
};

/// What the tape knows of a tensor. It is forgotten when its handles are gone and no entry takes it as an
/// input; if its producer has kept a copy of it, with the producer.
struct Tracked {
  std::int32_t producer = -1;   // entry; -1: watched
  std::int32_t uses = 0;        // 1 while a handle is alive, and 1 for each time that an entry takes it
  Slot next = -1;               // in a list of dead or free slots
  Spec spec;
  std::uint64_t id = 0;
};

/// What stands for a source or target on a tape.
inline const Tensor& tensor_of(const Source& s) {
  return s.variable() ? s.variable()->cell().handle : s.tensor();
}
/// Throws ArgumentError, which begins with `what`, unless mode is one of its values.
void check_mode(std::string_view what, UnconnectedGradients mode);

/// The name that an op with these attributes has for users.
std::string_view name_of(const Op& op, const Attrs& attrs);
inline std::string_view name_of(const TapeEntry& e) { return name_of(*e.op, e.attrs.view()); }
/// Whether the entry is the reading of a variable.
bool is_read(const TapeEntry& e);

class Tape final : public Recorder {
 public:
  explicit Tape(const TapeOptions& options);
  ~Tape() { retire(); }   // before its entries end, and with them tensors that it tracks

  void watch(const Tensor& x);
  void watch(const Variable& v);
  void record(const Call& call, std::span<Tensor> y) override;
  bool tracks(const Tensor& x) const override { return !paused && slot_of(x) >= 0; }
  bool watches_all() const override { return !paused && options_.watch_all; }
  void read(detail::VariableCell& cell, Tensor& value) override;
  void ended(Slot slot) noexcept override;
  /// Forgets everything.
  void reset();
  /// Ends the recording for good; from here on the entries are the engine's.
  void consume() noexcept;
  void free_entries() noexcept;

  std::int32_t producer(Slot s) const { return tracked_[static_cast<std::size_t>(s)].producer; }
  const Tracked& tracked(Slot s) const { return tracked_[static_cast<std::size_t>(s)]; }
  const Spec& spec(Slot s) const { return tracked_[static_cast<std::size_t>(s)].spec; }
  std::size_t slots() const { return tracked_.size(); }
  Pool<TapeEntry>& entries() { return entries_; }
  /// Where it was recorded, or null where nobody wanted to know.
  const Place* place_of(TapeEntry& e) const;
  const TapeOptions& options() const { return options_; }
  std::vector<Variable> watched_variables() const;
  /// The most bytes and the highest rank of a tensor that it tracks.
  struct Most {
    std::int64_t nbytes = 0;
    int ndim = 0;
  };
  Most most() const;
  /// After tensors that ended on other threads have been looked after.
  std::size_t size() {
    sweep_mail();
    return entries_.size();
  }

  bool used = false;   // gradient() has consumed it
  int paused = 0;      // StopRecording scopes for this tape alone

 private:
  Slot new_slot(const Tensor& x, std::int32_t producer) noexcept;
  /// Room for more slots, so that new_slot does not throw.
  void make_room(std::size_t more) {
    if (tracked_.capacity() - tracked_.size() < more) [[unlikely]]
      grow(more);
  }
  void grow(std::size_t more);
  void note_place(std::int32_t entry) noexcept;
  void take_use(Slot s) noexcept;
  void drop_use(Slot s) noexcept;
  void free_slot(Slot s) noexcept;
  void free_dead() noexcept;

  Pool<TapeEntry> entries_;
  CachedVector<Tracked> tracked_;   // by slot
  Slot free_ = -1, dead_ = -1;
  bool freeing_ = false;
  std::vector<Variable> variables_;
  std::vector<std::shared_ptr<const Place>> places_;   // by entry, as far as somebody wanted them
  TapeOptions options_;
};

}   // namespace tapedeck
