// Minimizers with a function that is not finite, has a kink or no minimum, throws, or comes with a wrong
// gradient.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdio>
#include <limits>

#include "message_of.h"
#include "tapedeck/minimize.h"
#include "tapedeck/tapedeck.h"

namespace stuck_test {

using namespace tapedeck;
using namespace tapedeck::test;
using Catch::Matchers::Contains;
using Catch::Matchers::EndsWith;
using Catch::Matchers::StartsWith;

namespace {

// By each of the minimizers that there are.
template <class F>
std::vector<Minimum> minima_of(const F& f, const Tensor& start, const MinimizeOptions& options = {}) {
  std::vector<Minimum> all = {minimize_newton(f, start, {options})};
  if (has_lbfgs()) all.push_back(minimize_lbfgs(f, start, {options}));
  return all;
}

Tensor number(double value) { return tensor(value, DType::f64); }

}   // namespace

TEST_CASE("minimizers shorten steps that lead to NaN or infinity", "[minimizers]") {
  const Tensor start = tensor({1e-3, 5.0, 1e-2, 40.0}, DType::f64);
  int bad = 0;
  const auto logs = [&](const Tensor& x) {   // NaN below 0
    const Tensor value = sum(x - log(x));
    bad += !std::isfinite(value.item<double>());
    return value;
  };
  for (const Minimum& m : minima_of(logs, start)) {
    CAPTURE(m.reason, m.evaluations);
    CHECK(m.converged);
    CHECK(std::abs(m.value - 4) < 1e-10);
    CHECK(m.evaluations < 60);
  }
  CHECK(bad > 0);

  const auto wall = [&](const Tensor& x) { return sum(exp(exp(x)) - 20.0 * x); };   // infinite from 6.57 on
  for (const Minimum& m : minima_of(wall, tensor({-3.0, 2.5, 1.8}, DType::f64))) {
    CAPTURE(m.reason, m.evaluations);
    CHECK(m.converged);
  }
  const auto minus_infinity = [&](const Tensor& x) {   // beside its minimum
    return where(greater(x, 3.0), number(-std::numeric_limits<double>::infinity()), square(x - 2.0));
  };
  for (const Minimum& m : minima_of(minus_infinity, number(-4.0))) {
    CAPTURE(m.reason);
    CHECK(std::abs(m.x[0].item<double>() - 2) < 1e-6);
  }
}

// As a function of where() may have it.
TEST_CASE("a point that is not finite is not a minimum", "[minimizers]") {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const auto f = [](const Tensor& x) {   // no curvature: Newton's step has no end
      return sum(
          where(less(abs(x), std::numeric_limits<double>::infinity()), x, full(x.shape(), -1e30, x.dtype())));
    };
    for (const Minimum& m : minima_of(f, tensor({3.0, -2.0}, dtype))) {
      CAPTURE(m.reason, m.x[0]);
      CHECK(std::isfinite(sum(m.x[0]).item()));
      CHECK(m.value < -10);
    }
  }
}

TEST_CASE("one wrong gradient does not lead to a wrong minimum", "[minimizers]") {
  for (const double wrong : {1e20, -1e20, 1e200, std::numeric_limits<double>::infinity()})
    for (int when = 2; when < 8; ++when) {
      int calls = 0;
      const auto f = [&](const Tensor& x) {
        Tensor here;
        {
          const StopRecording unrecorded;
          here = x * 1.0;
        }
        const Tensor value = sum(square(square(x - 3.0)) + square(x));
        return ++calls == when ? value + sum((x - here) * wrong) : value;
      };
      for (const Minimum& m : minima_of(f, tensor({30.0, -2.0}, DType::f64))) {
        CAPTURE(wrong, when, m.reason, m.x[0]);
        CHECK(std::isfinite(sum(m.x[0]).item()));
        CHECK((m.value < 3000 || m.reason.starts_with("no step lowers the value, which does not follow")));
        CHECK(m.value < 531000);   // of the start
        calls = 0;
      }
    }
}

TEST_CASE("a minimizer that is stuck gives the reason", "[minimizers]") {
  SECTION("rounding") {
    const auto f = [](const Tensor& x) { return 1e8 + sum(square(x - 1.0)); };
    for (const Minimum& m : minima_of(f, tensor({3.0, -2.0}, DType::f64), {.tolerance = 1e-13})) {
      CHECK(m.reason == (m.converged ? "the gradient is small"
                                     : "rounding: no step along the gradient lowers the value"));
      CHECK(max(abs(m.x[0] - 1.0)).item<double>() < 1e-3);
    }
    const auto g = [](const Tensor& x) { return sum(square(x - 0.1) * (1.0f + x)); };   // in f32
    for (const Minimum& m : minima_of(g, tensor({3.0f, 2.0f}, DType::f32), {.tolerance = 0}))
      CHECK(m.reason == (m.converged ? "the gradient is small"
                                     : "rounding: no step along the gradient lowers the value"));
  }
  SECTION("rounding of f32") {   // whose shortest steps that can be seen are long
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const Tensor a = random::normal({30, 10}, {.seed = seed}),
                   y = random::uniform({30, 1}, {.seed = seed + 100});
      const auto f = [&](const Tensor& x) {
        const Tensor z = matmul(a, reshape(x, {10, 1}));
        return mean(softplus(z) - y * z) + 0.01 * sum(square(x));
      };
      for (const Minimum& m : minima_of(f, random::normal({10}, {.seed = seed + 200}), {.tolerance = 0})) {
        CAPTURE(seed, m.gradient_norm);
        CHECK_THAT(m.reason, !Contains("kink"));
        CHECK(m.gradient_norm < 1e-3);
      }
    }
  }
  SECTION("a kink") {
    const auto f = [](const Tensor& x) { return sum(maximum(x - 1.0 / 3, 2.0 / 3 - 2.0 * x)); };
    for (const DType dtype : {DType::f32, DType::f64})
      for (const Minimum& m : minima_of(f, tensor({0.7, -0.7}, dtype), {.max_iterations = 3000})) {
        CHECK_THAT(
            m.reason,
            StartsWith("no step lowers the value, which does not follow the gradient (it has a kink at x"));
        CHECK_FALSE(m.converged);
      }
  }
  SECTION("a kink at which the gradient is small") {
    const auto f = [](const Tensor& x) {
      Tensor here;
      {
        const StopRecording unrecorded;
        here = x * 1.0;
      }
      return sum(abs(here) + (x - here) * 1e-6) + 1.0;
    };
    for (const Minimum& m : minima_of(f, number(0.0), {.tolerance = 0})) {
      CHECK_THAT(m.reason, Contains("it has a kink at x"));
      CHECK(std::abs(m.x[0].item<double>()) < 1e-12);
    }
  }
  SECTION("not finite near x") {
    const auto f = [](const Tensor& x) { return where(equal(x, 1.0), square(x), number(std::nan(""))); };
    for (const Minimum& m : minima_of(f, number(1.0))) {
      CHECK(m.reason == "no step lowers the value: near x the value or the gradient is not finite");
      CHECK(m.value == 1);
    }
  }
  if (!has_lbfgs()) return;
  SECTION("a wrong gradient") {
    for (const double factor : {-1.0, -1e-3, -1e3}) {
      const ValueAndGrad f = {[factor](const std::vector<Tensor>& x) {
        return std::pair(sum(square(x[0])), std::vector<Gradient>{factor * 2.0 * x[0]});
      }};
      const Minimum m = minimize_lbfgs(f, {tensor({3.0, -2.0}, DType::f64)});
      CHECK_THAT(m.reason, StartsWith("no step lowers the value, which does not follow the gradient"));
      CHECK(m.value <= 13);   // one side of x is lower
      double change = 0, by_gradient = 0;
      const std::size_t numbers = m.reason.find("over a short step");
      REQUIRE(numbers != std::string::npos);
      REQUIRE(std::sscanf(m.reason.c_str() + numbers,
                          "over a short step it changes by %lf, where the gradient predicts %lf", &change,
                          &by_gradient) == 2);
      CHECK(by_gradient > 0);
      CHECK(by_gradient < 1e-3);
      CHECK(change * factor == Approx(by_gradient).epsilon(0.02));
    }
  }
  SECTION("a gradient along which the value has its minimum") {
    const Tensor turn = tensor({{0.0, 1.0}, {-1.0, 0.0}}, DType::f64);
    const ValueAndGrad f = {[turn](const std::vector<Tensor>& x) {
      return std::pair(sum(square(x[0])), std::vector<Gradient>{matmul(x[0], turn)});
    }};
    const Minimum m = minimize_lbfgs(f, {tensor({{3.0, -2.0}}, DType::f64)});
    CHECK_THAT(m.reason, StartsWith("no step lowers the value, which does not follow the gradient"));
  }
  SECTION("no minimum") {
    const Minimum m = minimize_lbfgs([](const Tensor& x) { return sum(x); }, tensor({3.0, -2.0}, DType::f64));
    CHECK_THAT(m.reason, StartsWith("the longest step") && EndsWith("it may have no minimum"));
    CHECK(m.value < -1e19);
  }
}

// The least value is seen in a search that fails: each gradient is right, but the wave's ends are steep.
TEST_CASE("a failed search keeps the lowest value found", "[minimizers]") {
  if (!has_lbfgs()) return;
  std::vector<double> values, reported;
  const auto f = [&](const Tensor& x) {
    const Tensor value = sum(square(x)) + 30.0 * sum(sin(40.0 * x));
    values.push_back(value.item<double>());
    return value;
  };
  const auto progress = [&](const Minimum& m) { return reported.push_back(m.value), true; };
  const Minimum m =
      minimize_lbfgs(f, tensor({3.0, -2.0, 7.0}, DType::f64), {{.max_iterations = 30, .progress = progress}});
  CHECK(m.value == Approx(*std::min_element(values.begin(), values.end())).epsilon(1e-15));
  CHECK(std::is_sorted(reported.rbegin(), reported.rend()));
  CHECK(reported.size() == static_cast<std::size_t>(m.iterations));
}

TEST_CASE("an exception of the function leaves the start unchanged", "[minimizers]") {
  for (int by_lbfgs = 0; by_lbfgs < 1 + has_lbfgs(); ++by_lbfgs)
    for (int last = 1; last < 12; ++last) {
      const Variable w(tensor({-1.2, 1.0}, DType::f64));
      int calls = 0;
      const auto f = [&](const Tensor& x) {
        if (++calls == last) throw ArgumentError("enough");
        const Tensor a = slice(x, {0}, {1}), b = slice(x, {1}, {1});
        return sum(100.0 * square(b - square(a)) + square(1.0 - a));
      };
      const Tensor start = w.value();
      CHECK(message_of<ArgumentError>(
                [&] { by_lbfgs ? minimize_lbfgs(f, start) : minimize_newton(f, start); }) == "enough");
      CHECK(calls == last);
      CHECK(w.value().at<double>({0}) == -1.2);
      CHECK(w.value().at<double>({1}) == 1.0);
      CHECK(start.at<double>({0}) == -1.2);
    }
}

}   // namespace stuck_test
