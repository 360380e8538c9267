// Schedules of snapshots, by binomial numbers. In: numbers of steps and of snapshots. Out: what to keep, and
// what to run again.
//
// Reversing l steps with c snapshots keeps a second state after m steps, reverses the last l - m steps with
// c - 1 snapshots, and the first m with c. Where l is between reach(c, r - 1) and reach(c, r), an m is best
// if the two parts are in the same ranges with c, r - 1 and with c - 1, r.
#include "transforms/snapshots.h"

#include <algorithm>
#include <limits>

#include "core/format.h"

namespace tapedeck {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

// The least number of runs r with reach(snapshots, r) >= steps, and that reach.
struct Range {
  std::int64_t runs, reach;
};
Range range_of(std::int64_t steps, std::int64_t snapshots) {
  if (snapshots == 1) return {std::max<std::int64_t>(steps - 1, 0), std::max<std::int64_t>(steps, 1)};
  std::int64_t r = 0, most = 1;
  while (most < steps) {
    ++r;
    most = reach(snapshots, r);
  }
  return {r, most};
}

}   // namespace

std::int64_t reach(std::int64_t snapshots, std::int64_t runs) {
  std::int64_t n = 1;   // C(k, k - larger) for k from `larger` on
  const std::int64_t larger = std::max(snapshots, runs), smaller = std::min(snapshots, runs);
  for (std::int64_t i = 1; i <= smaller; ++i) {
    if (__builtin_mul_overflow(n, larger + i, &n)) return kMost;
    n /= i;
  }
  return n;
}

std::int64_t least_runs(std::int64_t steps, std::int64_t snapshots) {
  if (steps <= 1) return 0;
  const std::int64_t r = range_of(steps, snapshots).runs;
  return r * steps - reach(snapshots + 1, r - 1);
}

std::int64_t next_snapshot(std::int64_t steps, std::int64_t snapshots) {
  if (snapshots == 1) return steps - 1;
  const std::int64_t r = range_of(steps, snapshots).runs;
  return std::min(reach(snapshots, r - 1), steps - reach(snapshots - 1, r - 1));
}
std::int64_t most_runs(std::int64_t steps, std::int64_t snapshots) { return range_of(steps, snapshots).runs; }

void require_few_runs(std::string_view loop, std::int64_t steps, std::int64_t snapshots) {
  constexpr std::int64_t most = 100;   // eager gradients are nested as deep
  if (most_runs(steps, snapshots) <= most) return;
  std::int64_t enough = snapshots;
  while (most_runs(steps, enough) > most)
    ++enough;
  throw_error<ArgumentError>(
      "{}: with snapshots = {}, the gradient of {} steps would run some of them {} times; use {} or more",
      loop, snapshots, steps, most_runs(steps, snapshots), enough);
}

Reversal::Reversal(std::int64_t steps, std::int64_t snapshots, std::vector<std::int64_t> kept)
    : end_(steps), snapshots_(snapshots), kept_(std::move(kept)) {}

Reversal::Part Reversal::next() {
  while (kept_.back() >= end_)
    kept_.pop_back();
  const std::int64_t from = kept_.back(), steps = end_ - from,
                     number = static_cast<std::int64_t>(kept_.size()) - 1, free = snapshots_ - number;
  if (steps > 1 && free > 1) {
    const std::int64_t to = from + next_snapshot(steps, free);
    kept_.push_back(to);
    return {number, from, to, true};
  }
  return {number, from, --end_, false};
}

// The runs of a backward pass if the loop ended after step end - 1, with the states that are kept, but for
// number `without`, and with that of step end - 1 if `with_next`.
std::int64_t OnlineSnapshots::runs_until(std::int64_t end, std::int64_t without, bool with_next) const {
  std::int64_t runs = 0, number = 0, from = 0;
  const auto until = [&](std::int64_t to) {
    runs += least_runs(to - from, snapshots_ - number++), from = to;
  };
  for (std::int64_t k = 1; k < static_cast<std::int64_t>(kept_.size()); ++k)
    if (k != without) until(kept_[static_cast<std::size_t>(k)]);
  if (with_next) until(end - 1);
  until(end);
  return runs;
}

std::int64_t OnlineSnapshots::offer() {
  const std::int64_t step = next_++, n = static_cast<std::int64_t>(kept_.size());
  if (n < snapshots_) {
    kept_.push_back(step);
    return n;
  }
  std::int64_t best = -1, least = runs_until(step + 1, -1, false);
  for (std::int64_t k = n; k-- > 1;)   // of equal ones, the earliest
    if (const std::int64_t runs = runs_until(step + 1, k, true); runs <= least) best = k, least = runs;
  if (best < 0) return -1;
  kept_.erase(kept_.begin() + best);
  kept_.push_back(step);
  return best;
}

}   // namespace tapedeck
