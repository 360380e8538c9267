// Two functions timed turn by turn in one process. Times are those of the thread on its processor, the least of some rounds.
#pragma once
#include <time.h>

#include <algorithm>

namespace bench {

inline double now() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

// Microseconds a call.
struct Pair { double ours, theirs; double ratio() const { return ours / theirs; } };
template <class F, class G> Pair measured(const F& ours, const G& theirs) {
  const auto count = [](const auto& f) {
    f();
    const double begin = now();
    f();
    return static_cast<int>(std::clamp(1e-3 / (now() - begin + 1e-9), 1.0, 1000.0));
  };
  const int n = count(ours), m = count(theirs);
  const auto once = [](const auto& f, int times) {
    const double begin = now();
    for (int i = 0; i < times; ++i) f();
    return (now() - begin) / times * 1e6;
  };
  Pair best{1e18, 1e18};
  double spent = 0;
  for (int round = 0; round < 7 || (round < 40 && spent < 60e3); ++round) {
    const Pair p{once(ours, n), once(theirs, m)};
    best = {std::min(best.ours, p.ours), std::min(best.theirs, p.theirs)};
    spent += p.ours * n + p.theirs * m;
    if (spent > 2e6) break;
  }
  return best;
}

}  // namespace bench
