// Gradients of large tensors through many ops, for which peak memory matters: the time, and the peak above
// the memory that the process used before.
#include <sys/resource.h>

#include "bench.h"
#include "tapedeck/tapedeck.h"

namespace td = tapedeck;
using benchmark::State;

namespace {

double peak_megabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

// Many sums of one tensor.

constexpr int kTerms = 200;

double factor(int i) { return 0.5 + 0.001 * i; }

td::Tensor sum_of_sums(const td::Tensor& x) {
  td::Tensor total;
  for (int i = 0; i < kTerms; ++i) {
    const td::Tensor term = td::sum(x * factor(i));
    total = i == 0 ? term : total + term;
  }
  return total;
}

td::Tensor sum_of_products(const td::Tensor& x) {
  td::Tensor y = x * factor(0);
  for (int i = 1; i < kTerms; ++i)
    y = y + x * factor(i);
  return td::sum(y);
}

class FanOut {
 public:
  explicit FanOut(td::Tensor (*f)(const td::Tensor&)) : f_(f) {}
  td::Gradient operator()() const {
    td::GradientTape tape;
    tape.watch(x_);
    return tape.gradient(f_(x_), x_);
  }

 private:
  td::Tensor (*f_)(const td::Tensor&);
  td::Tensor x_ = td::ones({4'000'000});
};
struct FanOutSum : FanOut {
  FanOutSum() : FanOut(sum_of_sums) {}
};
struct FanOutAdd : FanOut {
  FanOutAdd() : FanOut(sum_of_products) {}
};

// 500 elementwise ops one after the other.

class Deep {
 public:
  td::Tensor forward() const {
    td::Tensor y = x_;
    for (int i = 0; i < 100; ++i) {
      y = std::move(y) * w_;
      y = std::move(y) + b_;
      y = td::tanh(std::move(y));
      y = td::sin(std::move(y));
      y = -std::move(y);
    }
    return y;
  }

 protected:
  td::Tensor x_ = td::random::normal({1'000'000}, {.seed = 1}),
             w_ = td::random::normal({1'000'000}, {.seed = 2}),
             b_ = td::random::normal({1'000'000}, {.seed = 3});
};
struct DeepForward : Deep {
  td::Tensor operator()() const { return forward(); }
};
struct DeepGradient : Deep {
  std::array<td::Gradient, 3> operator()() const {
    td::GradientTape tape;
    tape.watch(x_), tape.watch(w_), tape.watch(b_);
    return tape.gradient(td::sum(forward()), x_, w_, b_);
  }
};

template <class F> void time_of(State& state) {
  const F f;
  bench::each(state, f);
}

template <class F> void peak_of(State& state) {
  static const double before = peak_megabytes();
  const F f;
  bench::each(state, f);
  state.counters["MB"] = peak_megabytes() - before;
}

void slow(benchmark::internal::Benchmark* b) {
  b->Unit(benchmark::kMillisecond)->UseRealTime()->Repetitions(3);
}

BENCHMARK(time_of<FanOutSum>)->Name("memory/fan_out_sum/4Mx200")->Apply(slow);
BENCHMARK(peak_of<FanOutSum>)->Name("memory/fan_out_sum_peak/4Mx200")->Apply(slow);
BENCHMARK(time_of<FanOutAdd>)->Name("memory/fan_out_add/4Mx200")->Apply(slow);
BENCHMARK(peak_of<FanOutAdd>)->Name("memory/fan_out_add_peak/4Mx200")->Apply(slow);
BENCHMARK(time_of<DeepForward>)->Name("memory/deep_forward/1M")->Apply(slow);
BENCHMARK(time_of<DeepGradient>)->Name("memory/deep/1M")->Apply(slow);
BENCHMARK(peak_of<DeepGradient>)->Name("memory/deep_peak/1M")->Apply(slow);

}   // namespace

int main(int argc, char** argv) { return bench::run(argc, argv, td::set_num_threads); }
