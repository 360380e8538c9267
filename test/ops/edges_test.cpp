// Elementwise ops at the edges: zeros of both signs, the smallest and the largest numbers, infinities, NaN,
// ends of domains, branch cuts. Covers all ops that have a loop of the library's, new ones included.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <complex>
#include <cstdio>
#include <functional>
#include <limits>
#include <map>

#include "ops/op_samples.h"
#include "tapedeck/forward_accumulator.h"

namespace edges_test {

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity(),
                 kNaN = std::numeric_limits<double>::quiet_NaN();

std::vector<const Op*> ops_of(std::ptrdiff_t inputs) {
  std::vector<const Op*> found;
  for (const ops::Family& family : ops::families())
    for (const Op* op : family.ops)
      if (op->forward.loops &&
          std::find(op->args, op->args + kMaxInputs, std::string_view()) - op->args == inputs)
        found.push_back(op);
  return found;
}

struct Type {
  DType dtype;
  double smallest, normal, largest, epsilon;
};
constexpr Type kReal[] = {
    {DType::f64, 0x1p-1074, 0x1p-1022, std::numeric_limits<double>::max(), 0x1p-52},
    {DType::f32, 0x1p-149, 0x1p-126, std::numeric_limits<float>::max(), 0x1p-23},
    {DType::f16, 0x1p-24, 0x1p-14, 65504, 0x1p-10},
    {DType::bf16, 0x1p-133, 0x1p-126, 0x1.fep127, 0x1p-7},
};

/// 0, the ends of the type and of most domains, and numbers between; of both signs, and NaN.
std::vector<double> points_of(const Type& t) {
  std::vector<double> points;
  for (const double x : {0.0, t.smallest, t.normal / 2, t.normal, 0.5, 1 - t.epsilon, 1.0, 1 + t.epsilon, 1.5,
                         2.0, 10.0, t.largest, kInf})
    points.push_back(x), points.push_back(-x);
  points.push_back(kNaN);
  return points;
}
std::vector<std::vector<double>> pairs_of(const Type& t) {
  std::vector<double> some;
  for (const double x : {0.0, t.smallest, 0.5, 1.0, 2.0, t.largest, kInf})
    some.push_back(x), some.push_back(-x);
  some.push_back(kNaN);
  std::vector<std::vector<double>> pairs(2);
  for (const double a : some)
    for (const double b : some)
      pairs[0].push_back(a), pairs[1].push_back(b);
  return pairs;
}
std::vector<std::vector<double>> points_of(const Type& t, std::ptrdiff_t inputs) {
  return inputs == 1 ? std::vector<std::vector<double>>{points_of(t)} : pairs_of(t);
}

/// An op's value, and for each input the derivative by a tape, by a tape whose pass is recorded, which is
/// made of ops, and by an accumulator, where it has one.
struct Computed {
  std::vector<double> value, reverse[2], recorded[2], forward[2];
};
std::vector<double> numbers(const Tensor& x) { return astype(x, DType::f64).to_vector(); }
std::vector<double> numbers(const Gradient& g, const Tensor& x) {
  return g.defined() ? numbers(g.dense()) : std::vector<double>(static_cast<std::size_t>(x.size()));
}
Computed computed(const Op& op, const Tensors& x) {
  Computed r;
  const Tensor y = op.run(x)[0];
  r.value = numbers(y);
  if (!has_derivative(op)) return r;
  const auto by_tape = [&](const Tensor& t) {
    GradientTape tape;
    tape.watch(t);
    return tape.gradient(op.run(x)[0], t);
  };
  for (std::size_t i = 0; i < x.size(); ++i) {
    r.reverse[i] = numbers(by_tape(x[i]), x[i]);
    GradientTape outer;
    outer.watch(x[i]);
    r.recorded[i] = numbers(by_tape(x[i]), x[i]);
    outer.stop();
    const ForwardAccumulator accumulator(x[i], ones_like(x[i]));
    const Tensor dy = accumulator.jvp(op.run(x)[0]).tensor();
    r.forward[i] = dy.defined() ? numbers(dy) : std::vector<double>(r.value.size());
  }
  return r;
}

bool same_bits(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}
bool near(double a, double b, double tolerance, double smallest) {
  if (!std::isfinite(a) || !std::isfinite(b)) return (std::isnan(a) && std::isnan(b)) || a == b;
  return std::abs(a - b) <= tolerance * std::abs(b) + smallest;
}
/// Calls check(op, type, points, i) for the point i of each.
template <class F> void for_all(const F& check) {
  for (const std::ptrdiff_t inputs : {1, 2}) {
    const std::vector<const Op*> ops = ops_of(inputs);
    CHECK(ops.size() > (inputs == 1 ? 70u : 15u));
    for (const Op* op : ops)
      for (const Type& t : kReal) {
        const auto points = points_of(t, inputs);
        Tensors x;
        for (const std::vector<double>& p : points)
          x.push_back(astype(tensor(p, Shape{static_cast<std::int64_t>(p.size())}), t.dtype));
        check(*op, t, points, x, computed(*op, x));
      }
  }
}
std::string shown(const std::vector<std::vector<double>>& points, std::size_t at) {
  std::string text;
  for (const std::vector<double>& p : points) {
    char number[40];
    std::snprintf(number, sizeof number, "%s%.17g", text.empty() ? "" : ", ", p[at]);
    text += number;
  }
  return text;
}

/// A derivative that is NaN where the value is a number, and why.
struct Undefined {
  std::string_view op;
  bool (*at)(double a, double b);
  std::string_view why;
};
bool anywhere(double, double) { return true; }
bool at_infinity(double a, double b) { return std::isinf(a) || std::isinf(b); }
constexpr Undefined kUndefined[] = {
    {"lgamma", [](double x, double) { return x <= -1 && x == std::floor(x); }, "a pole between two signs"},
    {"fresnel_sin", at_infinity, "sin(πx²/2) has no limit"},
    {"fresnel_cos", at_infinity, "cos(πx²/2) has no limit"},
    {"atan2", [](double a, double b) { return (a == 0 && b == 0) || at_infinity(a, b); },
     "no direction at the origin; a quotient of infinities"},
    {"hypot", at_infinity, "a quotient of infinities"},
    {"pow", at_infinity, "0 times infinity"},
    {"logaddexp", [](double a, double b) { return a == b && a > 0; }, "a difference of infinities"},
    {"xlogy", at_infinity, "a quotient of infinities"},
    {"xlog1py", at_infinity, "a quotient of infinities"},
    {"silu", [](double, double beta) { return std::abs(beta) > 2; }, "0 times infinity"},
    {"zeta", [](double s, double q) { return at_infinity(s, q) || s > 1e3; }, "0 times infinity"},
    {"igamma", [](double a, double) { return a > 1e3; }, "the density has no limit for infinite a"},
    {"igammac", [](double a, double) { return a > 1e3; }, "the density has no limit for infinite a"},
    // Not public; they make second derivatives.
    {"gaussian", anywhere, "of a second derivative"},
    {"over_hypot", anywhere, "of a second derivative"},
    {"gamma_density", anywhere, "of a second derivative"},
    {"atan_slope", at_infinity, "of a second derivative"},
    {"asinh_slope", at_infinity, "of a second derivative"},
    {"acosh_slope", at_infinity, "of a second derivative"},
    {"gamma_grad", anywhere, "of random numbers"},
};
bool may_be_undefined(const Op& op, double a, double b) {
  return std::any_of(std::begin(kUndefined), std::end(kUndefined),
                     [&](const Undefined& u) { return u.op == op.name && u.at(a, b); });
}

}   // namespace

TEST_CASE("derivatives by a tape, by recorded ops and by an accumulator agree", "[edges]") {
  for_all([](const Op& op, const Type& t, const auto& points, const Tensors& x, const Computed& r) {
    if (!has_derivative(op)) return;
    for (std::size_t i = 0; i < x.size(); ++i)
      for (std::size_t at = 0; at < r.value.size(); ++at) {
        INFO(op.name << '(' << shown(points, at) << ") in input " << i << ", " << name_of(t.dtype));
        if (!near(r.reverse[i][at], r.forward[i][at], 4 * t.epsilon, t.smallest))
          CHECK(r.reverse[i][at] == r.forward[i][at]);
        // Ops that read x beside a rule that reads f(x), which halves have rounded, and differences from 1.
        const bool half = size_of(t.dtype) == 2;
        if (!half && op.name != "gamma_grad" &&
            !near(r.reverse[i][at], r.recorded[i][at], 4 * t.epsilon, 4 * t.epsilon))
          CHECK(r.reverse[i][at] == r.recorded[i][at]);
      }
  });
}

TEST_CASE("a derivative is NaN only if the value or an input is", "[edges]") {
  for_all([](const Op& op, const Type& t, const auto& points, const Tensors& x, const Computed& r) {
    if (!has_derivative(op)) return;
    for (std::size_t i = 0; i < x.size(); ++i)
      for (std::size_t at = 0; at < r.value.size(); ++at) {
        const double a = points[0][at], b = points.back()[at];
        if (!std::isnan(r.reverse[i][at]) || std::isnan(r.value[at]) || std::isnan(a) || std::isnan(b) ||
            may_be_undefined(op, a, b))
          continue;
        INFO(op.name << '(' << shown(points, at) << ") in input " << i << ", " << name_of(t.dtype));
        CHECK(r.reverse[i][at] == r.value[at]);
      }
  });
}

TEST_CASE("one element has the bits of many", "[edges]") {
  for_all([](const Op& op, const Type& t, const auto& points, const Tensors& x, const Computed& r) {
    for (std::size_t at = 0; at < r.value.size(); ++at) {
      Tensors one;
      for (const Tensor& v : x)
        one.push_back(fresh(slice(v, {static_cast<std::int64_t>(at)}, {1})));
      const Computed c = computed(op, one);
      INFO(op.name << '(' << shown(points, at) << "), " << name_of(t.dtype));
      if (!same_bits(c.value[0], r.value[at])) CHECK(c.value[0] == r.value[at]);
      if (!has_derivative(op)) continue;
      for (std::size_t i = 0; i < x.size(); ++i) {
        INFO("derivative in input " << i);
        if (!same_bits(c.reverse[i][0], r.reverse[i][at])) CHECK(c.reverse[i][0] == r.reverse[i][at]);
        if (!same_bits(c.forward[i][0], r.forward[i][at])) CHECK(c.forward[i][0] == r.forward[i][at]);
      }
    }
  });
}

// The sign next to 0 tells that of f(±0) = 0.
TEST_CASE("zero results have the sign of their neighbours", "[edges][sign_of_zero]") {
  for (const Op* op : ops_of(1))
    for (const Type& t : kReal)
      for (const double sign : {1.0, -1.0})
        for (const std::int64_t n : {1, 64}) {
          const auto at = [&](double x) { return numbers(op->run({{full({n}, x, t.dtype)}})[0]); };
          const std::vector<double> zero = at(sign * 0.0), beside = at(sign * 0x1p-6);
          if (zero[0] != 0) continue;
          INFO(op->name << '(' << (sign < 0 ? "-0" : "0") << "), " << n << " of " << name_of(t.dtype));
          CHECK(std::all_of(zero.begin(), zero.end(),
                            [&](double y) { return y == 0 && std::signbit(y) == std::signbit(beside[0]); }));
        }
}

namespace {

using Unary = double (*)(double);
using Binary = double (*)(double, double);
/// C's functions, whose values at the edges are those of the ops.
const std::map<std::string_view, Unary> kUnary = {
    {"neg", [](double x) { return -x; }},
    {"abs", std::fabs},
    {"square", [](double x) { return x * x; }},
    {"reciprocal", [](double x) { return 1 / x; }},
    {"sqrt", std::sqrt},
    {"rsqrt", [](double x) { return 1 / std::sqrt(x); }},
    {"cbrt", std::cbrt},
    {"exp", std::exp},
    {"exp2", std::exp2},
    {"expm1", std::expm1},
    {"log", std::log},
    {"log1p", std::log1p},
    {"log2", std::log2},
    {"log10", std::log10},
    {"sin", std::sin},
    {"cos", std::cos},
    {"tan", std::tan},
    {"asin", std::asin},
    {"acos", std::acos},
    {"atan", std::atan},
    {"sinh", std::sinh},
    {"cosh", std::cosh},
    {"tanh", std::tanh},
    {"asinh", std::asinh},
    {"acosh", std::acosh},
    {"atanh", std::atanh},
    {"erf", std::erf},
    {"erfc", std::erfc},
    {"lgamma", [](double x) { return std::lgamma(x); }},
    {"floor", std::floor},
    {"ceil", std::ceil},
    {"trunc", std::trunc},
    {"round", std::nearbyint},
    {"rint", std::nearbyint},
    {"bessel_j0", [](double x) { return ::j0(x); }},
    {"bessel_j1", [](double x) { return ::j1(x); }},
    {"bessel_y0", [](double x) { return x == 0  ? -kInf
                                        : x < 0 ? kNaN
                                                : ::y0(x); }},
    {"bessel_y1", [](double x) { return x == 0  ? -kInf
                                        : x < 0 ? kNaN
                                                : ::y1(x); }},
};
const std::map<std::string_view, Binary> kBinary = {
    {"add", [](double a, double b) { return a + b; }},
    {"sub", [](double a, double b) { return a - b; }},
    {"mul", [](double a, double b) { return a * b; }},
    {"div", [](double a, double b) { return a / b; }},
    {"pow", [](double a, double b) { return std::pow(a, b); }},
    {"atan2", [](double a, double b) { return std::atan2(a, b); }},
};

}   // namespace

TEST_CASE("values agree with C's library", "[edges]") {
  std::size_t compared = 0;
  for_all([&](const Op& op, const Type& t, const auto& points, const Tensors& x, const Computed& r) {
    const auto unary = kUnary.find(op.name);
    const auto binary = kBinary.find(op.name);
    if (unary == kUnary.end() && binary == kBinary.end()) return;
    compared += t.dtype == DType::f64;
    for (std::size_t at = 0; at < r.value.size(); ++at) {
      const double exact = unary != kUnary.end() ? unary->second(points[0][at])
                                                 : binary->second(points[0][at], points[1][at]),
                   y = r.value[at], expected = numbers(full({1}, exact, t.dtype))[0];
      // Of large numbers C's Bessel functions know the size alone.
      if (op.name.starts_with("bessel") && std::abs(points[0][at]) > 100 && std::abs(y) < 1e-1) continue;
      if (near(y, expected, 8 * t.epsilon, 4 * t.smallest) &&
          (std::isnan(y) || std::signbit(y) == std::signbit(expected)))
        continue;
      INFO(op.name << '(' << shown(points, at) << "), " << x.size() << ", " << name_of(t.dtype));
      CHECK(y == expected);
    }
  });
  CHECK(compared == kUnary.size() + kBinary.size());
}

// Limits in closed form, and values of mpmath 1.2.1 with 50 digits.
TEST_CASE("values and derivatives at ends of domains are the limits", "[edges]") {
  constexpr double kTiny = 0x1p-1074, kSub = 1e-310;
  const struct {
    std::string_view op;
    double x, value, slope;
  } table[] = {
      {"sqrt", 0, 0, kInf},
      {"cbrt", 0, 0, kInf},
      {"log", 0, -kInf, kInf},
      {"log1p", -1, -kInf, kInf},
      {"asin", 1, 1.5707963267948966, kInf},
      {"asin", -1, -1.5707963267948966, kInf},
      {"acos", 1, 0, -kInf},
      {"acos", -1, 3.141592653589793, -kInf},
      {"atan", kInf, 1.5707963267948966, 0},
      {"tanh", -kInf, -1, 0},
      {"acosh", 1, 0, kInf},
      {"acosh", kInf, kInf, 0},
      {"atanh", 1, kInf, kInf},
      {"atanh", -1, -kInf, kInf},
      {"erf", kInf, 1, 0},
      {"erfc", -kInf, 2, 0},
      {"erfinv", 1, kInf, kInf},
      {"erfinv", -1, -kInf, kInf},
      {"erfcinv", 0, kInf, -kInf},
      {"erfcinv", kTiny, 27.21329321081295, -kInf},
      {"erfcinv", kSub, 26.644806559364763, -kInf},
      {"erfcinv", 2, -kInf, -kInf},
      {"ndtri", 0, -kInf, kInf},
      {"ndtri", kTiny, -38.467405617144344, kInf},
      {"ndtri", kSub, -37.663060331949524, kInf},
      {"ndtri", 1, kInf, kInf},
      {"sigmoid", kInf, 1, 0},
      {"sigmoid", -kInf, 0, 0},
      {"log_sigmoid", -kInf, -kInf, 1},
      {"softplus", -kInf, 0, 0},
      {"softplus", kInf, kInf, 1},
      {"elu", -kInf, -1, 0},
      {"elu", kInf, kInf, 1},
      {"gelu", -kInf, 0, 0},
      {"gelu", kInf, kInf, 1},
      {"gelu_tanh", -kInf, 0, 0},
      {"gelu_tanh", kInf, kInf, 1},
      {"softsign", kInf, 1, 0},
      {"softsign", -kInf, -1, 0},
      {"digamma", kTiny, -kInf, kInf},
      {"lgamma", kTiny, 744.4400719213812, -kInf},
      {"expint", kInf, kInf, kInf},
      {"expint", kTiny, -743.8628562564797, kInf},
      {"expint", -kInf, 0, 0},
      {"spence", 0, 1.6449340668482264, -kInf},
      {"spence", kTiny, 1.6449340668482264, -744.4400719213812},
      {"spence", kInf, -kInf, 0},
      {"dawsn", kInf, 0, 0},
      {"dawsn", kTiny, kTiny, 1},
      {"fresnel_sin", kTiny, 0, 0},
      {"fresnel_cos", kTiny, kTiny, 1},
      {"fresnel_sin", 0x1p1000, 0.5, 0},
      {"fresnel_cos", -0x1p1000, -0.5, 1},
      {"bessel_i0", kTiny, 1, 0},
      {"bessel_i0e", 0, 1, 0},
      {"bessel_i1", kTiny, 0, 0.5},
      {"bessel_i1", -kSub, -5e-311, 0.5},
      {"bessel_i1e", kTiny, 0, 0.5},
      {"bessel_i1e", -kSub, -5e-311, 0.5},
      {"bessel_i1e", kInf, 0, 0},
      {"bessel_j0", kTiny, 1, 0},
      {"bessel_j1", kTiny, 0, 0.5},
      {"bessel_j1", -kSub, -5e-311, 0.5},
      {"bessel_k0", kTiny, 744.5560034370396, -kInf},
      {"bessel_k0e", kTiny, 744.5560034370396, -kInf},
      {"bessel_k0", kSub, 713.9173103438126, -kInf},
      {"bessel_k1", 0, kInf, -kInf},
      {"bessel_k1", -0.0, kInf, -kInf},
      {"bessel_k1", kTiny, kInf, -kInf},
      {"bessel_k1e", kTiny, kInf, -kInf},
      {"bessel_y0", 0, -kInf, kInf},
      {"bessel_y0", kTiny, -473.9990734230043, kInf},
      {"bessel_y0", kSub, -454.4938756003539, kInf},
      {"bessel_y1", 0, -kInf, kInf},
      {"bessel_y1", kTiny, -kInf, kInf},
      {"bessel_y1", kSub, -kInf, kInf},
  };
  std::size_t compared = 0;
  for (const auto& [name, x, value, slope] : table)
    for (const Op* op : ops_of(1))
      if (op->name == name) {
        ++compared;
        INFO(name << '(' << x << ')');
        const Computed r = computed(*op, {full({1}, x, DType::f64)});
        if (!near(r.value[0], value, 1e-13, kTiny)) CHECK(r.value[0] == value);
        if (!near(r.reverse[0][0], slope, 1e-13, kTiny)) CHECK(r.reverse[0][0] == slope);
      }
  CHECK(compared == std::size(table));
}

TEST_CASE(
    "the slope of pow is 0 in a base with exponent 0, and in the exponent of a base that is not above 0",
    "[edges]") {
  const std::vector<const Op*> ops = ops_of(2);
  const auto op = std::find_if(ops.begin(), ops.end(), [](const Op* o) { return o->name == "pow"; });
  REQUIRE(op != ops.end());
  for (const double a : {0x1p-1074, 1e-310, -1e-310, 0.0, 3.0})
    CHECK(computed(**op, {full({1}, a, DType::f64), full({1}, 0, DType::f64)}).reverse[0][0] == 0);
  for (const double a : {-kInf, -2.0, 0.0})
    CHECK(computed(**op, {full({1}, a, DType::f64), full({1}, 2, DType::f64)}).reverse[1][0] == 0);
}

// As docs/inside/decisions/elementwise_functions.md says: the smaller side's, and what a comparison with NaN
// chooses.
TEST_CASE("at the kink at 0 derivatives are taken on the smaller side", "[edges]") {
  const auto slope = [](const auto& f, double x) { return grad(f, tensor(x, DType::f64)).dense().item(); };
  const auto of_relu = [](const Tensor& x) { return relu(x); };
  const auto of_relu6 = [](const Tensor& x) { return relu6(x); };
  const auto of_selu = [](const Tensor& x) { return selu(x); };
  const auto of_elu_slope = [](const Tensor& x) {
    return grad([](const Tensor& t) { return elu(t); }, x).dense();
  };
  CHECK(slope(of_relu, 0) == 0);
  CHECK(slope(of_relu6, 0) == 0);
  CHECK(slope(of_selu, 0) == Approx(1.7580993408473766));
  CHECK(slope(of_elu_slope, 0) == 1);
  CHECK(slope([](const Tensor& x) { return leaky_relu(x, 0.25); }, 0) == 0.25);
  CHECK(slope(of_relu, kNaN) == 0);
  CHECK(slope(of_relu6, kNaN) == 0);
  CHECK(slope([](const Tensor& x) { return clip(x, 0, 1); }, kNaN) == 0);
}

// P(a, x) is 1 - a E₁(x) + O(a²).
TEST_CASE("incomplete gamma functions of subnormal a are the limits", "[edges]") {
  for (const double a : {0x1p-1074, 1e-310})
    for (const double x : {0x1p-1074, 0.5, 1.0, 2.0}) {
      INFO(a << ", " << x);
      CHECK(igamma(full({3}, a, DType::f64), full({3}, x, DType::f64)).to_vector() ==
            std::vector<double>(3, 1));
      const double expected = -a * std::expint(-x);
      CHECK(std::abs(igammac(full({3}, a, DType::f64), full({3}, x, DType::f64)).to_vector()[0] - expected) <=
            1e-13 * expected + 0x1p-1074);
    }
}

namespace {

/// Numbers on both sides of the branch cuts of all functions, near their ends, and elsewhere.
std::vector<Number> complex_points() {
  std::vector<Number> z = {{0.7, -1.2}, {-1.5, 0.25}, {-0.3, -0.8}};
  for (const double part : {0.25, 0.75, 1.5, 2.0, 20.0})
    for (const double sign : {1.0, -1.0})
      for (const double zero : {0.0, -0.0})
        z.emplace_back(sign * part, zero), z.emplace_back(zero, sign * part);
  return z;
}
Tensor complex_tensor(const std::vector<Number>& z, DType dtype) {
  return astype(tensor(z, Shape{static_cast<std::int64_t>(z.size())}), dtype);
}
Tensor ones_as(const Tensor& x) { return complex(ones_like(real(x)), zeros_like(real(x))); }

/// Of f at z in input i, by two numbers beside it along the axis that z is on, so on its side of a cut.
Number by_differences(const std::function<Number(Number)>& f, Number z) {
  const double h = 1e-5;
  const bool imaginary = z.real() == 0 && z.imag() != 0;
  const auto moved = [&](double by) {
    return imaginary ? Number(z.real(), z.imag() + by) : Number(z.real() + by, z.imag());
  };
  const Number difference = f(moved(h)) - f(moved(-h));
  return imaginary ? Number(difference.imag(), -difference.real()) / (2 * h) : difference / (2 * h);
}

}   // namespace

TEST_CASE("complex derivatives on both sides of branch cuts are adjoint, and right", "[edges][complex]") {
  std::size_t ops = 0;
  for (const std::ptrdiff_t inputs : {1, 2})
    for (const Op* op : ops_of(inputs)) {
      if (!entry_of(*op).takes_complex || !has_derivative(*op)) continue;
      ++ops;
      for (const DType dtype : {DType::c128, DType::c64})
        for (std::size_t i = 0; i < static_cast<std::size_t>(inputs); ++i) {
          const std::vector<Number> z = complex_points();
          Tensors x(static_cast<std::size_t>(inputs),
                    complex_tensor(Numbers(z.size(), Number(0.75, -0.5)), dtype));
          x[i] = complex_tensor(z, dtype);
          const auto reverse = [&] {
            GradientTape tape;
            tape.watch(x[i]);
            return tape.gradient({op->run(x)[0]}, {x[i]}, {.output_gradients = std::vector{ones_as(x[i])}})[0]
                .dense();
          };
          const Numbers by_tape = numbers_of(reverse());
          GradientTape outer;
          outer.watch(x[i]);
          const Numbers in_ops = numbers_of(reverse());
          outer.stop();
          const ForwardAccumulator accumulator(x[i], ones_as(x[i]));
          const Numbers forward = numbers_of(accumulator.jvp(op->run(x)[0]));
          const double tolerance = dtype == DType::c128 ? 1e-13 : 1e-5;
          for (std::size_t at = 0; at < z.size(); ++at) {
            INFO(op->name << " in input " << i << " at " << z[at] << ", " << name_of(dtype));
            const auto differ = [&](Number p, Number q, double by) {
              return is_nan(p) != is_nan(q) || (p != q && std::abs(p - q) > by * (std::abs(q) + 1e-3));
            };
            if (differ(std::conj(by_tape[at]), forward[at], tolerance))
              CHECK(std::conj(by_tape[at]) == forward[at]);
            if (differ(in_ops[at], by_tape[at], tolerance)) CHECK(in_ops[at] == by_tape[at]);
            if (dtype != DType::c128 || !std::isfinite(std::abs(forward[at]))) continue;
            const Number expected = by_differences(
                [&](Number v) {
                  Tensors w(static_cast<std::size_t>(inputs), complex_tensor({Number(0.75, -0.5)}, dtype));
                  w[i] = complex_tensor({v}, dtype);
                  return numbers_of(op->run(w)[0])[0];
                },
                z[at]);
            if (differ(forward[at], expected, 1e-5) && std::abs(expected) < 1e3)
              CHECK(forward[at] == expected);
          }
        }
    }
  CHECK(ops > 25);
}

TEST_CASE("complex values agree with C++'s library", "[edges][complex]") {
  using Function = Number (*)(const Number&);
  const std::map<std::string_view, Function> functions = {
      {"sqrt", std::sqrt<double>},
      {"exp", std::exp<double>},
      {"log", std::log<double>},
      {"sin", std::sin<double>},
      {"cos", std::cos<double>},
      {"tan", std::tan<double>},
      {"asin", [](const Number& z) { return std::asin(z); }},
      {"acos", [](const Number& z) { return std::acos(z); }},
      {"atan", [](const Number& z) { return std::atan(z); }},
      {"sinh", std::sinh<double>},
      {"cosh", std::cosh<double>},
      {"tanh", std::tanh<double>},
      {"asinh", [](const Number& z) { return std::asinh(z); }},
      {"acosh", [](const Number& z) { return std::acosh(z); }},
      {"atanh", [](const Number& z) { return std::atanh(z); }},
  };
  for (const Op* op : ops_of(1))
    if (const auto f = functions.find(op->name); f != functions.end()) {
      CHECK(entry_of(*op).takes_complex);
      const std::vector<Number> z = complex_points();
      for (const std::int64_t n : {1, 64})
        for (const Number& at : z) {
          INFO(op->name << at << ", " << n << " elements");
          const Number expected = f->second(at);
          const auto same = [](double a, double b) {
            return std::signbit(a) == std::signbit(b) && std::abs(a - b) <= 1e-14 * std::abs(b);
          };
          for (const Number& y : numbers_of(
                   op->run({{complex_tensor(Numbers(static_cast<std::size_t>(n), at), DType::c128)}})[0]))
            if (!same(y.real(), expected.real()) || !same(y.imag(), expected.imag())) CHECK(y == expected);
        }
    }
}

}   // namespace edges_test
