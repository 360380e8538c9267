// Derivatives of Rosenbrock's function in f64: gradient, Hessian, and a product of the Hessian with a vector.
#include "bench.h"
#include "tapedeck/gradients.h"
#include "tapedeck/tapedeck.h"

namespace td = tapedeck;
using benchmark::State;

namespace {

td::Tensor rosenbrock(const td::Tensor& x) {
  const std::int64_t n = x.size() - 1;
  const td::Tensor a = td::slice(x, {0}, {n}), b = td::slice(x, {1}, {n});
  return td::sum(100 * td::square(b - a * a) + td::square(1 - a));
}

td::Tensor points(const State& state) {
  const std::int64_t n = state.range(0);
  return td::arange(0, static_cast<double>(n), 1, td::DType::f64) * (2 / static_cast<double>(n - 1)) - 1;
}

td::Tensor gradient_at(const td::Tensor& x) {
  td::GradientTape tape;
  tape.watch(x);
  return tape.gradient(rosenbrock(x), x).dense();
}

void gradient(State& state) {
  const td::Tensor x = points(state);
  bench::each(state, [&] { return gradient_at(x); });
}

void hessian(State& state) {
  const td::Tensor x = points(state);
  bench::each(state, [&] { return td::hessian(rosenbrock, x); });
}

void hessian_vector_product(State& state) {
  const td::Tensor x = points(state), v = td::ones(x.shape(), td::DType::f64);
  bench::each(state, [&] { return td::hessian_vector_product(rosenbrock, x, v); });
}

BENCHMARK(gradient)->Name("rosenbrock/gradient")->Arg(100)->Arg(1'000'000)->Unit(benchmark::kMicrosecond)->UseRealTime();
BENCHMARK(hessian)->Name("rosenbrock/hessian")->Arg(100)->Unit(benchmark::kMicrosecond)->UseRealTime();
BENCHMARK(hessian_vector_product)->Name("rosenbrock/hvp")->Arg(1'000'000)->Unit(benchmark::kMicrosecond)->UseRealTime();

}  // namespace

int main(int argc, char** argv) { return bench::run(argc, argv, td::set_num_threads); }
