// A user's elementwise function, value and gradients: as one op with `map`, and composed of ops. Compiled for
// this machine; and, with PLAIN defined, as a user's program is compiled by default.
#include "bench.h"
#include "tapedeck/map.h"
#include "tapedeck/tapedeck.h"

namespace td = tapedeck;
using benchmark::State;

namespace {

constexpr auto damped = [](auto x, auto a, auto b) { return a * exp(-b * x * x); };
constexpr auto as_map = [](const td::Tensor& x, const td::Tensor& a, const td::Tensor& b) {
  return td::map(damped, x, a, b);
};

struct Inputs {
  explicit Inputs(std::int64_t n)
      : x(td::random::normal({n}, {.seed = 1})),
        a(td::random::normal({n}, {.seed = 2})),
        b(td::random::uniform({n}, {.seed = 3})) {}
  td::Tensor x, a, b;
};

template <class F> void value(State& state, const F& f) {
  const Inputs in(state.range(0));
  bench::each(state, [&] { return f(in.x, in.a, in.b); });
}
template <class F> void gradients(State& state, const F& f) {
  const Inputs in(state.range(0));
  const td::Sources sources{in.x, in.a, in.b};
  const td::GradientOptions options{
      .output_gradients = std::vector<td::Tensor>{td::random::normal({state.range(0)}, {.seed = 4})}};
  bench::each(state, [&] {
    td::GradientTape tape;
    tape.watch(in.x), tape.watch(in.a), tape.watch(in.b);
    return tape.gradient(td::Targets(f(in.x, in.a, in.b)), sources, options);
  });
}

void sizes(benchmark::internal::Benchmark* b) {
  b->Arg(10'000)->Arg(1'000'000)->Unit(benchmark::kMicrosecond)->UseRealTime();
}

#ifdef PLAIN
BENCHMARK_CAPTURE(value, map, as_map)->Name("map/damped_plain")->Apply(sizes);
BENCHMARK_CAPTURE(gradients, map, as_map)->Name("map/damped_grad_plain")->Apply(sizes);
#else
BENCHMARK_CAPTURE(value, map, as_map)->Name("map/damped")->Apply(sizes);
BENCHMARK_CAPTURE(gradients, map, as_map)->Name("map/damped_grad")->Apply(sizes);
BENCHMARK_CAPTURE(value, ops, damped)->Name("map/damped_by_ops")->Apply(sizes);
BENCHMARK_CAPTURE(gradients, ops, damped)->Name("map/damped_grad_by_ops")->Apply(sizes);
#endif

}   // namespace

int main(int argc, char** argv) { return bench::run(argc, argv, td::set_num_threads); }
