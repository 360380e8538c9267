// The programs of scalar_programs.h: milliseconds, the minimum of several runs, for each pair of modes of the
// outer and the inner derivative.
#include <chrono>
#include <cstdio>
#include <limits>

#include "scalar_programs.h"

namespace {

using programs::Mode;

template <class F> void report(const char* name, const F& run) {
  using Clock = std::chrono::steady_clock;
  double least = std::numeric_limits<double>::infinity(), result = 0;
  const auto end = Clock::now() + std::chrono::milliseconds(500);
  do {
    const auto begin = Clock::now();
    result = run();
    least = std::min(least, std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
  } while (Clock::now() < end);
  std::printf("%-12s %8.3f ms   (%.9g)\n", name, least, result);
}
template <Mode outer, Mode inner> void both(const char* modes) {
  char name[32];
  std::snprintf(name, sizeof name, "saddle %s", modes);
  report(name, [] { return programs::saddle<outer, inner>({1.0, 1.0})[0]; });
  std::snprintf(name, sizeof name, "particle %s", modes);
  report(name, [] { return programs::particle<outer, inner>(0.0); });
}

}   // namespace

int main() {
  both<Mode::reverse, Mode::reverse>("rr");
  both<Mode::forward, Mode::forward>("ff");
  both<Mode::forward, Mode::reverse>("fr");
  both<Mode::reverse, Mode::forward>("rf");
}
