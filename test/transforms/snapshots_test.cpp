// Schedules of snapshots: the numbers of runs are those of the closed formulas, and no more states are kept
// than allowed. Expected values: Griewank and Walther 2000, and an enumeration of all schedules.
#include "transforms/snapshots.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>

namespace snapshots_test {

using namespace tapedeck;

namespace {

struct Counts {
  std::int64_t plain = 0, adjoints = 0, most_of_a_step = 0;
};

// Walks through a reversal, and checks that each part begins with a state that is kept.
Counts reversed(std::int64_t steps, std::int64_t snapshots, std::vector<std::int64_t> kept = {0}) {
  Counts c;
  std::map<std::int64_t, std::int64_t> runs;
  std::vector<std::int64_t> states = kept;
  for (Reversal r(steps, snapshots, kept); r.goes_on();) {
    const Reversal::Part part = r.next();
    REQUIRE(part.snapshot < static_cast<std::int64_t>(states.size()));
    states.resize(static_cast<std::size_t>(part.snapshot) + 1);
    REQUIRE(states.back() == part.from);
    REQUIRE(part.to >= part.from);
    c.plain += part.to - part.from;
    if (steps <= 1000)
      for (std::int64_t i = part.from; i < part.to; ++i)
        c.most_of_a_step = std::max(c.most_of_a_step, ++runs[i]);
    if (part.keeps) {
      states.push_back(part.to);
      REQUIRE(states.size() <= static_cast<std::size_t>(snapshots));
    } else {
      REQUIRE(part.to == steps - 1 - c.adjoints);
      ++c.adjoints;
    }
  }
  CHECK(c.adjoints == steps);
  return c;
}

// The least number of runs over all schedules.
std::int64_t enumerated(std::int64_t steps, std::int64_t snapshots) {
  static std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> known;
  if (steps <= 1) return 0;
  if (snapshots == 1) return steps * (steps - 1) / 2;
  const auto [at, is_new] = known.try_emplace({steps, snapshots}, steps * steps);
  if (is_new) {
    std::int64_t least = steps * (steps - 1) / 2;
    for (std::int64_t m = 1; m < steps; ++m)
      least = std::min(least, m + enumerated(steps - m, snapshots - 1) + enumerated(m, snapshots));
    known[{steps, snapshots}] = least;
  }
  return known[{steps, snapshots}];
}
// The least number of runs after the loop has ended, over all choices of kept states.
std::int64_t enumerated_after(std::int64_t steps, std::int64_t snapshots) {
  static std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> known;
  if (snapshots == 1 || steps <= 1) return enumerated(steps, snapshots);
  if (const auto at = known.find({steps, snapshots}); at != known.end()) return at->second;
  std::int64_t least = enumerated(steps, snapshots);
  for (std::int64_t m = 1; m < steps; ++m)
    least = std::min(least, enumerated(m, snapshots) + enumerated_after(steps - m, snapshots - 1));
  return known[{steps, snapshots}] = least;
}

}   // namespace

TEST_CASE("checkpoint-runs, checkpoint-reach-5, checkpoint-reach-10", "[snapshots]") {
  struct Case {
    const char* id;
    std::int64_t steps, snapshots, plain, of_a_step;
  };
  for (const Case& c :
       {Case{"checkpoint-runs-10-1", 10, 1, 45, 9}, Case{"checkpoint-runs-10-3", 10, 3, 15, 2},
        Case{"checkpoint-runs-64-4", 64, 4, 200, 4}, Case{"checkpoint-runs-252-5", 252, 5, 1050, 5},
        Case{"checkpoint-runs-10-10", 10, 10, 9, 1}, Case{"checkpoint-runs-10-50", 10, 50, 9, 1},
        Case{"checkpoint-runs-1000-10", 1000, 10, 3636, 4},
        Case{"checkpoint-runs-10000-12", 10'000, 12, 51'432, 6},
        Case{"checkpoint-runs-1000000-20", 1'000'000, 20, 6'815'960, 8}}) {
    CAPTURE(c.id);
    const Counts counts = reversed(c.steps, c.snapshots);
    CHECK(counts.plain == c.plain);
    CHECK(least_runs(c.steps, c.snapshots) == c.plain);
    CHECK(most_runs(c.steps, c.snapshots) == c.of_a_step);
    if (c.steps <= 1000) CHECK(counts.most_of_a_step == c.of_a_step);
  }
  const std::int64_t five[] = {6, 21, 56, 126, 252, 462}, ten[] = {11, 66, 286, 1001, 3003, 8008};
  for (std::int64_t r = 1; r <= 6; ++r) {
    CHECK(reach(5, r) == five[r - 1]);
    CHECK(reach(10, r) == ten[r - 1]);
  }
  CHECK(reach(1000, 1000) == std::numeric_limits<std::int64_t>::max());
}

TEST_CASE("no schedule has fewer runs", "[snapshots]") {
  for (std::int64_t snapshots = 1; snapshots <= 8; ++snapshots)
    for (std::int64_t steps = 0; steps <= 60; ++steps) {
      CAPTURE(steps, snapshots);
      CHECK(reversed(steps, snapshots).plain == enumerated(steps, snapshots));
    }
}

TEST_CASE("checkpoint-backward: runs after the end of a loop", "[snapshots]") {
  struct Case {
    const char* id;
    std::int64_t snapshots, steps, runs;
  };
  for (const Case& c :
       {Case{"checkpoint-backward-1-5", 1, 5, 15}, Case{"checkpoint-backward-9-5", 9, 5, 5},
        Case{"checkpoint-backward-2-5", 2, 5, 8}, Case{"checkpoint-backward-4-4", 4, 4, 4},
        Case{"checkpoint-backward-4-6", 4, 6, 8}, Case{"checkpoint-backward-4-10", 4, 10, 16},
        Case{"checkpoint-backward-4-11", 4, 11, 18}, Case{"checkpoint-backward-4-12", 4, 12, 20},
        Case{"checkpoint-backward-4-14", 4, 14, 24}}) {
    CAPTURE(c.id);
    OnlineSnapshots online(c.snapshots);
    for (std::int64_t i = 0; i < c.steps; ++i)
      online.offer();
    const Counts counts = reversed(c.steps, c.snapshots, online.kept());
    CHECK(counts.plain + counts.adjoints == c.runs);
  }
}

TEST_CASE("checkpoint-online-default: the fewest snapshots for the best schedule", "[snapshots]") {
  const std::pair<std::int64_t, std::int64_t> cases[] = {{1, 1},    {2, 1},    {10, 4},   {50, 9},
                                                         {100, 13}, {614, 34}, {1000, 44}};
  for (const auto& [steps, snapshots] : cases) {
    CAPTURE(steps, snapshots);
    std::int64_t fewest = 1;
    while ((fewest + 1) * (fewest + 2) <= 2 * steps)
      ++fewest;
    CHECK(fewest == snapshots);
    OnlineSnapshots online(snapshots);
    for (std::int64_t i = 0; i < steps; ++i)
      online.offer();
    const Counts counts = reversed(steps, snapshots, online.kept());
    CHECK(counts.most_of_a_step <= 1);   // besides the first run, and that for the gradient
    if (steps <= 100) CHECK(counts.plain == enumerated_after(steps, snapshots));
  }
}

TEST_CASE("online snapshots are the best ones up to (n + 1) (n + 2) / 2 steps", "[snapshots]") {
  for (std::int64_t n = 1; n <= 8; ++n) {
    OnlineSnapshots online(n);
    std::vector<std::int64_t> before;
    for (std::int64_t steps = 1; steps <= 100; ++steps) {
      CAPTURE(n, steps);
      const std::int64_t k = online.offer();
      // The states that are kept are those before, but for number k, and maybe the new one.
      std::vector<std::int64_t> expected = before;
      if (k >= 0 && k < static_cast<std::int64_t>(before.size())) expected.erase(expected.begin() + k);
      if (k >= 0) expected.push_back(steps - 1);
      before = online.kept();
      CHECK(before == expected);
      CHECK(before[0] == 0);
      const Counts counts = reversed(steps, n, online.kept());
      const std::int64_t best = enumerated_after(steps, n) + steps;
      if (2 * steps <= (n + 1) * (n + 2)) CHECK(counts.plain + steps == best);
      CHECK(6 * (counts.plain + steps) <= 7 * best);   // and close to them after
    }
  }
}

}   // namespace snapshots_test
