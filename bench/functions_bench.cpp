// Value and gradient of the functions that benchmarks of autodiff libraries commonly use.
#include "bench.h"
#include "known_functions.h"

namespace td = tapedeck;
using benchmark::State;

namespace {

void gradient(State& state, bench::known::Function (*make)(std::int64_t)) {
  const bench::known::Function f = make(state.range(0));
  bench::each(state, [&] { return bench::known::differentiate(f, f.variables); });
}

void long_and_short(benchmark::internal::Benchmark* b) { b->Arg(1024)->Arg(16384)->UseRealTime(); }

using namespace bench::known;
BENCHMARK_CAPTURE(gradient, sum, sum)->Name("functions/sum")->Apply(long_and_short);
BENCHMARK_CAPTURE(gradient, prod, prod)->Name("functions/prod")->Apply(long_and_short);
BENCHMARK_CAPTURE(gradient, log_sum_exp, log_sum_exp)->Name("functions/log_sum_exp")->Apply(long_and_short);
BENCHMARK_CAPTURE(gradient, matrix_product, matrix_product)
    ->Name("functions/matrix_product")
    ->Arg(4050)
    ->Arg(65522)
    ->UseRealTime();
BENCHMARK_CAPTURE(gradient, normal_log_pdf, static_cast<Function (*)(std::int64_t)>(normal_log_pdf))
    ->Name("functions/normal_log_pdf")
    ->Apply(long_and_short);
BENCHMARK_CAPTURE(gradient, regression, regression)
    ->Name("functions/regression")
    ->Arg(12)
    ->Arg(62)
    ->Arg(152)
    ->UseRealTime();

}   // namespace

int main(int argc, char** argv) { return bench::run(argc, argv, td::set_num_threads); }
