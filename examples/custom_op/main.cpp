// A custom op: log_cosh, log(cosh(x)), a loss that is smooth at 0 and linear far from it, with its kernel and
// its derivative. The program checks the op by a sample, and its derivatives of first and second order
// against finite differences. docs/guide/adding_an_op.md explains the fields. For comparison, the same
// function by map, which needs neither a kernel nor a rule, only an expression of elements:
// docs/guide/map.md.
#include <algorithm>
#include <cmath>
#include <numbers>

#include <fmt/format.h>
#include <tapedeck/gradcheck.h>
#include <tapedeck/map.h>
#include <tapedeck/op.h>
#include <tapedeck/tapedeck.h>

#include "../common/example.h"

namespace td = tapedeck;

namespace {

template <class T> void fill_log_cosh(const td::Tensor& x, td::Tensor& y) {
  const std::span<const T> in = x.data<T>();
  const std::span<T> out = td::writable<T>(y);
  for (std::size_t i = 0; i < in.size(); ++i)
    out[i] = std::abs(in[i]) + std::log1p(std::exp(-2 * std::abs(in[i]))) -
             std::numbers::ln2_v<T>;   // exp never overflows
}

constexpr td::Op kLogCosh = {
    .name = "log_cosh",
    .doc = "log(cosh(x)).",
    .args = {"x"},
    .infer =
        [](const td::Call& c) {
          if (!td::is_trainable(c.x[0].dtype())) c.throw_dtype_error("takes f32 or f64");
          return c.x[0].spec();
        },
    .forward =
        [](const td::Call& c, std::span<td::Tensor> y) {
          c.x[0].dtype() == td::DType::f32 ? fill_log_cosh<float>(c.x[0], y[0])
                                           : fill_log_cosh<double>(c.x[0], y[0]);
        },
    // The vjp and the jvp. Both are made of ops, so that they can be differentiated again.
    .rule = td::Rule::custom(
        {.x = 1},
        [](const td::Call& c, std::span<td::Gradient> dy, std::span<td::Gradient> dx) {
          dx[0] = dy[0].dense() * td::tanh(c.x[0]);
        },
        [](const td::Call& c, td::Refs dx, std::span<td::Tensor> dy) { dy[0] = dx[0] * td::tanh(c.x[0]); }),
};

td::Tensor log_cosh(td::Operand x) { return kLogCosh(x); }

td::Tensor log_cosh_by_map(td::Operand x) {
  return td::map([](auto x) { return x + softplus(-2 * x) - std::numbers::ln2; }, x);
}

using Function = td::Tensor (*)(td::Operand);

/// A function's values, slopes and curvatures at x.
struct Derivatives {
  td::Tensor value, first, second;

  Derivatives(Function f, const td::Tensor& x) {
    td::GradientTape outer, inner;
    outer.watch(x), inner.watch(x);
    value = f(x);
    first = inner.gradient(value, x);
    second = outer.gradient(first, x);
  }
};

double distance(const td::Tensor& a, const td::Tensor& b) { return td::max(td::abs(a - b)).item(); }

/// The time of value and gradient for a million elements in milliseconds, the minimum of several runs.
double cost(Function f) {
  const td::Tensor x = td::linspace(-3, 3, 1'000'000);
  double least = 1e9;
  for (int i = 0; i < 10; ++i) {
    least = std::min(least, 1e3 * cpu_seconds([&] {
                              td::GradientTape tape;
                              tape.watch(x);
                              tape.gradient(f(x), x);
                            }));
  }
  return least;
}

void example(Run& run) {
  const td::Tensor few = td::linspace(-30, 30, 7, td::DType::f64);
  const Derivatives at_few(log_cosh, few);
  fmt::print("x            {}\nlog_cosh(x)  {}\nslope        {}\n", td::to_string(few),
             td::to_string(at_few.value), td::to_string(at_few.first));

  const td::Tensor near = td::linspace(-2, 2, 9, td::DType::f64);
  const td::Sample samples[] = {
      {.inputs = {near}},
      {.inputs = {td::tensor({-1.0, 0.0, 2.0}, td::DType::f64)},
       .expected = {td::tensor({0.4337808304830271, 0.0, 1.3250027473578645}, td::DType::f64)},
       .oracle = "np.log(np.cosh(x))"}};
  const td::OpAgreement agreement = td::check_op(kLogCosh, samples);
  run.claim(bool(agreement), "the op agrees with its samples, and its derivatives with differences" +
                                 (agreement ? "" : ": " + agreement.fault));
  run.claim(bool(td::check_gradients([](const std::vector<td::Tensor>& in) { return log_cosh_by_map(in[0]); },
                                     {near})),
            "derivatives of the map agree with differences");

  const td::Tensor x = td::linspace(-4, 4, 161, td::DType::f64);
  const Derivatives op(log_cosh, x), map(log_cosh_by_map, x);
  const double value = distance(op.value, map.value), first = distance(op.first, map.first),
               second = distance(op.second, map.second);
  fmt::print("op and map differ by {:.1e}, slopes by {:.1e}, curvatures by {:.1e}\n", value, first, second);
  run.claim(std::max({value, first, second}) < 1e-14, "op and map are the same but for rounding");
  fmt::print("value and gradient of a million elements: op {:.2f} ms, map {:.2f} ms\n", cost(log_cosh),
             cost(log_cosh_by_map));

  const std::vector<double> at = x.to_vector();
  const std::vector<Curve> curves = {
      {.x = at, .y = op.value.to_vector(), .colour = kBlue, .name = "value"},
      {.x = at, .y = op.first.to_vector(), .colour = kOrange, .name = "slope"},
      {.x = at, .y = op.second.to_vector(), .colour = kPaleBlue, .name = "curvature"}};
  run.picture.chart({}, "An op of one's own, log cosh:", {.label = "x"}, {.label = "of log cosh"}, curves);
}

}   // namespace

int main(int argc, char** argv) {
  return run_example(argc, argv, "an op of one's own, with its derivative, and the same by map", example);
}
