// A compiled function under a tape of the caller: as one op, compared with its ops, and with the whole step,
// tape included, as a compiled function.
#include "cases.h"

namespace bench {
namespace {

td::Tensor layers(const td::Tensor& w, const td::Tensor& x) {
  td::Tensor h = x;
  for (int i = 0; i < 10; ++i)
    h = tanh(h * w + x) * 0.5;
  return sum(h);
}
td::Tensor two_ops(const td::Tensor& w, const td::Tensor& x) { return sum(w * x); }

template <class F> void run(const std::string& what, std::int64_t n, F f) {
  const std::string name = "one op: " + what + ", n=" + std::to_string(n);
  if (!is_chosen(name)) return;
  const td::Tensor w = numbers({n}, 1), x = numbers({n}, 2);
  const auto gradient_of = [](const auto& loss) {
    return [loss](const td::Tensor& a, const td::Tensor& b) {
      td::GradientTape tape;
      tape.watch(a);
      return tape.gradient(loss(a, b), a).dense();
    };
  };
  const auto one_op = td::compile(f, {.as_one_op = true});
  const auto eager = gradient_of(f);
  const auto one = gradient_of([&](const td::Tensor& a, const td::Tensor& b) { return one_op(a, b); });
  const auto whole = td::compile(eager);
  for (int call = 0; call < 3; ++call)   // it becomes one op in its third call
    (void)one(w, x);
  const Run runs[] = {[&] { (void)eager(w, x); }, [&] { (void)one(w, x); }, [&] { (void)whole(w, x); }};
  const Race race(runs);
  report(name, race.ratio(0, 1), "times as fast as its ops", {},
         "the whole step " + std::to_string(race.ratio(0, 2)).substr(0, 4) + " times");
}

}   // namespace

void run_one_op() {
  for (const std::int64_t n : {1, 64, 4096, 100'000})
    run("gradient of ten layers", n, layers);
  run("gradient of two ops", 64, two_ops);
}

}   // namespace bench
