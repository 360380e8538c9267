// LoopReplay: a replay of the steps of a loop, whose arguments and results move by fixed distances.
#pragma once
#include "compile/replay/replay.h"

namespace tapedeck::compiled {

/// An address that depends on the index of an entry, and on which of two buffers, 0 or 1, holds the carries.
/// Distances are in bytes. Base: ReadOnly or Writable.
template <class Base> struct MovingPlace {
  Base base = {};
  std::int64_t offset = 0, per_entry = 0, per_buffer = 0;
  bool is_padded = false;   // of a result: whether more may be written, up to a multiple of 64 bytes
  Base at(std::int64_t entry, int buffer) const {
    return base.after(offset + entry * per_entry + (buffer ? per_buffer : 0));
  }
};

class LoopReplay {
 public:
  using Source = MovingPlace<ReadOnly>;
  using Target = MovingPlace<Writable>;

  /// sources, targets: of the arguments and results of the program. An argument whose source has no base is
  /// not read.
  LoopReplay(Replay& replay, std::vector<Source> sources, std::vector<Target> targets,
             std::vector<random::Key> keys);
  LoopReplay(const LoopReplay&) = delete;

  /// Reads arguments with the given buffer, and writes results with the other one.
  void run(std::int64_t entry, int buffer);

 private:
  template <class From, class To> struct Copy {
    From from;
    To to;
    std::int64_t bytes;
  };
  struct Binding {
    ValueId value;
    std::size_t at;   // index of the argument or result
  };

  Replay& replay_;
  const std::vector<Source> sources_;
  const std::vector<Target> targets_;
  const std::vector<random::Key> keys_;
  std::vector<Copy<Source, Writable>> copied_in_;
  std::vector<Copy<ReadOnly, Target>> copied_out_;
  std::vector<Copy<Source, Target>> moves_;   // of results that are arguments, constants or other results
  std::vector<Binding> bound_in_, bound_out_;
  std::vector<std::size_t> late_;   // results whose memory is known after a run
  Arena room_;                      // for large results whose targets are not padded
};

}   // namespace tapedeck::compiled
