// RepeatedReplay: a replay that runs many times, with arguments and results that move by fixed distances.
#pragma once
#include "compile/replay/replay.h"

namespace tapedeck::compiled {

/// A place in memory that depends on the number of a step, and on a turn, which is 0 or 1. Distances are in
/// bytes. Base: ReadOnly or Writable.
template <class Base> struct MovingPlace {
  Base base = {};
  std::int64_t offset = 0, per_step = 0, per_turn = 0;
  bool is_padded = false;   // whether more may be written, up to a multiple of 64 bytes
  Base at(std::int64_t step, int turn) const {
    return base.after(offset + step * per_step + (turn ? per_turn : 0));
  }
};

class RepeatedReplay {
 public:
  using Source = MovingPlace<ReadOnly>;
  using Target = MovingPlace<Writable>;

  /// sources, targets: of the arguments and results of the program. An argument whose source has no base is
  /// not read.
  RepeatedReplay(Replay& replay, std::vector<Source> sources, std::vector<Target> targets,
                 std::vector<random::Key> keys);
  RepeatedReplay(const RepeatedReplay&) = delete;

  /// Reads arguments at the given turn, and writes results at the other one.
  void run(std::int64_t step, int turn);

 private:
  struct CopyIn {
    Source from;
    Writable to;
    std::int64_t bytes;
  };
  struct CopyOut {
    ReadOnly from;
    Target to;
    std::int64_t bytes;
  };
  struct Bound {
    ValueId value;
    std::size_t at;   // index of the argument or result
  };

  Replay& replay_;
  const std::vector<Source> sources_;
  const std::vector<Target> targets_;
  const std::vector<random::Key> keys_;
  std::vector<CopyIn> numbers_in_, copied_in_;   // numbers: of 8 bytes
  std::vector<CopyOut> numbers_out_, copied_out_;
  std::vector<Bound> bound_in_, bound_out_;
  std::vector<std::size_t> other_results_;   // whose memory is known after a run
  Arena room_;                               // for large results whose targets are not padded
};

}   // namespace tapedeck::compiled
