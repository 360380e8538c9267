// Shared by the programs that measure limits: buffers, repetition, and matrix products by BLAS.
#pragma once
#include <cblas.h>

#include <cstdlib>
#include <memory>

#include "bench.h"

namespace bench {

class Buffer {
 public:
  explicit Buffer(std::int64_t n, float offset = -0.5f)
      : data_(static_cast<float*>(
            std::aligned_alloc(4096, (static_cast<std::size_t>(n) * 4 + 4095) / 4096 * 4096))) {
    for (std::int64_t i = 0; i < n; ++i)
      data_.get()[i] = 1e-3f * static_cast<float>(i % 1000) + offset;
  }
  operator float*() { return data_.get(); }

 private:
  struct Free {
    void operator()(float* p) const { std::free(p); }
  };
  std::unique_ptr<float, Free> data_;
};

template <class F> void repeat(benchmark::State& state, F f) {
  for (auto _ : state) {
    f();
    benchmark::ClobberMemory();
  }
}

inline void in_microseconds(const char* name, auto f, auto... arguments) {
  benchmark::RegisterBenchmark(name, f, arguments...)->Unit(benchmark::kMicrosecond)->UseRealTime();
}

enum class Turn { none, a, b };

/// c = a b, where a is [m, k], b is [k, n] and c is [m, n], unless transposed (turn).
inline void product(Turn turn, std::int64_t m, std::int64_t n, std::int64_t k, const float* a, const float* b,
                    float* c) {
  const auto i = [](std::int64_t v) { return static_cast<blasint>(v); };
  cblas_sgemm(CblasRowMajor, turn == Turn::a ? CblasTrans : CblasNoTrans,
              turn == Turn::b ? CblasTrans : CblasNoTrans, i(m), i(n), i(k), 1, a, i(turn == Turn::a ? m : k),
              b, i(turn == Turn::b ? k : n), 0, c, i(n));
}

/// Registers the limits of training steps.
void register_training_limits();

}   // namespace bench
