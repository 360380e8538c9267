// Times two functions alternately in one process. Times are CPU times of the thread, the minimum over several
// rounds.
#pragma once
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace bench {

inline double now() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

// Microseconds per call.
struct Pair {
  double ours, theirs;
  double ratio() const { return ours / theirs; }
};
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
    for (int i = 0; i < times; ++i)
      f();
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

/// Two functions that compute the same results, a check that the results agree, and a note on how they
/// differ.
struct Race {
  std::string name, size;
  std::function<void()> ours, theirs;
  std::function<bool()> agree;
  std::string note = {};
};
/// Times the pairs whose names contain one of the words (all if no word is given). Prints for each the factor
/// by which tapedeck is faster. Returns the exit status of main.
inline int run(const std::vector<Race>& races, const std::vector<std::string_view>& words) {
  const char* row = "%-28s %12s %12s %12s %8s%s\n";
  std::printf(row, "case, us", "size", "tapedeck", "libtorch", "times", "");
  for (const Race& r : races) {
    if (!words.empty() && std::none_of(words.begin(), words.end(), [&](std::string_view w) {
          return r.name.find(w) != std::string::npos;
        }))
      continue;
    if (!r.agree()) return std::printf("%s %s: the results differ\n", r.name.c_str(), r.size.c_str()), 1;
    const Pair p = measured(r.ours, r.theirs);
    const auto figure = [](double value, const char* format) {
      char text[32];
      std::snprintf(text, sizeof text, format, value);
      return std::string(text);
    };
    const auto time = [&](double us) { return figure(us, us < 10 ? "%.2f" : "%.0f"); };
    std::printf(row, r.name.c_str(), r.size.c_str(), time(p.ours).c_str(), time(p.theirs).c_str(),
                figure(1 / p.ratio(), "%.2f").c_str(), r.note.empty() ? "" : ("  " + r.note).c_str());
    std::fflush(stdout);
  }
  return 0;
}

}   // namespace bench
