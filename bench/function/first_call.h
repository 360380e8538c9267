// What the first call of a compiled function takes: recording, planning, compiling and a run.
#pragma once
#include <chrono>

#include "../median.h"
#include "../report.h"

namespace bench {

/// The median of what the first call of td::compile(f) takes beyond so many calls of f, in microseconds for
/// each node of the program.
template <class F, class... X>
double first_call_us_a_node(int rounds, double calls_of_f, const F& f, const X&... x) {
  const auto seconds = [](const auto& run) {
    const auto begin = std::chrono::steady_clock::now();
    run();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  std::vector<double> a_node;
  for (int round = 0; round < rounds; ++round) {
    const auto recorded = td::compile(f);
    const double eager = seconds([&] { (void)f(x...); }), first = seconds([&] { (void)recorded(x...); });
    a_node.push_back((first - calls_of_f * eager) / static_cast<double>(recorded.programs()[0].nodes));
  }
  return median(a_node) * 1e6;
}

}   // namespace bench
