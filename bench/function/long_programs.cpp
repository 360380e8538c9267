// Costs that do not depend on the function: many ops on many elements, a first call, and two threads.
#include <sched.h>

#include "cases.h"
#include "first_call.h"

namespace bench {
namespace {

td::Tensor deep(const td::Tensor& x, int ops) {
  td::Tensor y = x;
  for (int i = 0; i < ops / 4; ++i)
    y = td::tanh(y * 1.01 + 0.1) * y;
  return y;
}
td::Gradient gradient_of_deep(const td::Tensor& x, int ops) {
  td::GradientTape tape;
  tape.watch(x);
  return tape.gradient(td::sum(deep(x, ops)), x);
}

void run_deep() {
  const std::string name = "500 ops on 10^6, gradient";
  if (!is_chosen(name)) return;
  const td::Tensor x = numbers({1'000'000}, 1);
  const auto f = [](const td::Tensor& t) { return gradient_of_deep(t, 500); };
  const auto recorded = td::compile(f);
  const Run runs[] = {[&] { (void)f(x); }, [&] { (void)recorded(x); }};
  const Race race(runs);
  report(name, race.ratio(0, 1), "of eager's speed", {.at_least = 2}, beside_eager(race, 1, 0));
  report(name + ", memory", static_cast<double>(recorded.programs()[0].arena_bytes) * 1e-6, "MB between",
         {.at_most = 16});
}

// Recording, planning and the first run of functions that are compiled again each time.
void run_first_call() {
  const std::string name = "first call";
  if (!is_chosen(name)) return;
  for (const std::int64_t n : {16, 100'000}) {
    const td::Tensor x = numbers({n}, 1);
    const auto f = [](const td::Tensor& t) { return gradient_of_deep(t, 200); };
    report(name + ", n=" + std::to_string(n), first_call_us_a_node(20, 3, f, x), "us a node over 3x",
           {.at_most = 20});
  }
}

// The other cases run on one core.
void use_all_cores() {
  cpu_set_t all;
  CPU_ZERO(&all);
  for (int core = 0; core < CPU_SETSIZE; ++core)
    CPU_SET(core, &all);
  sched_setaffinity(0, sizeof all, &all);
}

void run_two_threads() {
  const std::string name = "two threads, sum of tanh(x w + b), n=16000000";
  if (!is_chosen(name)) return;
  const td::Tensor x = numbers({16'000'000}, 1, -1), w = numbers({16'000'000}, 2),
                   b = numbers({16'000'000}, 3);
  const auto recorded = td::compile([](const td::Tensor& p, const td::Tensor& q, const td::Tensor& r) {
    return td::sum(td::tanh(p * q + r));
  });
  const auto with = [&](int threads) {
    return [&, threads] {
      td::set_num_threads(threads);
      (void)recorded(x, w, b);
    };
  };
  const Run runs[] = {with(1), with(2)};
  use_all_cores();
  const Race race(runs);
  td::set_num_threads(1);
  report(name, race.ratio(0, 1), "of one thread", {.at_least = 1.6});
}

}   // namespace

void run_long_programs() {
  run_deep();
  run_first_call();
  run_two_threads();
}

}   // namespace bench
