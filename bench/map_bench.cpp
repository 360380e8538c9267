// A user's elementwise function, value and gradients: as one op with `map`, and composed of ops. Compiled for
// this machine, or, with PLAIN defined, with the default flags of a user's program.
#include "bench.h"
#include "reprojection.h"
#include "tapedeck/map.h"
#include "tapedeck/tapedeck.h"

namespace td = tapedeck;
using benchmark::State;

namespace {

constexpr auto damped = [](auto x, auto a, auto b) { return a * exp(-b * x * x); };
constexpr auto as_map = [](const td::Tensor& x, const td::Tensor& a, const td::Tensor& b) {
  return td::map(damped, x, a, b);
};

struct Inputs {
  explicit Inputs(std::int64_t n)
      : x(td::random::normal({n}, {.seed = 1})),
        a(td::random::normal({n}, {.seed = 2})),
        b(td::random::uniform({n}, {.seed = 3})) {}
  td::Tensor x, a, b;
};

template <class F> void value(State& state, const F& f) {
  const Inputs in(state.range(0));
  bench::each(state, [&] { return f(in.x, in.a, in.b); });
}
template <class F> void gradients(State& state, const F& f) {
  const Inputs in(state.range(0));
  const td::Sources sources{in.x, in.a, in.b};
  const td::GradientOptions options{
      .output_gradients = std::vector<td::Tensor>{td::random::normal({state.range(0)}, {.seed = 4})}};
  bench::each(state, [&] {
    td::GradientTape tape;
    tape.watch(in.x), tape.watch(in.a), tape.watch(in.b);
    return tape.gradient(td::Targets(f(in.x, in.a, in.b)), sources, options);
  });
}

#ifndef PLAIN
// Observations: a row of fifteen numbers each; the two results are columns.
struct Observations {
  explicit Observations(std::int64_t n)
      : rows(td::random::uniform({n, 15}, {.seed = 5}, 0.5, 1.5, td::DType::f64)) {}
  template <class F> static td::Tensor residuals(const td::Tensor& x, const F& f) {
    const std::vector<td::Tensor> c = td::unstack(x, 1);
    const auto [u, v] =
        f(c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7], c[8], c[9], c[10], c[11], c[12], c[13], c[14]);
    return td::stack(std::vector{u, v}, 1);
  }
  td::Tensor rows;
};
constexpr auto reprojection_as_map = [](const auto&... x) { return td::map(bench::reprojection, x...); };

// Times `use`, which differentiates the residuals of the rows by a tape.
template <class F, class Use> void on_tape(State& state, const F& f, bool persistent, const Use& use) {
  const Observations o(state.range(0));
  bench::each(state, [&] {
    td::GradientTape tape({.persistent = persistent});
    tape.watch(o.rows);
    const td::Tensor y = Observations::residuals(o.rows, f);
    return use(tape, y, o.rows);
  });
}
constexpr auto gradient_of_sum = [](td::GradientTape& tape, const td::Tensor& y, const td::Tensor& x) {
  return tape.gradient(y, x);
};
constexpr auto stopped_gradient = [](td::GradientTape& tape, const td::Tensor& y, const td::Tensor& x) {
  tape.stop();
  return tape.gradient(y, x);
};
constexpr auto two_pullbacks = [](td::GradientTape& tape, const td::Tensor& y, const td::Tensor& x) {
  tape.stop();
  std::vector<td::Tensor> rows;
  for (std::int64_t k = 0; k < 2; ++k) {
    const td::Tensor dy = td::broadcast_to(td::one_hot(td::tensor(k), 2, y.dtype()), y.shape());
    rows.push_back(
        tape.gradient(td::Targets(y), td::Sources(x), {.output_gradients = std::vector{dy}})[0].dense());
  }
  return td::stack(rows, 1);
};
constexpr auto jacobian_of_rows = [](td::GradientTape& tape, const td::Tensor& y, const td::Tensor& x) {
  return tape.batch_jacobian(y, x);
};

// A function of neighbours along an axis, with the gradient.
constexpr auto diffusion = [](auto before, auto x, auto behind) { return before - 2 * x + behind; };
template <class F> void on_a_line(State& state, const F& f) {
  const td::Tensor x = td::random::normal({state.range(0)}, {.seed = 6});
  const td::Tensor dy = td::random::normal({state.range(0)}, {.seed = 7});
  bench::each(state, [&] {
    td::GradientTape tape;
    tape.watch(x);
    return tape.gradient(td::Targets(f(x)), td::Sources(x), {.output_gradients = std::vector{dy}});
  });
}
constexpr auto shifted_diffusion = [](const td::Tensor& x) {
  return td::map(diffusion, td::shifted(x, 1), x, td::shifted(x, -1));
};
constexpr auto concatenated_diffusion = [](const td::Tensor& x) {
  const std::int64_t n = x.size();
  const td::Tensor zero = td::zeros({1});
  return td::map(diffusion, td::concat(std::vector{zero, td::slice(x, {0}, {n - 1})}, 0), x,
                 td::concat(std::vector{td::slice(x, {1}, {n - 1}), zero}, 0));
};

void rows(benchmark::internal::Benchmark* b) {
  b->Arg(1'000)->Arg(32'000)->Unit(benchmark::kMicrosecond)->UseRealTime();
}
#endif

void sizes(benchmark::internal::Benchmark* b) {
  b->Arg(10'000)->Arg(1'000'000)->Unit(benchmark::kMicrosecond)->UseRealTime();
}

#ifdef PLAIN
BENCHMARK_CAPTURE(value, map, as_map)->Name("map/damped_plain")->Apply(sizes);
BENCHMARK_CAPTURE(gradients, map, as_map)->Name("map/damped_grad_plain")->Apply(sizes);
#else
BENCHMARK_CAPTURE(value, map, as_map)->Name("map/damped")->Apply(sizes);
BENCHMARK_CAPTURE(gradients, map, as_map)->Name("map/damped_grad")->Apply(sizes);
BENCHMARK_CAPTURE(value, ops, damped)->Name("map/damped_by_ops")->Apply(sizes);
BENCHMARK_CAPTURE(gradients, ops, damped)->Name("map/damped_grad_by_ops")->Apply(sizes);
BENCHMARK_CAPTURE(on_tape, map, reprojection_as_map, false, gradient_of_sum)
    ->Name("map/reprojection_grad")
    ->Apply(rows);
BENCHMARK_CAPTURE(on_tape, persistent, reprojection_as_map, true, gradient_of_sum)
    ->Name("map/reprojection_grad_persistent")
    ->Apply(rows);
BENCHMARK_CAPTURE(on_tape, stopped, reprojection_as_map, true, stopped_gradient)
    ->Name("map/reprojection_grad_stopped")
    ->Apply(rows);
BENCHMARK_CAPTURE(on_tape, ops, bench::reprojection, false, gradient_of_sum)
    ->Name("map/reprojection_grad_by_ops")
    ->Apply(rows);
BENCHMARK_CAPTURE(on_tape, pullbacks, reprojection_as_map, true, two_pullbacks)
    ->Name("map/reprojection_two_pullbacks")
    ->Apply(rows);
BENCHMARK_CAPTURE(on_tape, jacobian, reprojection_as_map, false, jacobian_of_rows)
    ->Name("map/reprojection_batch_jacobian")
    ->Apply(rows);
BENCHMARK_CAPTURE(on_tape, persistent, reprojection_as_map, true, jacobian_of_rows)
    ->Name("map/reprojection_batch_jacobian_persistent")
    ->Apply(rows);
BENCHMARK_CAPTURE(on_a_line, shifted, shifted_diffusion)->Name("map/diffusion_grad_shifted")->Apply(sizes);
BENCHMARK_CAPTURE(on_a_line, concat, concatenated_diffusion)
    ->Name("map/diffusion_grad_by_concat")
    ->Apply(sizes);
#endif

}   // namespace

int main(int argc, char** argv) { return bench::run(argc, argv, td::set_num_threads); }
