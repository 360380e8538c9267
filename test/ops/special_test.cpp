// Special functions: compared with the values of test/data/special.json, at the ends of their domains, and
// where rules have branches.
#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <functional>
#include <limits>

#include "case.h"
#include "data_folder.h"
#include "message_of.h"
#include "values.h"

namespace special_test {

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

using Of = std::function<Tensor(const std::vector<Tensor>&)>;

template <Tensor (*f)(Operand)> Tensor of_one(const std::vector<Tensor>& x) { return f(x[0]); }
template <Tensor (*f)(Operand, Operand)> Tensor of_two(const std::vector<Tensor>& x) { return f(x[0], x[1]); }

struct Measured {
  const char* name;
  Of f;
  double tolerance;   // relative, in f64
};

const Measured kFunctions[] = {
    {"erf", of_one<erf>, 1e-15},
    {"erfc", of_one<erfc>, 1e-13},
    {"erfinv", of_one<erfinv>, 1e-14},
    {"erfcinv", of_one<erfcinv>, 1e-14},
    {"ndtri", of_one<ndtri>, 1e-14},
    {"lgamma", of_one<lgamma>, 1e-13},
    {"digamma", of_one<digamma>, 1e-13},
    {"polygamma", of_two<polygamma>, 1e-11},
    {"zeta", of_two<zeta>, 1e-11},
    {"igamma", of_two<igamma>, 1e-11},
    {"igammac", of_two<igammac>, 1e-11},
    {"igamma_grad_a", [](const std::vector<Tensor>& x) { return igamma_grad_a(x[0], x[1]); }, 1e-11},
    {"betainc", [](const std::vector<Tensor>& x) { return betainc(x[0], x[1], x[2]); }, 1e-11},
    {"dawsn", of_one<dawsn>, 1e-13},
    {"expint", of_one<expint>, 1e-13},
    {"fresnel_sin", of_one<fresnel_sin>, 1e-13},
    {"fresnel_cos", of_one<fresnel_cos>, 1e-13},
    {"spence", of_one<spence>, 1e-13},
    {"bessel_i0", of_one<bessel_i0>, 1e-13},
    {"bessel_i0e", of_one<bessel_i0e>, 1e-13},
    {"bessel_i1", of_one<bessel_i1>, 1e-13},
    {"bessel_i1e", of_one<bessel_i1e>, 1e-13},
    {"bessel_j0", of_one<bessel_j0>, 1e-13},
    {"bessel_j1", of_one<bessel_j1>, 1e-13},
    {"bessel_k0", of_one<bessel_k0>, 1e-13},
    {"bessel_k0e", of_one<bessel_k0e>, 1e-13},
    {"bessel_k1", of_one<bessel_k1>, 1e-13},
    {"bessel_k1e", of_one<bessel_k1e>, 1e-13},
    {"bessel_y0", of_one<bessel_y0>, 1e-13},
    {"bessel_y1", of_one<bessel_y1>, 1e-13}};

const double kInf = std::numeric_limits<double>::infinity(), kNaN = std::nan("");

double at(Tensor (*f)(Operand), double x) { return f(f64(x)).item(); }
double at(Tensor (*f)(Operand, Operand), double a, double b) { return f(f64(a), f64(b)).item(); }

/// The first and the second derivative at x.
std::pair<double, double> derivatives(Tensor (*f)(Operand), double at) {
  const Tensor x = f64(at);
  GradientTape outer;
  outer.watch(x);
  const Tensor first = [&] {
    GradientTape inner;
    inner.watch(x);
    return inner.gradient(f(x), x).dense();
  }();
  return {first.item(), outer.gradient(first, x).dense().item()};
}

}   // namespace

TEST_CASE("special functions agree with values of 40 digits", "[special]") {
  std::ifstream file(data_folder() / "special.json");
  const Json all = Json::parse(file);
  CHECK(all.size() == std::size(kFunctions));
  for (const Measured& f : kFunctions) {
    const Json& values = all.at(f.name);
    std::vector<Tensor> x;
    for (const Json& column : values.at("x"))
      x.push_back(tensor(column.get<std::vector<double>>()));
    const std::vector<double> exact = values.at("y").get<std::vector<double>>(), y = f.f(x).to_vector();
    REQUIRE(exact.size() >= 40);
    double worst = 0;
    std::size_t worst_at = 0;
    for (std::size_t i = 0; i < y.size(); ++i) {
      // Next to a zero at a point other than 0, the absolute error counts.
      const double off = std::abs(y[i] - exact[i]),
                   e = off <= 1e-15 && std::abs(exact[i]) < 1e-3 && std::abs(exact[i]) > 1e-9
                           ? 0
                           : off / std::max(std::abs(exact[i]), 1e-290);
      if (!(e <= worst)) worst = e, worst_at = i;
    }
    INFO(f.name << " number " << worst_at << " is " << y[worst_at] << ", off by " << worst);
    CHECK(worst <= f.tolerance);
  }
}

TEST_CASE("special functions of f32 are f64 results, rounded", "[special]") {
  const Tensor x = tensor({0.1f, 0.5f, 0.75f, 1.0f / 3, 0.9f}), y = tensor({2.5f, 0.3f, 1.7f, 4.0f, 0.6f});
  for (const Measured& f : kFunctions) {
    INFO(f.name);
    const std::string name = f.name;
    std::vector<Tensor> in = {x, y};
    if (name == "betainc") in = {y, y, x};
    if (name == "zeta") in = {y + 1, x};
    if (name == "polygamma") in = {astype(arange(5), DType::f32), y};
    std::vector<Tensor> wide;
    for (const Tensor& t : in)
      wide.push_back(astype(t, DType::f64));
    CHECK(f.f(in).to_vector() == astype(f.f(wide), DType::f32).to_vector());
  }
}

TEST_CASE("special functions at the ends of their domains", "[special]") {
  for (const Measured& f : kFunctions)
    for (const double x : {kNaN, -kInf, kInf, 0.0, -0.0, 1e300, -1e300, 1e-300, 5e-324, -3.0, 1.0, 2.0}) {
      INFO(f.name << " at " << x);
      const std::vector<Tensor> in = {f64(x), f64(x), f64(x)};
      const double y = f.f(in).item();   // terminates
      if (std::isnan(x)) CHECK(std::isnan(y));
    }
  CHECK(at(erf, kInf) == 1);
  CHECK(at(erfc, -kInf) == 2);
  CHECK(at(erfinv, 1) == kInf);
  CHECK(at(erfinv, -1) == -kInf);
  CHECK(std::isnan(at(erfinv, 1.5)));
  CHECK(at(erfcinv, 0) == kInf);
  CHECK(at(erfcinv, 2) == -kInf);
  CHECK(at(ndtri, 0) == -kInf);
  CHECK(at(ndtri, 0.5) == 0);
  CHECK(at(ndtri, 1) == kInf);
  CHECK(at(lgamma, 0) == kInf);
  CHECK(at(lgamma, -3) == kInf);
  CHECK(std::isnan(at(digamma, -3)));
  CHECK(at(zeta, 1, 2) == kInf);
  CHECK(std::isnan(at(zeta, 0.5, 2)));
  CHECK(std::isnan(at(zeta, 2.5, -0.5)));
  CHECK(at(zeta, 2, -3) == kInf);
  CHECK(std::isnan(at(polygamma, 1.5, 2)));
  CHECK(at(polygamma, 1, 0) == kInf);
  CHECK(at(igamma, 2, 0) == 0);
  CHECK(at(igamma, 2, kInf) == 1);
  CHECK(at(igammac, 2, 0) == 1);
  CHECK(at(igammac, 2, kInf) == 0);
  CHECK(std::isnan(at(igamma, -1, 2)));
  CHECK(std::isnan(at(igamma, 1, -2)));
  CHECK(betainc(f64(2), f64(3), f64(0)).item() == 0);
  CHECK(betainc(f64(2), f64(3), f64(1)).item() == 1);
  CHECK(std::isnan(betainc(f64(2), f64(3), f64(1.5)).item()));
  CHECK(at(expint, 0) == -kInf);
  CHECK(at(expint, kInf) == kInf);
  CHECK(at(fresnel_sin, kInf) == 0.5);
  CHECK(at(fresnel_cos, -kInf) == -0.5);
  CHECK(at(spence, 1) == 0);
  CHECK(std::isnan(at(spence, -1)));
  CHECK(at(bessel_i0, kInf) == kInf);
  CHECK(at(bessel_i1, -kInf) == -kInf);
  CHECK(at(bessel_i0e, kInf) == 0);
  CHECK(at(bessel_k0, 0) == kInf);
  CHECK(std::isnan(at(bessel_k0, -1)));
  CHECK(at(bessel_k1e, kInf) == 0);
  CHECK(at(bessel_y0, 0) == -kInf);
  CHECK(std::isnan(at(bessel_y1, -1)));
  CHECK(std::isnan(at(bessel_y0, -kInf)));
  CHECK(std::isnan(at(bessel_y1, -kInf)));
  CHECK(at(bessel_j0, kInf) == 0);
}

TEST_CASE("derivatives at the points where a rule has another branch", "[special]") {
  const auto is = [](std::pair<double, double> d, double first, double second) {
    CHECK(d.first == Approx(first).margin(1e-14));
    CHECK(d.second == Approx(second).margin(1e-14));
  };
  is(derivatives(bessel_i1, 0), 0.5, 0);
  is(derivatives(bessel_j1, 0), 0.5, 0);
  is(derivatives(spence, 1), -1, 0.5);
  is(derivatives(dawsn, 0), 1, 0);
  is(derivatives(fresnel_cos, 0), 1, 0);
}

// Expected values: Taylor coefficients of P(a, x) in a, from its power series with 60 digits in mpmath.
TEST_CASE("derivatives of igamma with respect to large a", "[special]") {
  const struct {
    double a, x, expected[3];
  } points[] = {
      {4e6, 4001000, {-1.7601433287217821e-4, -4.3998084602619802e-8, 3.3005437466529365e-11}},
      {4e6, 3994000, {-2.2076199436949829e-6, 3.3139160433882009e-9, -4.4227010592246387e-12}},
      {2e6, 2008485.2813742387, {-4.5104025710445011e-12, -1.9095539087733447e-14, -7.8588937774542454e-17}},
      {1e8, 100015000, {-1.2952245174215998e-5, -1.942691079568132e-9, -1.6185935723859522e-13}},
  };
  for (const auto& p : points)
    for (const int order : {1, 2, 3})
      CHECK(igamma_grad_a(f64(p.a), f64(p.x), order).item() ==
            Approx(p.expected[order - 1]).epsilon(1e-6).margin(0));
}

TEST_CASE("igamma_grad_a accepts orders from 1 to 8", "[special]") {
  const Tensor a = f64(2), x = f64(1.5);
  CHECK(message_of([&] { igamma_grad_a(a, x, 0); }) == "igamma_grad_a: order 0 is not in 1..8");
  CHECK(message_of([&] { igamma_grad_a(a, x, 9); }) == "igamma_grad_a: order 9 is not in 1..8");
  CHECK(message_of([&] { igamma_grad_a(a, tensor(1), 1); }).starts_with("igamma_grad_a: dtypes differ"));
  CHECK(message_of([&] { erf(tensor(1)); }) == "erf: takes f32, f64, f16 or bf16, use astype: x is i32[]");
  CHECK(message_of([&] { zeta(ones({2}), ones({3})); }) ==
        "zeta: shapes do not broadcast: s is f32[2], q is f32[3]");
}

TEST_CASE("cases: special functions", "[cases]") {
  const std::pair<const char*, Tensor (*)(Operand)> functions[] = {
      {"lgamma", lgamma}, {"erfc", erfc}, {"erfinv", erfinv}, {"i0e", bessel_i0e}, {"i1e", bessel_i1e}};
  for (const auto& function : functions) {
    check_case(std::string("op-special-") + function.first, [f = function.second](Case& c) {
      const Tensor x = c.input("x");
      GradientTape tape;
      tape.watch(x);
      c.check("grads", {tape.gradient(f(x), x)});
    });
  }
}

TEST_CASE("spence and ndtri are +0 where they are 0", "[special]") {
  CHECK(!std::signbit(spence(1.0).item()));
  CHECK(!std::signbit(ndtri(0.5).item()));
}

}   // namespace special_test
