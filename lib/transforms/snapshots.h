// Which states of a loop to keep so that it can be reversed with few of them. A state is all that a step
// reads; the others are computed again from the nearest one before. The initial state is always kept and
// counts as one of the snapshots.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

namespace tapedeck {

/// The most steps that `snapshots` states reverse if no step runs more than `runs` times before the run whose
/// adjoint is taken: C(snapshots + runs, runs), or the largest integer. Griewank 1992.
std::int64_t reach(std::int64_t snapshots, std::int64_t runs);
/// The least number of runs of steps that reverse a loop of this many steps, without the runs whose adjoints
/// are taken. Preconditions: steps >= 0, snapshots >= 1. Griewank and Walther 2000.
std::int64_t least_runs(std::int64_t steps, std::int64_t snapshots);

/// After how many of these steps the optimal schedule keeps the next state, or, with one snapshot, runs the
/// step whose adjoint comes first. Preconditions: steps >= 2, snapshots >= 1.
std::int64_t next_snapshot(std::int64_t steps, std::int64_t snapshots);
/// How often the optimal schedule runs a step before the run whose adjoint is taken, at most.
std::int64_t most_runs(std::int64_t steps, std::int64_t snapshots);

/// Throws ArgumentError if the gradient of a loop would run a step more than 100 times.
void require_few_runs(std::string_view loop, std::int64_t steps, std::int64_t snapshots);

/// Reverses steps of a loop, from the last one to the first, with the least number of runs.
class Reversal {
 public:
  /// One part of the work: take the state of step `from`, which is snapshot number `snapshot`; run the steps
  /// up to `to`, and then either keep the state of step `to` as the next snapshot, or run step `to` and take
  /// its adjoint. Snapshots with higher numbers are not needed any more.
  struct Part {
    std::int64_t snapshot, from, to;
    bool keeps;
  };

  /// `kept`: the steps of which states are kept already, ascending from 0. At most `snapshots` states are
  /// kept at any time. Preconditions: kept[0] == 0, kept.size() <= snapshots, kept.back() < steps.
  Reversal(std::int64_t steps, std::int64_t snapshots, std::vector<std::int64_t> kept = {0});
  /// Whether a part is left.
  bool goes_on() const { return end_ > 0; }
  /// Precondition: goes_on().
  Part next();

 private:
  std::int64_t end_, snapshots_;   // the number of steps that are not reversed yet
  std::vector<std::int64_t> kept_;
};

/// Chooses the states to keep while a loop runs whose number of steps is not known. Up to (n + 1) (n + 2) / 2
/// steps with n snapshots, as few steps run again as if the number had been known.
class OnlineSnapshots {
 public:
  explicit OnlineSnapshots(std::int64_t snapshots) : snapshots_(snapshots) {}

  /// The state of the next step, counted from 0, exists now. Returns the number of the snapshot that it
  /// replaces, after which those behind move forward by one and it becomes the last; the number of kept
  /// states if it is kept in addition; or -1 if it is not kept.
  std::int64_t offer();
  /// The steps of which states are kept, ascending.
  const std::vector<std::int64_t>& kept() const { return kept_; }

 private:
  std::int64_t runs_until(std::int64_t end, std::int64_t without, bool with_next) const;

  std::int64_t snapshots_, next_ = 0;
  std::vector<std::int64_t> kept_;
};

}   // namespace tapedeck
