// The limits of the machine: the same work in plain loops over existing buffers and in direct calls of BLAS,
// without any library around them. Compiled for this machine and with -ffast-math, so that sums and the
// functions of libm are vectorized, too.
#include <cmath>
#include <cstring>

#include "limits.h"

using namespace bench;
using benchmark::State;

namespace {

// Elementwise.

void add(float* __restrict y, const float* a, const float* b, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i)
    y[i] = a[i] + b[i];
}
void tanh(float* __restrict y, const float* x, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i)
    y[i] = std::tanh(x[i]);
}
void exp(float* __restrict y, const float* x, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i)
    y[i] = std::exp(x[i]);
}
void tanh_vjp(float* __restrict dx, const float* y, const float* dy, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i)
    dx[i] = dy[i] * (1 - y[i] * y[i]);
}
void exp_vjp(float* __restrict dx, const float* y, const float* dy, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i)
    dx[i] = dy[i] * y[i];
}

void binary(State& state, void (*f)(float*, const float*, const float*, std::int64_t)) {
  const std::int64_t n = state.range(0);
  Buffer y(n), a(n), b(n);
  repeat(state, [&] { f(y, a, b, n); });
}
void add_case(State& state) {
  binary(state, add);
  report_gigabytes(state, 12 * state.range(0));
}
void unary(State& state, void (*f)(float*, const float*, std::int64_t)) {
  const std::int64_t n = state.range(0);
  Buffer y(n), x(n);
  repeat(state, [&] { f(y, x, n); });
}

void tanh_xwb_sum(State& state) {
  const std::int64_t n = state.range(0);
  Buffer xs(n), ws(n), bs(n);
  const float *x = xs, *w = ws, *b = bs;
  each(state, [&] {
    float s = 0;
    for (std::int64_t i = 0; i < n; ++i)
      s += std::tanh(x[i] * w[i] + b[i]);
    return s;
  });
}

// Forward and backward stay two separate passes, as in a library that runs op by op.
void tanh_xwb_sum_grad(State& state) {
  const std::int64_t n = state.range(0);
  Buffer xs(n), ws(n), bs(n), ys(n), dxs(n), dws(n), dbs(n);
  const float *x = xs, *w = ws, *b = bs;
  float* __restrict y = ys, * __restrict dx = dxs, * __restrict dw = dws, * __restrict db = dbs;
  repeat(state, [&] {
    float s = 0;
    for (std::int64_t i = 0; i < n; ++i)
      s += y[i] = std::tanh(x[i] * w[i] + b[i]);
    benchmark::DoNotOptimize(s);
    for (std::int64_t i = 0; i < n; ++i) {
      const float d = 1 - y[i] * y[i];
      db[i] = d, dx[i] = d * w[i], dw[i] = d * x[i];
    }
  });
}

// A damped wave's envelope, a·exp(-b·x²), and its three derivatives times dy.
void damped(State& state) {
  const std::int64_t n = state.range(0);
  Buffer xs(n), as(n), bs(n), ys(n);
  const float *x = xs, *a = as, *b = bs;
  float* __restrict y = ys;
  repeat(state, [&] {
    for (std::int64_t i = 0; i < n; ++i)
      y[i] = a[i] * std::exp(-b[i] * x[i] * x[i]);
  });
}
void damped_grad(State& state) {
  const std::int64_t n = state.range(0);
  Buffer xs(n), as(n), bs(n), ys(n), dys(n), dxs(n), das(n), dbs(n);
  const float *x = xs, *a = as, *b = bs, *dy = dys;
  float* __restrict y = ys, * __restrict dx = dxs, * __restrict da = das, * __restrict db = dbs;
  repeat(state, [&] {
    for (std::int64_t i = 0; i < n; ++i)
      y[i] = a[i] * std::exp(-b[i] * x[i] * x[i]);
    benchmark::ClobberMemory();
    for (std::int64_t i = 0; i < n; ++i) {
      const float d = dy[i] * std::exp(-b[i] * x[i] * x[i]), ad = a[i] * d;
      da[i] = d, db[i] = -ad * x[i] * x[i], dx[i] = -2 * ad * b[i] * x[i];
    }
  });
}

BENCHMARK(damped)
    ->Name("map/damped")
    ->Arg(10'000)
    ->Arg(1'000'000)
    ->Unit(benchmark::kMicrosecond)
    ->UseRealTime();
BENCHMARK(damped_grad)
    ->Name("map/damped_grad")
    ->Arg(10'000)
    ->Arg(1'000'000)
    ->Unit(benchmark::kMicrosecond)
    ->UseRealTime();
BENCHMARK(add_case)->Name("elementwise/add")->Apply(sizes)->UseRealTime();
BENCHMARK_CAPTURE(unary, tanh, tanh)
    ->Name("elementwise/tanh")
    ->Arg(1'000'000)
    ->Unit(benchmark::kMicrosecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(unary, exp, exp)
    ->Name("elementwise/exp")
    ->Arg(1'000'000)
    ->Unit(benchmark::kMicrosecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(binary, tanh_vjp, tanh_vjp)
    ->Name("elementwise/tanh_vjp")
    ->Arg(1'000'000)
    ->Unit(benchmark::kMicrosecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(binary, exp_vjp, exp_vjp)
    ->Name("elementwise/exp_vjp")
    ->Arg(1'000'000)
    ->Unit(benchmark::kMicrosecond)
    ->UseRealTime();
BENCHMARK(tanh_xwb_sum)
    ->Name("elementwise/tanh_xwb_sum")
    ->Apply(sizes)
    ->Unit(benchmark::kMicrosecond)
    ->UseRealTime();
BENCHMARK(tanh_xwb_sum_grad)
    ->Name("elementwise/tanh_xwb_sum_grad")
    ->Apply(sizes)
    ->Unit(benchmark::kMicrosecond)
    ->UseRealTime();

// A 1000×1000 matrix.

constexpr std::int64_t kRows = 1000, kColumns = 1000, kAll = kRows * kColumns;

// Four sums at once hide the latency of addition.
float sum(const float* x, std::int64_t n) {
  const std::int64_t q = n / 4;
  float s0 = 0, s1 = 0, s2 = 0, s3 = 0;
  for (std::int64_t i = 0; i < q; ++i)
    s0 += x[i], s1 += x[i + q], s2 += x[i + 2 * q], s3 += x[i + 3 * q];
  for (std::int64_t i = 4 * q; i < n; ++i)
    s0 += x[i];
  return s0 + s1 + s2 + s3;
}
void sum_columns(float* __restrict y, const float* x) {
  std::memset(y, 0, kColumns * sizeof(float));
  for (std::int64_t i = 0; i < kRows; i += 4) {
    const float* r = x + i * kColumns;
    for (std::int64_t j = 0; j < kColumns; ++j)
      y[j] += (r[j] + r[j + kColumns]) + (r[j + 2 * kColumns] + r[j + 3 * kColumns]);
  }
}
void sum_rows(float* __restrict y, const float* x) {
  for (std::int64_t i = 0; i < kRows; ++i)
    y[i] = sum(x + i * kColumns, kColumns);
}
void add_row(float* __restrict y, const float* x, const float* row) {
  for (std::int64_t i = 0; i < kRows; ++i)
    for (std::int64_t j = 0; j < kColumns; ++j)
      y[i * kColumns + j] = x[i * kColumns + j] + row[j];
}
void add_column(float* __restrict y, const float* x, const float* column) {
  for (std::int64_t i = 0; i < kRows; ++i)
    for (std::int64_t j = 0; j < kColumns; ++j)
      y[i * kColumns + j] = x[i * kColumns + j] + column[i];
}
void add_scalar(float* __restrict y, const float* x, const float* scalar) {
  const float s = *scalar;
  for (std::int64_t i = 0; i < kAll; ++i)
    y[i] = x[i] + s;
}
void softmax(float* __restrict y, const float* x) {
  for (std::int64_t i = 0; i < kRows; ++i, x += kColumns, y += kColumns) {
    float largest = x[0], s = 0;
    for (std::int64_t j = 1; j < kColumns; ++j)
      largest = x[j] > largest ? x[j] : largest;
    for (std::int64_t j = 0; j < kColumns; ++j)
      s += y[j] = std::exp(x[j] - largest);
    const float scale = 1 / s;
    for (std::int64_t j = 0; j < kColumns; ++j)
      y[j] *= scale;
  }
}

void broadcast(State& state, void (*f)(float*, const float*, const float*)) {
  Buffer y(kAll), a(kAll), b(kColumns);
  repeat(state, [&] { f(y, a, b); });
}
// The gradient of the matrix is dy itself; the gradient of the other operand is a sum.
void broadcast_grad(State& state, void (*f)(float*, const float*, const float*),
                    void (*reduce)(float*, const float*)) {
  Buffer y(kAll), a(kAll), b(kColumns), dy(kAll), db(kColumns);
  repeat(state, [&] { f(y, a, b), reduce(db, dy); });
}
void of_matrix(State& state, void (*f)(float*, const float*)) {
  Buffer y(kAll), x(kAll);
  repeat(state, [&] { f(y, x); });
}

void register_matrix_cases() {
  in_microseconds("broadcast/add_row/1000x1000", broadcast, add_row);
  in_microseconds("broadcast/add_column/1000x1000", broadcast, add_column);
  in_microseconds("broadcast/add_scalar/1000x1000", broadcast, add_scalar);
  in_microseconds("broadcast/add_row_grad/1000x1000", broadcast_grad, add_row, sum_columns);
  in_microseconds("broadcast/add_column_grad/1000x1000", broadcast_grad, add_column, sum_rows);
  in_microseconds("reduce/sum_all/1000x1000", of_matrix, [](float* y, const float* x) { *y = sum(x, kAll); });
  in_microseconds("reduce/sum_axis0/1000x1000", of_matrix, sum_columns);
  in_microseconds("reduce/sum_axis1/1000x1000", of_matrix, sum_rows);
  // The limit of a transposition is a copy.
  in_microseconds("reduce/transpose/1000x1000", of_matrix,
                  [](float* y, const float* x) { std::memcpy(y, x, kAll * sizeof(float)); });
  in_microseconds("reduce/softmax/1000x1000", of_matrix, softmax);
}

// Products.

void matmul(State& state) {
  const std::int64_t n = state.range(0);
  Buffer a(n * n), b(n * n), c(n * n);
  repeat(state, [&] { product(Turn::none, n, n, n, a, b, c); });
  report_gigaflops(state, n);
}
void matmul_grad(State& state) {
  const std::int64_t n = state.range(0);
  Buffer a(n * n), b(n * n), c(n * n), dc(n * n), da(n * n), db(n * n);
  repeat(state, [&] {
    product(Turn::none, n, n, n, a, b, c);
    product(Turn::b, n, n, n, dc, b, da);
    product(Turn::a, n, n, n, a, dc, db);
  });
  report_gigaflops(state, n, 3);
}

BENCHMARK(matmul)->Name("matmul/matmul")->Arg(64)->Arg(256)->Arg(1024)->UseRealTime();
BENCHMARK(matmul_grad)->Name("matmul/matmul_grad")->Arg(64)->Arg(256)->Arg(1024)->UseRealTime();

}   // namespace

int main(int argc, char** argv) {
  register_matrix_cases();
  register_training_limits();
  return bench::run(argc, argv);
}
