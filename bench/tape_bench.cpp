// Overhead of an op beyond its arithmetic: a chain of adds and muls on a few elements, with all operands
// watched.
#include <chrono>

#include "bench.h"
#include "tapedeck/tapedeck.h"

namespace td = tapedeck;
using benchmark::State;

namespace {

constexpr int kOps = 1000;

struct Chain {
  explicit Chain(const State& state) : shape{state.range(0)} {}
  td::Tensor run() const {
    td::Tensor y = x;
    for (int i = 0; i < kOps / 2; ++i) {
      y = y + a;
      y = y * m;
    }
    return y;
  }
  void watch(td::GradientTape& tape) const { tape.watch(x), tape.watch(a), tape.watch(m); }

  td::Shape shape;
  td::Tensor x = td::ones(shape), a = td::full(shape, 1e-3), m = td::full(shape, 0.999);
};

class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

void report_ns_per_op(State& state) {
  using Counter = benchmark::Counter;
  state.counters["ns/op"] = Counter(
      1e-9 * kOps, static_cast<Counter::Flags>(Counter::kIsIterationInvariantRate | Counter::kInvert));
}

void no_gradient(State& state) {
  const Chain chain(state);
  bench::each(state, [&] { return chain.run(); });
  report_ns_per_op(state);
}

void recorded(State& state) {
  const Chain chain(state);
  for (auto _ : state) {
    td::GradientTape tape;
    const Stopwatch watch;
    chain.watch(tape);
    const td::Tensor y = chain.run();
    state.SetIterationTime(watch.seconds());
  }
  report_ns_per_op(state);
}

void backward(State& state) {
  const Chain chain(state);
  for (auto _ : state) {
    td::GradientTape tape;
    chain.watch(tape);
    const td::Tensor y = chain.run();
    const Stopwatch watch;
    benchmark::DoNotOptimize(tape.gradient(td::sum(y), chain.x, chain.a, chain.m));
    state.SetIterationTime(watch.seconds());
  }
  report_ns_per_op(state);
}

void small(benchmark::internal::Benchmark* b) { b->Arg(1)->Arg(8)->Arg(64); }

BENCHMARK(no_gradient)->Name("overhead/no_gradient")->Apply(small)->UseRealTime();
BENCHMARK(recorded)->Name("overhead/recorded")->Apply(small)->UseManualTime();
BENCHMARK(backward)->Name("overhead/backward")->Apply(small)->UseManualTime();

}   // namespace

int main(int argc, char** argv) { return bench::run(argc, argv, td::set_num_threads); }
