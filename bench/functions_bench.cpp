// Value and gradient of the functions that benchmarks of autodiff libraries commonly use, in f64: reductions,
// a product of matrices, a density and a regression.
#include <cmath>
#include <numbers>

#include "bench.h"
#include "tapedeck/tapedeck.h"

namespace td = tapedeck;
using benchmark::State;

namespace {

td::Tensor values(const td::Shape& shape, std::uint64_t seed) {
  return td::random::normal(shape, {.seed = seed}, td::DType::f64);
}

template <class F> void gradient(State& state, const std::vector<td::Tensor>& x, const F& f) {
  const td::Sources sources(x);
  bench::each(state, [&] {
    td::GradientTape tape;
    for (const td::Tensor& t : x)
      tape.watch(t);
    return tape.gradient(f(), sources);
  });
}

void sum(State& state) {
  const td::Tensor x = values({state.range(0)}, 1);
  gradient(state, {x}, [&] { return td::sum(x); });
}
void prod(State& state) {
  const td::Tensor x = 1 + 1e-3 * values({state.range(0)}, 1);
  gradient(state, {x}, [&] { return td::prod(x); });
}
void log_sum_exp(State& state) {
  const td::Tensor x = values({state.range(0)}, 1);
  gradient(state, {x}, [&] { return td::logsumexp(x); });
}
void matrix_product(State& state) {
  const std::int64_t n = std::llround(std::sqrt(state.range(0) / 2));
  const td::Tensor a = values({n, n}, 1), b = values({n, n}, 2);
  gradient(state, {a, b}, [&] { return td::sum(td::matmul(a, b)); });
}

/// Logarithm of the density of a normal distribution at x, without the constant.
td::Tensor normal_log_pdf(const td::Tensor& x, const td::Tensor& mean, const td::Tensor& deviation) {
  return -0.5 * td::sum(td::square((x - mean) / deviation)) -
         static_cast<double>(x.size()) * td::log(deviation);
}
void density(State& state) {
  const td::Tensor x = values({state.range(0)}, 1), mean = td::tensor(0.1), deviation = td::tensor(1.3);
  gradient(state, {x, mean, deviation}, [&] { return normal_log_pdf(x, mean, deviation); });
}

// Parameters: weights, an offset and the deviation.
void regression(State& state) {
  const std::int64_t rows = 1000, features = state.range(0) - 2;
  const td::Tensor x = values({rows, features}, 1), y = values({rows, 1}, 2);
  const td::Tensor w = values({features, 1}, 3), b = td::tensor(0.5), deviation = td::tensor(1.3),
                   zero = td::tensor(0.0), one = td::tensor(1.0);
  gradient(state, {w, b, deviation}, [&] {
    return normal_log_pdf(y - td::matmul(x, w) - b, zero, deviation) + normal_log_pdf(w, zero, one) +
           normal_log_pdf(b, zero, one);
  });
}

void long_and_short(benchmark::internal::Benchmark* b) { b->Arg(1024)->Arg(16384)->UseRealTime(); }

BENCHMARK(sum)->Name("functions/sum")->Apply(long_and_short);
BENCHMARK(prod)->Name("functions/prod")->Apply(long_and_short);
BENCHMARK(log_sum_exp)->Name("functions/log_sum_exp")->Apply(long_and_short);
BENCHMARK(matrix_product)->Name("functions/matrix_product")->Arg(4050)->Arg(65522)->UseRealTime();
BENCHMARK(density)->Name("functions/normal_log_pdf")->Apply(long_and_short);
BENCHMARK(regression)->Name("functions/regression")->Arg(12)->Arg(62)->Arg(152)->UseRealTime();

}   // namespace

int main(int argc, char** argv) { return bench::run(argc, argv, td::set_num_threads); }
