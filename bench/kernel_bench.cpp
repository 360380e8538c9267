// Throughput of ops on large tensors: f32, a new result each time, forward only and with the backward pass.
#include "bench.h"
#include "tapedeck/tapedeck.h"

namespace td = tapedeck;
using benchmark::State;

namespace {

td::Tensor values(const td::Shape& shape, std::uint64_t seed = 1) {
  return td::random::normal(shape, {.seed = seed});
}

// Elementwise.

void add(State& state) {
  const td::Tensor a = values({state.range(0)}), b = values({state.range(0)}, 2);
  bench::each(state, [&] { return a + b; });
  bench::report_gigabytes(state, 12 * state.range(0));
}

using Unary = td::Tensor (*)(td::Operand);

void forward(State& state, Unary f) {
  const td::Tensor x = values({state.range(0)});
  bench::each(state, [&] { return f(x); });
}

void vjp(State& state, Unary f) {
  const td::Tensor x = values({state.range(0)}), dy = values({state.range(0)}, 2);
  td::GradientTape tape({.persistent = true});
  tape.watch(x);
  const td::Tensor y = f(x);
  tape.stop();   // otherwise the tape would record its own backward pass
  const td::GradientOptions options{.output_gradients = {dy}};
  bench::each(state, [&] { return tape.gradient(td::Targets(y), td::Sources(x), options); });
}

struct Affine {
  explicit Affine(const State& state) : shape{state.range(0)} {}
  td::Tensor sum_of_tanh() const { return td::sum(td::tanh(x * w + b)); }

  td::Shape shape;
  td::Tensor x = values(shape), w = values(shape, 2), b = values(shape, 3);
};

void tanh_xwb_sum(State& state) {
  const Affine affine(state);
  bench::each(state, [&] { return affine.sum_of_tanh(); });
}

void tanh_xwb_sum_grad(State& state) {
  const Affine affine(state);
  bench::each(state, [&] {
    td::GradientTape tape;
    tape.watch(affine.x), tape.watch(affine.w), tape.watch(affine.b);
    return tape.gradient(affine.sum_of_tanh(), affine.x, affine.w, affine.b);
  });
}

BENCHMARK(add)->Name("elementwise/add")->Apply(bench::sizes)->UseRealTime();
BENCHMARK_CAPTURE(forward, tanh, td::tanh)
    ->Name("elementwise/tanh")
    ->Arg(1'000'000)
    ->Unit(benchmark::kMicrosecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(forward, exp, td::exp)
    ->Name("elementwise/exp")
    ->Arg(1'000'000)
    ->Unit(benchmark::kMicrosecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(vjp, tanh, td::tanh)
    ->Name("elementwise/tanh_vjp")
    ->Arg(1'000'000)
    ->Unit(benchmark::kMicrosecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(vjp, exp, td::exp)
    ->Name("elementwise/exp_vjp")
    ->Arg(1'000'000)
    ->Unit(benchmark::kMicrosecond)
    ->UseRealTime();
BENCHMARK(tanh_xwb_sum)
    ->Name("elementwise/tanh_xwb_sum")
    ->Apply(bench::sizes)
    ->Unit(benchmark::kMicrosecond)
    ->UseRealTime();
BENCHMARK(tanh_xwb_sum_grad)
    ->Name("elementwise/tanh_xwb_sum_grad")
    ->Apply(bench::sizes)
    ->Unit(benchmark::kMicrosecond)
    ->UseRealTime();

// Broadcasting, reductions and rows of a 1000×1000 matrix.

td::Tensor matrix(std::uint64_t seed = 1) { return values({1000, 1000}, seed); }

void broadcast_add(State& state, const td::Shape& shape) {
  const td::Tensor a = matrix(), b = values(shape, 2);
  bench::each(state, [&] { return a + b; });
}

void broadcast_add_grad(State& state, const td::Shape& shape) {
  const td::Tensor a = matrix(), b = values(shape, 2);
  const td::GradientOptions options{.output_gradients = {matrix(3)}};
  bench::each(state, [&] {
    td::GradientTape tape;
    tape.watch(a), tape.watch(b);
    return tape.gradient(td::Targets(a + b), td::Sources{a, b}, options);
  });
}

void of_matrix(State& state, td::Tensor (*f)(const td::Tensor&)) {
  const td::Tensor x = matrix();
  bench::each(state, [&] { return f(x); });
}

void in_microseconds(const char* name, auto f, auto argument) {
  benchmark::RegisterBenchmark(name, f, argument)->Unit(benchmark::kMicrosecond)->UseRealTime();
}

void register_matrix_cases() {
  in_microseconds("broadcast/add_row/1000x1000", broadcast_add, td::Shape{1000});
  in_microseconds("broadcast/add_column/1000x1000", broadcast_add, td::Shape{1000, 1});
  in_microseconds("broadcast/add_scalar/1000x1000", broadcast_add, td::Shape{});
  in_microseconds("broadcast/add_row_grad/1000x1000", broadcast_add_grad, td::Shape{1000});
  in_microseconds("broadcast/add_column_grad/1000x1000", broadcast_add_grad, td::Shape{1000, 1});
  in_microseconds("reduce/sum_all/1000x1000", of_matrix, [](const td::Tensor& x) { return td::sum(x); });
  in_microseconds("reduce/sum_axis0/1000x1000", of_matrix, [](const td::Tensor& x) { return td::sum(x, 0); });
  in_microseconds("reduce/sum_axis1/1000x1000", of_matrix, [](const td::Tensor& x) { return td::sum(x, 1); });
  in_microseconds("reduce/transpose/1000x1000", of_matrix,
                  [](const td::Tensor& x) { return td::transpose(x); });
  in_microseconds("reduce/softmax/1000x1000", of_matrix, [](const td::Tensor& x) { return td::softmax(x); });
}

// Products of square matrices.

void matmul(State& state) {
  const std::int64_t n = state.range(0);
  const td::Tensor a = values({n, n}), b = values({n, n}, 2);
  bench::each(state, [&] { return td::matmul(a, b); });
  bench::report_gigaflops(state, n);
}

void matmul_grad(State& state) {
  const std::int64_t n = state.range(0);
  const td::Tensor a = values({n, n}), b = values({n, n}, 2);
  const td::GradientOptions options{.output_gradients = {values({n, n}, 3)}};
  bench::each(state, [&] {
    td::GradientTape tape;
    tape.watch(a), tape.watch(b);
    return tape.gradient(td::Targets(td::matmul(a, b)), td::Sources{a, b}, options);
  });
  bench::report_gigaflops(state, n, 3);
}

// Products by an equation.

struct Equation {
  const char* text;
  td::Shape a, b;
};

void einsum(State& state, const Equation& e) {
  const td::Tensor a = values(e.a), b = values(e.b, 2);
  bench::each(state, [&] { return td::einsum(e.text, {a, b}); });
}

void register_einsum_cases() {
  in_microseconds("einsum/batched_product/16x128x128", einsum,
                  Equation{"bij,bjk->bik", {16, 128, 128}, {16, 128, 128}});
  in_microseconds("einsum/attention/4x128x8x64", einsum,
                  Equation{"bqhd,bkhd->bhqk", {4, 128, 8, 64}, {4, 128, 8, 64}});
  in_microseconds("einsum/outer_product/1000x1000", einsum, Equation{"i,j->ij", {1000}, {1000}});
}

BENCHMARK(matmul)->Name("matmul/matmul")->Arg(64)->Arg(256)->Arg(1024)->UseRealTime();
BENCHMARK(matmul_grad)->Name("matmul/matmul_grad")->Arg(64)->Arg(256)->Arg(1024)->UseRealTime();

}   // namespace

int main(int argc, char** argv) {
  register_matrix_cases();
  register_einsum_cases();
  return bench::run(argc, argv, td::set_num_threads);
}
