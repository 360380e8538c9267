// The Jacobian of a network with 100 outputs, for several numbers of units: all rows in one pass, all columns
// in one pass, and one gradient per row.
#include "bench.h"
#include "differentiated.h"

namespace td = tapedeck;
using benchmark::State;

namespace {

constexpr std::int64_t kIn = 64;

void jacobian(State& state, const td::JacobianOptions& options) {
  const bench::Network network(kIn, state.range(0));
  bench::each(state, [&] { return td::jacobian(network, network.x, options); });
}
void rows(State& state) { jacobian(state, {.mode = td::JacobianMode::reverse}); }
void columns(State& state) { jacobian(state, {.mode = td::JacobianMode::forward}); }

void gradients(State& state) {
  const bench::Network network(kIn, state.range(0));
  bench::each(state, [&] { return bench::gradient_calls(network); });
}

void units(benchmark::internal::Benchmark* b) {
  b->Arg(64)->Arg(256)->Unit(benchmark::kMicrosecond)->UseRealTime();
}

BENCHMARK(rows)->Name("jacobian/rows")->Apply(units);
BENCHMARK(columns)->Name("jacobian/columns")->Apply(units);
BENCHMARK(gradients)->Name("jacobian/gradient_calls")->Apply(units);

}   // namespace

int main(int argc, char** argv) { return bench::run(argc, argv, td::set_num_threads); }
