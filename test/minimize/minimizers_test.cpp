// Newton's method and L-BFGS: known minima, and functions without one.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "data_folder.h"
#include "message_of.h"
#include "tapedeck/csv.h"
#include "tapedeck/minimize.h"
#include "tapedeck/tapedeck.h"

namespace minimizers_test {

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

Tensor rosenbrock(const Tensor& x) {
  const std::int64_t n = x.shape()[0];
  const Tensor a = slice(x, {0}, {n - 1}), b = slice(x, {1}, {n - 1});
  return sum(100.0 * square(b - square(a)) + square(1.0 - a));
}
Tensor start_of_rosenbrock(std::int64_t n) {
  std::vector<double> x;
  for (std::int64_t i = 0; i < n; ++i)
    x.push_back(i % 2 ? 1.0 : -1.2);
  return tensor(x);
}

double distance(const Tensor& a, const Tensor& b) { return max(abs(a - b)).item<double>(); }

/// Logistic regression on measurements of mean 0 and variance 1, with a penalty of 0.005 w·w.
struct Regression {
  Tensor x, y;

  Regression() {
    const Tensor all = load_csv(data_folder() / "../../examples/data/breast_cancer.csv",
                                {.has_header = true, .dtype = DType::f64})
                           .values;
    const std::int64_t rows = all.shape()[0];
    const Tensor raw = slice(all, {0, 0}, {rows, 30});
    x = (raw - mean(raw, {0})) / sqrt(variance(raw, {0}));
    y = reshape(slice(all, {0, 30}, {rows, 1}), {rows});
  }
  Tensor operator()(const Tensor& w, const Tensor& b) const {
    const Tensor z = reshape(matmul(x, reshape(w, {30, 1})), {x.shape()[0]}) + b;
    return mean(softplus(z) - y * z) + 0.005 * sum(square(w));
  }
};
constexpr double kLeastLoss =
    0.09959137548470548;   // from Newton's method in NumPy, with a gradient norm of 1e-17

}   // namespace

TEST_CASE("Newton's method and L-BFGS find the minimum of Rosenbrock's function", "[minimizers]") {
  for (const std::int64_t n : {2, 100}) {
    const Minimum newton =
        minimize_newton(rosenbrock, start_of_rosenbrock(n), {{.tolerance = 1e-10, .max_iterations = 1000}});
    INFO(n << " numbers, Newton: " << newton.iterations << " iterations, " << newton.products << " products, "
           << newton.reason);
    CHECK(newton.converged);
    CHECK(distance(newton.x[0], ones({n}, DType::f64)) < 1e-8);
    CHECK(newton.value < 1e-16);
    CHECK(newton.products > newton.iterations);
    if (!has_lbfgs()) continue;
    const Minimum lbfgs =
        minimize_lbfgs(rosenbrock, start_of_rosenbrock(n), {{.tolerance = 1e-8, .max_iterations = 1000}});
    INFO("L-BFGS: " << lbfgs.iterations << " iterations, " << lbfgs.reason);
    CHECK(lbfgs.converged);
    CHECK(distance(lbfgs.x[0], ones({n}, DType::f64)) < 1e-6);
    CHECK(lbfgs.evaluations >= lbfgs.iterations);
  }
}

TEST_CASE("Newton's method solves logistic regression in fewer than 15 iterations", "[minimizers]") {
  const Regression loss;
  const std::vector<Tensor> start = {zeros({30}, DType::f64), tensor(0.0, DType::f64)};
  const Minimum m = minimize_newton(loss, start, {{.tolerance = 1e-10}});
  CHECK(m.converged);
  CHECK(m.iterations < 15);
  CHECK(std::abs(m.value - kLeastLoss) < 1e-13);
  CHECK(std::abs(m.x[0].at<double>({0}) - -0.41605417) < 1e-8);
  CHECK(std::abs(m.x[1].item<double>() - 0.4952696910901721) < 1e-8);
  if (!has_lbfgs()) return;
  const Minimum l = minimize_lbfgs(loss, start);
  CHECK(l.converged);
  CHECK(std::abs(l.value - kLeastLoss) < 1e-9);
}

TEST_CASE("minimizers keep dtypes and shapes, and move away from a saddle and a flat start", "[minimizers]") {
  const auto f = [](const Tensor& a, const Tensor& b) {
    return sum(square(a - 3.0)) + astype(sum(square(b + 1.0)), DType::f32);
  };
  const Minimum m = minimize_newton(f, {zeros({2, 2}), zeros({3}, DType::f64)});
  CHECK(m.x[0].spec() == Spec{DType::f32, {2, 2}});
  CHECK(m.x[1].spec() == Spec{DType::f64, {3}});
  CHECK(distance(astype(m.x[0], DType::f64), full({2, 2}, 3.0, DType::f64)) < 1e-5);
  CHECK(m.iterations <= 2);
  // x⁴ - x² curves downwards at 0.1.
  const Minimum saddle = minimize_newton([](const Tensor& x) { return sum(square(square(x)) - square(x)); },
                                         tensor({0.1}, DType::f64));
  CHECK(saddle.converged);
  CHECK(std::abs(saddle.value + 0.25) < 1e-10);
  CHECK(minimize_newton([](const Tensor& x) { return sum(square(x)); }, zeros({3})).iterations == 0);
  CHECK(minimize_newton([](const Tensor& x) { return sum(square(x)); }, zeros({3}), {{.tolerance = 0}})
            .converged);
}

TEST_CASE("Newton's method rejects a step to a higher value with a smaller slope", "[minimizers]") {
  std::vector<double> values;
  const auto progress = [&](const Minimum& m) { return values.push_back(m.value), true; };
  // At 0.55 the curvature is small: the whole step leads to -7.2, where the function is nearly flat.
  const Minimum m = minimize_newton([](const Tensor& x) { return sum(square(x) / (1.0 + square(x))); },
                                    tensor({0.55}, DType::f64), {{.progress = progress}});
  CHECK(m.converged);
  CHECK(m.value < 1e-10);
  CHECK(std::is_sorted(values.rbegin(), values.rend()));
}

TEST_CASE("Newton's method halves a step along which the value falls too little", "[minimizers]") {
  // From 0, where the slope is -100, the whole step leads to 1, where the value is -0.001.
  const Minimum m = minimize_newton([](const Tensor& x) { return x * (-100.0 + x * (50.0 + 49.999 * x)); },
                                    tensor(0.0, DType::f64), {{.max_iterations = 1}});
  CHECK(m.x[0].item() == Approx(0.5));
}

TEST_CASE("Newton's method does not alternate between two points of equal value", "[minimizers]") {
  const auto f = [](const Tensor& x) {
    return 5.0 * sum(log(1.0 + square(x)));
  };   // a step from 2 leads to -2
  for (const std::int64_t n : {1, 3}) {
    const Minimum m = minimize_newton(f, full({n}, 2.0, DType::f64));
    CHECK(m.converged);
    CHECK(distance(m.x[0], zeros({n}, DType::f64)) < 1e-6);
  }
}

// The value is 1 up to rounding: some of the starts have a smaller one than the minimum.
TEST_CASE("Newton's method continues where rounding hides that the value decreases", "[minimizers]") {
  for (int i = 1; i <= 1000; ++i) {
    const Minimum m = minimize_newton([](const Tensor& x) { return sum(exp(x) - x); },
                                      tensor({1e-10 * i}, DType::f64), {{.tolerance = 1e-12}});
    CAPTURE(i, m.reason, m.iterations);
    CHECK(m.converged);
    CHECK(m.iterations <= 2);
  }
}

TEST_CASE("a minimizer reports its progress, and stops when told to", "[minimizers]") {
  std::vector<double> values;
  const auto progress = [&](const Minimum& m) {
    CHECK(m.iterations == static_cast<int>(values.size()) + 1);
    values.push_back(m.value);
    return values.size() < 3;
  };
  for (int which = 0; which < 1 + has_lbfgs(); ++which) {
    values.clear();
    const Minimum m = which ? minimize_lbfgs(rosenbrock, start_of_rosenbrock(10), {{.progress = progress}})
                            : minimize_newton(rosenbrock, start_of_rosenbrock(10), {{.progress = progress}});
    CHECK(m.iterations == 3);
    CHECK(values.size() == 3);
    CHECK(m.value == values.back());
    CHECK(values[2] < values[0]);
    CHECK(m.reason == "stopped by progress");
    CHECK_FALSE(m.converged);
  }
  CHECK(minimize_newton(rosenbrock, start_of_rosenbrock(10), {{.max_iterations = 2}}).reason ==
        "max_iterations");
  if (has_lbfgs())
    CHECK(minimize_lbfgs(rosenbrock, start_of_rosenbrock(10), {{.max_iterations = 0}}).reason ==
          "max_iterations");
}

// The first step of L-BFGS is of length 1, a tiny or huge part of the gradient.
TEST_CASE("minimizers do not depend on the scale of the value", "[minimizers]") {
  for (int by_lbfgs = 0; by_lbfgs < 1 + has_lbfgs(); ++by_lbfgs) {
    const auto minimum = [&](const auto& f, const Tensor& x, double tolerance = 1e-6) {
      return by_lbfgs ? minimize_lbfgs(f, x, {{.tolerance = tolerance}})
                      : minimize_newton(f, x, {{.tolerance = tolerance}});
    };
    CAPTURE(by_lbfgs);
    const Minimum steep = minimum([](const Tensor& t) { return sum(square((t - 3) * 1e10)); },
                                  tensor({100.0, -7.0}, DType::f64));
    CHECK(steep.x[0].at({0}) == Approx(3));
    const Minimum growing =
        minimum([](const Tensor& t) { return sum(exp(t) - 2 * t); }, tensor({100.0}, DType::f64));
    CHECK(growing.x[0].at({0}) == Approx(std::log(2.0)).epsilon(1e-4));
    const Minimum flat = minimum([](const Tensor& t) { return sum(square(t - 3)) * 1e-25; },
                                 tensor({100.0, -7.0}, DType::f64), 1e-34);
    CHECK(flat.x[0].at({1}) == Approx(3));
  }
}

// The squares of such gradients are no numbers of f64.
TEST_CASE("minimizers find the minimum of a function times 1e±150", "[minimizers]") {
  const auto bowl = [](const Tensor& x) { return sum(exp(x) - 2 * x); };
  const auto well = [](const Tensor& x) { return sum(square(square(x)) - square(x)); };   // begins at a hill
  const auto check = [](double factor, const auto& f, const Tensor& start, double least) {
    const auto scaled = [&](const Tensor& x) { return factor * f(x); };
    const MinimizeOptions options = {.tolerance = 1e-8 * factor, .max_iterations = 200};
    for (int by_lbfgs = 0; by_lbfgs < 1 + has_lbfgs(); ++by_lbfgs) {
      const Minimum m =
          by_lbfgs ? minimize_lbfgs(scaled, start, {options}) : minimize_newton(scaled, start, {options});
      CAPTURE(by_lbfgs, factor, m.x[0], m.reason);
      CHECK(m.converged);
      CHECK(distance(m.x[0], full(start.shape(), least, DType::f64)) < 1e-6);
      CHECK(m.gradient_norm <= options.tolerance);
    }
  };
  for (const double factor : {1e-300, 1e-200, 1e-150, 1e-80, 1.0, 1e80, 1e150, 1e200, 1e290}) {
    check(factor, rosenbrock, start_of_rosenbrock(2), 1);
    check(factor, bowl, tensor({5.0, -3.0}, DType::f64), std::log(2.0));
    check(factor, well, tensor({0.1, 0.3}, DType::f64), std::sqrt(0.5));
  }
  const Minimum f32 =
      minimize_newton([](const Tensor& x) { return 1e25 * sum(square(x - 3) * square(x)); }, full({2}, 5.0));
  CHECK(distance(f32.x[0], full({2}, 3.0)) < 1e-5);
}

TEST_CASE("the norm of a gradient has no squares that overflow", "[minimizers]") {
  for (const double size : {1e-300, 1.0, 1e300}) {
    const auto f = [=](const Tensor& x) { return sum(tensor({3 * size, 4 * size}, DType::f64) * x); };
    const Minimum m = minimize_newton(f, zeros({2}, DType::f64), {{.max_iterations = 0}});
    CHECK(m.gradient_norm == Approx(5 * size));
  }
}

TEST_CASE("L-BFGS has not converged where the longest step still lowers the value", "[minimizers]") {
  if (!has_lbfgs()) return;
  const Minimum m = minimize_lbfgs([](const Tensor& t) { return sum(t); }, tensor({1.0, 1.0}, DType::f64));
  CHECK_FALSE(m.converged);
  CHECK_THAT(m.reason, Catch::Matchers::StartsWith("the longest step"));
}

TEST_CASE("minimizers reject functions that they cannot minimize", "[minimizers]") {
  const Tensor x = tensor({1.0, 2.0});
  CHECK(message_of<ShapeError>([&] { minimize_newton([](const Tensor& t) { return square(t); }, x); }) ==
        "minimize_newton: the function returns f32[2]; use a scalar");
  CHECK(message_of<DTypeError>([&] {
          minimize_newton([](const Tensor& t) { return sum(t); }, tensor({1, 2}));
        }) == "minimize_newton: x[0] is i32[2]; use f32 or f64");
  CHECK(message_of<ArgumentError>(
            [&] { minimize_newton([](const Tensor& t) { return sum(log(t - 1.0)); }, x); }) ==
        "minimize_newton: at the start the value is -inf, the gradient's norm inf; use a start where both "
        "are finite");
  CHECK(message_of<ArgumentError>([&] { minimize_newton(rosenbrock, x, {{.tolerance = -1}}); }) ==
        "minimize_newton: tolerance is -1; use 0 or more");
  const Variable w(ones({2}));
  const auto of_variable = [&](const Tensor& t) {
    w.assign(t);
    return sum(w * w);
  };
  CHECK(
      message_of<ArgumentError>([&] { minimize_newton(of_variable, x); }) ==
      "minimize_newton: no gradient reaches x; compute the value from the function's argument by ops, not by "
      "item() or by what was assigned to variables");
  if (!has_lbfgs()) return;
  CHECK(message_of<ArgumentError>([&] {
          minimize_lbfgs(rosenbrock, x, {{}, 0});
        }) == "minimize_lbfgs: history is 0; use 1 or more");
  CHECK(message_of<ArgumentError>([&] { minimize_lbfgs(ValueAndGrad{}, {x}); }) ==
        "minimize_lbfgs: the function is empty");
  int calls = 0;   // exceptions of the function pass through libLBFGS
  CHECK(message_of<ArgumentError>([&] {
          minimize_lbfgs(
              ValueAndGrad{[&](const std::vector<Tensor>& v) -> std::pair<Tensor, std::vector<Gradient>> {
                if (++calls == 4) throw ArgumentError("four is enough");
                return {rosenbrock(v[0]), {grad(rosenbrock, v[0])}};
              }},
              {start_of_rosenbrock(2)});
        }) == "four is enough");
  CHECK(calls == 4);
}

}   // namespace minimizers_test
