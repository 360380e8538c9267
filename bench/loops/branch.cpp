// A branch of few ops.
#include <cstdio>

#include "cases.h"

namespace bench {

void run_branch() {
  const std::string name = "cond with two branches of 2 ops";
  if (!is_chosen(name)) return;
  const auto first = [](const td::Tensor& x) { return x * 2.0 + 1.0; };
  const auto second = [](const td::Tensor& x) { return x * x - 3.0; };
  const auto either = [=](const td::Tensor& x) { return td::cond(x > 0.0, {x}, first, second); };
  const auto by_hand = [](double x) { return x > 0 ? x * 2 + 1 : x * x - 3; };
  const auto recorded = td::compile(either);
  const auto recorded_first = td::compile(first);
  for (const double x : {1.5, -1.5, 2.5})
    if (recorded(number(x)).item() != by_hand(x)) throw std::runtime_error(name + ": another result");

  const td::Tensor x = number(1.5);
  volatile double in = 1.5, out = 0;
  const Run runs[] = {[&] { (void)recorded(x); }, [&] { (void)recorded_first(x); }, [&] { (void)either(x); },
                      [&] { out = by_hand(in); }};
  const Race r(runs);
  char remark[160];
  std::snprintf(remark, sizeof remark, "%.4g ns, the branch alone %.4g, eager %.4g, by hand %.2g ns",
                r.seconds(0) * 1e9, r.seconds(1) * 1e9, r.seconds(2) * 1e9, r.seconds(3) * 1e9);
  report(name, r.difference(0, 1) * 1e9, "ns over the branch", {.at_most = 60}, remark);
}

}   // namespace bench
