// Shared by the benchmark programs. A case is named suite/case/size; compare.cpp matches the cases of
// different programs by these names. With TAPEDECK_THREADS=N in the environment the programs run the library
// with N threads instead of one.
#pragma once
#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstdlib>
#include <iostream>

namespace bench {

inline void sizes(benchmark::internal::Benchmark* b) { b->Arg(10'000)->Arg(1'000'000)->Arg(16'000'000); }

/// Reports work per second instead of time. `work` is the work of one iteration, in `unit` without its "/s".
inline void report_rate(benchmark::State& state, const char* unit, double work) {
  state.counters[unit] = benchmark::Counter(work, benchmark::Counter::kIsIterationInvariantRate);
}
inline void report_gigabytes(benchmark::State& state, std::int64_t bytes) {
  report_rate(state, "GB/s", static_cast<double>(bytes) * 1e-9);
}
/// For `products` products of n×n matrices.
inline void report_gigaflops(benchmark::State& state, std::int64_t n, int products = 1) {
  report_rate(state, "GFLOP/s", 2e-9 * static_cast<double>(n * n * n) * products);
}

template <class F> void each(benchmark::State& state, F f) {
  for (auto _ : state)
    benchmark::DoNotOptimize(f());
}

/// Every main calls this last, after it has registered its cases. `set_threads` is called with the number in
/// TAPEDECK_THREADS.
inline int run(int argc, char** argv, void (*set_threads)(int) = nullptr) {
  if (const char* threads = std::getenv("TAPEDECK_THREADS"); threads && set_threads) {
    const int n = std::atoi(threads);
    if (n < 1) return std::cerr << "bench: TAPEDECK_THREADS is \"" << threads << "\"; use 1 or more\n", 2;
    set_threads(n);
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}   // namespace bench
