// Derivatives of Rosenbrock's function in f64: the gradient, the Hessian, and a Hessian-vector product.
#include "bench.h"
#include "differentiated.h"

namespace td = tapedeck;
using benchmark::State;

namespace {

td::Tensor gradient_at(const td::Tensor& x) {
  td::GradientTape tape;
  tape.watch(x);
  return tape.gradient(bench::rosenbrock(x), x).dense();
}

void gradient(State& state) {
  const td::Tensor x = bench::points(state.range(0));
  bench::each(state, [&] { return gradient_at(x); });
}

void hessian(State& state) {
  const td::Tensor x = bench::points(state.range(0));
  bench::each(state, [&] { return td::hessian(bench::rosenbrock, x); });
}

void hessian_vector_product(State& state) {
  const td::Tensor x = bench::points(state.range(0)), v = td::ones(x.shape(), td::DType::f64);
  bench::each(state, [&] { return td::hessian_vector_product(bench::rosenbrock, x, v); });
}

BENCHMARK(gradient)
    ->Name("rosenbrock/gradient")
    ->Arg(100)
    ->Arg(1'000'000)
    ->Unit(benchmark::kMicrosecond)
    ->UseRealTime();
BENCHMARK(hessian)->Name("rosenbrock/hessian")->Arg(100)->Unit(benchmark::kMicrosecond)->UseRealTime();
BENCHMARK(hessian_vector_product)
    ->Name("rosenbrock/hvp")
    ->Arg(1'000'000)
    ->Unit(benchmark::kMicrosecond)
    ->UseRealTime();

}   // namespace

int main(int argc, char** argv) { return bench::run(argc, argv, td::set_num_threads); }
