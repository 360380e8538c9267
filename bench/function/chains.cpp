// 1,000 additions and multiplications one after the other.
#include "cases.h"

namespace bench {
namespace {

constexpr int kOps = 1000;

td::Tensor chain(const td::Tensor& x, const td::Tensor& add, const td::Tensor& by) {
  td::Tensor y = x;
  for (int i = 0; i < kOps / 2; ++i)
    y = y * by + add;
  return y;
}

template <class F> void run(const std::string& name, std::int64_t n, double at_most, const F& f) {
  if (!is_chosen(name)) return;
  // Factors close to 1, since products of many others would become subnormal.
  const td::Tensor x = numbers({n}, 1), add = numbers({n}, 2), by = 1 + 1e-3 * (numbers({n}, 3) - 1);
  const auto recorded = td::compile(f);
  const Run runs[] = {[&] { (void)f(x, add, by); }, [&] { (void)recorded(x, add, by); }};
  const Race race(runs);
  report(name, race.seconds(1) * 1e9 / kOps, "ns an op", {.at_most = at_most}, beside_eager(race, 1, 0));
}

}   // namespace

void run_chains() {
  struct Size {
    std::int64_t n;
    double forward, first, all;
  };
  constexpr double none = std::numeric_limits<double>::infinity();
  for (const Size& s :
       {Size{1, 1.2, 2, 7}, Size{8, 1.2, 4, 11}, Size{64, 6, 10, 20}, Size{10'000, none, none, none}}) {
    const std::string size = ", n=" + std::to_string(s.n);
    run("chain" + size, s.n, s.forward, chain);
    run("chain, gradient of x" + size, s.n, s.first,
        [](const td::Tensor& x, const td::Tensor& add, const td::Tensor& by) {
          td::GradientTape tape;
          tape.watch(x);
          return tape.gradient(chain(x, add, by), x);
        });
    run("chain, all gradients" + size, s.n, s.all,
        [](const td::Tensor& x, const td::Tensor& add, const td::Tensor& by) {
          td::GradientTape tape;
          tape.watch(x), tape.watch(add), tape.watch(by);
          return tape.gradient(chain(x, add, by), x, add, by);
        });
  }
}

}   // namespace bench
