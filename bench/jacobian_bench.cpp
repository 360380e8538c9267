// The Jacobian of a network with 100 outputs and one or another number of units: all rows in one pass, all columns in one, and a
// gradient for each row.
#include "bench.h"
#include "tapedeck/gradients.h"
#include "tapedeck/tapedeck.h"

namespace td = tapedeck;
using benchmark::State;

namespace {

constexpr std::int64_t kIn = 64, kOut = 100;

struct Network {
  explicit Network(std::int64_t units)
      : a(td::random::normal({kIn, units}, {.seed = 1}) * 0.1), b(td::random::normal({units}, {.seed = 2})), c(td::random::normal({units, kOut}, {.seed = 3}) * 0.1),
        d(td::random::normal({kOut}, {.seed = 4})), x(td::random::normal({1, kIn}, {.seed = 5})) {}
  td::Tensor a, b, c, d, x;

  td::Tensor operator()(const td::Tensor& in) const { return td::matmul(td::tanh(td::matmul(in, a) + b), c) + d; }
};

void jacobian(State& state, const td::JacobianOptions& options) {
  const Network network(state.range(0));
  bench::each(state, [&] { return td::jacobian(network, network.x, options); });
}
void rows(State& state) { jacobian(state, {.mode = td::JacobianMode::reverse}); }
void columns(State& state) { jacobian(state, {.mode = td::JacobianMode::forward}); }

void gradients(State& state) {
  const Network network(state.range(0));
  bench::each(state, [&] {
    td::GradientTape tape({.persistent = true});
    tape.watch(network.x);
    const td::Tensor y = network(network.x);
    tape.stop();
    std::vector<td::Tensor> all;
    for (std::int64_t i = 0; i < kOut; ++i)
      all.push_back(tape.gradient(y, network.x, {.output_gradients = {td::pad(td::ones({1, 1}), {0, i}, {0, kOut - 1 - i})}})[0].dense());
    return td::concat(all, 0);
  });
}

void units(benchmark::internal::Benchmark* b) { b->Arg(64)->Arg(256)->Unit(benchmark::kMicrosecond)->UseRealTime(); }

BENCHMARK(rows)->Name("jacobian/rows")->Apply(units);
BENCHMARK(columns)->Name("jacobian/columns")->Apply(units);
BENCHMARK(gradients)->Name("jacobian/gradient_calls")->Apply(units);

}  // namespace

int main(int argc, char** argv) { return bench::run(argc, argv, td::set_num_threads); }
