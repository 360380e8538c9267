// Distributions with parameters: moments and distribution functions with fixed keys, gradients from tables,
// and errors.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <limits>

#include "distances.h"
#include "message_of.h"
#include "tapedeck/tapedeck.h"

namespace distributions_test {

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

constexpr DType kFloating[] = {DType::f32, DType::f64};
constexpr std::int64_t kMany = 40000;
constexpr double kInf = std::numeric_limits<double>::infinity();

double mean_of(const Tensor& x) { return moment(x, 1); }
double variance_of(const Tensor& x) { return moment(x, 2) - std::pow(moment(x, 1), 2); }

/// Chi squared of the counts for the distribution below(k), the probability of k or less, divided by its
/// degrees of freedom: about 1 if they agree. Each class has at least 5 expected counts.
double chi_squared_by_freedom(const Tensor& x, const std::function<double(double)>& below) {
  const std::vector<double> v = sorted(x);
  const auto n = static_cast<double>(v.size());
  double sum = 0, done = 0, seen = 0;
  int classes = 0;
  for (double k = v.front(); k <= v.back(); ++k) {
    const double expected = n * (below(k) - done);
    if (expected < 5) continue;
    const auto found = static_cast<double>(std::upper_bound(v.begin(), v.end(), k) - v.begin());
    sum += std::pow(found - seen - expected, 2) / expected;
    ++classes, seen = found, done = below(k);
  }
  return sum / std::max(classes - 1, 1);
}

Tensor number(double x, DType dtype = DType::f64) { return tensor(x, dtype); }
double gamma_below(double alpha, double y) { return igamma(number(alpha), number(y)).item(); }
double normal_below(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

}   // namespace

TEST_CASE("gamma numbers have their distribution", "[random]") {
  for (const DType dtype : kFloating)
    for (const double alpha : {0.1, 0.75, 1.0, 3.5, 40.0, 2000.0}) {
      INFO("alpha " << alpha);
      const Tensor x = random::gamma({kMany}, number(alpha, dtype), {.seed = 11});
      CHECK(x.dtype() == dtype);
      const double mean = mean_of(x);
      CHECK(mean == Approx(alpha).margin(4 * std::sqrt(alpha / kMany)));
      CHECK(variance_of(x) == Approx(alpha).epsilon(4 * std::sqrt((2 + 6 / alpha) / kMany)));
      const double a = number(alpha, dtype).item();
      CHECK(distance_from([&](double v) { return gamma_below(a, v); }, slice(x, {0}, {4000})) < 1.95);
    }
}

TEST_CASE("poisson counts have their distribution", "[random]") {
  for (const DType dtype : kFloating)
    for (const double rate : {0.05, 2.0, 9.5, 10.5, 300.0, 90000.0, 110000.0}) {
      INFO("rate " << rate);
      const Tensor x = random::poisson({kMany}, number(rate, dtype), {.seed = 12});
      CHECK(x.dtype() == dtype);
      CHECK(mean_of(x) == Approx(rate).margin(4 * std::sqrt(rate / kMany)));
      CHECK(variance_of(x) == Approx(rate).epsilon(4 * std::sqrt((2 + 1 / rate) / kMany)));
      const double r = number(rate, dtype).item();
      CHECK(chi_squared_by_freedom(x, [&](double k) { return igammac(number(k + 1), number(r)).item(); }) <
            (rate < 5    ? 4
             : rate < 20 ? 2.5
                         : 1.4));
    }
}

TEST_CASE("binomial counts have their distribution", "[random]") {
  for (const DType dtype : kFloating)
    for (const auto& [n, p] : {std::pair{1.0, 0.25},
                               {20.0, 0.875},
                               {40.0, 0.5},
                               {3000.0, 0.0009765625},
                               {3000.0, 0.375},
                               {1e6, 0.25}}) {
      INFO(n << " of " << p);
      const Tensor x = random::binomial({kMany}, number(n, dtype), number(p, dtype), {.seed = 13});
      CHECK(x.dtype() == dtype);
      const double variance = n * p * (1 - p);
      CHECK(mean_of(x) == Approx(n * p).margin(4 * std::sqrt(variance / kMany)));
      CHECK(variance_of(x) == Approx(variance).epsilon(4 * std::sqrt((2 + 1 / variance) / kMany)));
      const double trials = n, chance = p;
      CHECK(chi_squared_by_freedom(
                x,
                [&](double k) {
                  return k >= trials ? 1
                                     : betainc(number(trials - k), number(k + 1), number(1 - chance)).item();
                }) < (n < 10    ? 6
                      : n < 100 ? 2.5
                                : 1.4));
    }
}

TEST_CASE("categorical indices have the probabilities of their logits", "[random]") {
  for (const DType dtype : kFloating) {
    const Tensor logits = astype(
        tensor({{0.0, 1.0, -kInf, -1.0, 2.0}, {-kInf, -1000.0, -kInf, -kInf, -1001.0}}, DType::f64), dtype);
    const Tensor x = random::categorical(logits, kMany, {.seed = 14});
    CHECK(x.spec() == Spec{DType::i64, {2, kMany}});
    const std::vector<double> p = softmax(astype(logits, DType::f64)).to_vector();
    std::vector<double> count(10);
    const std::vector<std::int64_t> drawn = x.to_vector<std::int64_t>();
    for (std::size_t i = 0; i < drawn.size(); ++i)
      ++count[i / kMany * 5 + static_cast<std::size_t>(drawn[i])];
    for (std::size_t i = 0; i < p.size(); ++i) {
      if (p[i] == 0)
        CHECK(count[i] == 0);
      else
        CHECK(count[i] == Approx(kMany * p[i]).margin(4 * std::sqrt(kMany * p[i] * (1 - p[i]))));
    }
  }
  CHECK(random::categorical(ones({2, 3, 4}), 5, {}).shape() == Shape{2, 3, 5});
  CHECK(random::categorical(ones({4}), 0, {}).shape() == Shape{0});
  CHECK(random::categorical(ones({0, 4}), 3, {}).shape() == Shape{0, 3});
  CHECK(random::categorical(ones({3, 1}), 2, {}).to_vector() == std::vector<double>(6));
}

TEST_CASE("normal numbers between bounds have their distribution", "[random]") {
  for (const DType dtype : kFloating)
    for (const auto& bounds :
         {std::array{-1.0, 2.0}, {-kInf, 0.5}, {0.5, kInf}, {-kInf, kInf}, {3.0, 4.0}, {-9.0, -6.0}}) {
      const double low = bounds[0], high = bounds[1];
      INFO("between " << low << " and " << high);
      const Tensor x =
          random::parameterized_truncated_normal({kMany}, number(0, dtype), 1, low, high, {.seed = 15});
      CHECK(x.dtype() == dtype);
      const std::vector<double> v = sorted(x);
      CHECK((v.front() >= low && v.back() <= high));
      // To the right of 0 the upper tail is known to more digits.
      const double side = low > 0 ? -1 : 1, below = normal_below(side * low),
                   all = normal_below(side * high) - below;
      CHECK(distance_from([&](double z) { return (normal_below(side * z) - below) / all; }, x) < 1.95);
    }
  const Tensor unit = random::parameterized_truncated_normal({100}, 0, 1, -1, 2, {.seed = 3}),
               moved = random::parameterized_truncated_normal({100}, 5, 2, 3, 9, {.seed = 3});
  CHECK(max(abs(moved - (unit * 2 + 5))).item() < 1e-5);
}

// Sixty standard deviations from the mean, the normal density falls like exp(-60 x).
TEST_CASE("truncated normal numbers far from the mean follow the tail", "[random]") {
  for (const double side : {1.0, -1.0}) {
    const Tensor x =
        side * random::parameterized_truncated_normal({kMany}, number(0), 1, side > 0 ? 60 : -kInf,
                                                      side > 0 ? kInf : -60, {.seed = 15});
    CHECK(mean_of((x - 60) * 60) == Approx(1).margin(0.02));
    CHECK(distance_from([](double z) { return 1 - std::exp(-(z - 60) * (z + 60) / 2) * (1 - (z - 60) / 60); },
                        x) < 1.95);
  }
}

TEST_CASE("the number of threads makes no difference to distributions", "[random]") {
  const auto all = [] {
    std::vector<double> v;
    for (const Tensor& x : {random::gamma({7, 1001}, 2.5, {3}), random::poisson({7, 1001}, 25, {3}),
                            random::parameterized_truncated_normal({7, 1001}, 0, 1, -1, 1, {3}),
                            random::binomial({7, 1001}, 30, 0.5, {3})})
      for (const double e : x.to_vector())
        v.push_back(e);
    return v;
  };
  const auto one = all();
  set_num_threads(2);
  CHECK(all() == one);
  set_num_threads(1);
}

TEST_CASE("parameters broadcast to the shape, one for each number", "[random]") {
  const Tensor alpha = tensor({{0.5}, {50.0}}, DType::f64);
  const Tensor x = random::gamma({3, 2, 4}, alpha, {.seed = 1});
  CHECK(x.shape() == Shape{3, 2, 4});
  for (const std::int64_t row : {0, 1}) {
    const std::vector<double> all = random::gamma({3, 2, 4}, row ? 50.0 : 0.5, {.seed = 1}).to_vector(),
                              own = astype(x, DType::f32).to_vector();
    for (std::size_t i = 0; i < own.size(); ++i)
      if (static_cast<std::int64_t>(i / 4 % 2) == row) CHECK(own[i] == all[i]);
  }
}

// Values of torch._standard_gamma_grad(alpha, y) in torch 1.13, which are accurate to about 10⁻⁴.
TEST_CASE("the gradient of gamma is the implicit one", "[random]") {
  const double alpha[] = {0.05, 0.3, 0.9, 1.0, 1.0, 2.5, 5.0, 7.5, 12.0, 12.0, 100.0, 1000.0},
               y[] = {1e-06, 0.05, 2.0, 0.1, 3.0, 1.5, 9.0, 3.0, 12.5, 20.0, 95.0, 1020.0},
               torch[] = {0.0002663536, 0.494711,  1.738303, 0.2892731, 1.937866,  0.8177716,
                          1.367239,     0.6241155, 1.034799, 1.294963,  0.9762077, 1.010102};
  for (std::size_t i = 0; i < std::size(alpha); ++i) {
    INFO("alpha " << alpha[i] << ", y " << y[i]);
    CHECK(random::gamma_grad(number(alpha[i]), number(y[i])).item() == Approx(torch[i]).epsilon(1e-3));
  }
  // The mean of the samples is α, so the mean of the gradients is 1.
  const Tensor a = number(2.5);
  GradientTape tape;
  tape.watch(a);
  const Tensor x = random::gamma({kMany}, a, {.seed = 4});
  CHECK(tape.gradient(mean(x), a).dense().item() == Approx(1).margin(0.01));
}

// On both sides of the point where the computation changes from the series to the expansion.
// The same key gives the same uniform numbers, so the probabilities below samples do not depend on alpha.
TEST_CASE("gamma numbers of large alpha are quantiles", "[random]") {
  const auto below = [](double alpha) {
    return igamma(number(alpha), random::gamma({1000}, number(alpha), {.seed = 5}));
  };
  const Tensor small = below(50);
  for (const double alpha : {1e5 - 1, 1e5, 1e7})
    CHECK(max(abs(below(alpha) / small - 1)).item() < 1e-10);
}

TEST_CASE("the gradient of gamma is smooth where its formula changes", "[random]") {
  for (const double z : {-3.0, 0.0, 2.0}) {
    const double y = 1e6 + z * 1e3;
    CHECK(random::gamma_grad(number(1e6), number(y)).item() ==
          Approx(random::gamma_grad(number(1e6 + 1e-6), number(y)).item()).epsilon(1e-10));
  }
  CHECK(random::gamma_grad(number(1e30), number(1e30)).item() == Approx(1));
  CHECK(random::gamma_grad(number(0.01), number(0)).item() == 0);
}

TEST_CASE(
    "gradients of a truncated normal distribution are the gradients of its mean, also with infinite bounds",
    "[random]") {
  for (const DType dtype : kFloating) {
    const Tensor mean = number(0.5, dtype), stddev = number(2, dtype), low = number(-kInf, dtype),
                 high = number(kInf, dtype);
    GradientTape tape;
    for (const Tensor& t : {mean, stddev, low, high})
      tape.watch(t);
    const Tensor x = random::parameterized_truncated_normal({1000}, mean, stddev, low, high, {.seed = 5});
    const auto g = tape.gradient(x, mean, stddev, low, high);
    CHECK(g[0].dense().item() == 1000);
    CHECK(g[1].dense().item() == Approx(sum((x - mean) / stddev).item()).epsilon(1e-4));
    CHECK(g[2].dense().item() == 0);
    CHECK(g[3].dense().item() == 0);
  }
}

TEST_CASE("invalid parameters of a distribution give NaN", "[random]") {
  const auto is_nan = [](const Tensor& x) { return std::isnan(x.item()); };
  for (const double bad : {-1.0, std::nan(""), kInf}) {
    CHECK(is_nan(random::gamma({}, bad, {})));
    CHECK(is_nan(random::poisson({}, bad, {})));
    CHECK(is_nan(random::binomial({}, bad, 0.5, {})));
    CHECK(is_nan(random::binomial({}, 3, bad, {})));
  }
  CHECK(is_nan(random::gamma({}, 0, {})));
  CHECK(is_nan(random::binomial({}, 2.5, 0.5, {})));
  CHECK(is_nan(random::parameterized_truncated_normal({}, 0, 0, -1, 1, {})));
  CHECK(is_nan(random::parameterized_truncated_normal({}, 0, 1, 1, 1, {})));
  CHECK(random::poisson({}, 0, {}).item() == 0);
  CHECK(random::binomial({}, 7, 0, {}).item() == 0);
  CHECK(random::binomial({}, 7, 1, {}).item() == 7);
  CHECK(random::binomial({}, 0, 0.5, {}).item() == 0);
}

TEST_CASE("huge parameters take no longer", "[random]") {
  CHECK(random::poisson({}, number(1e18), {}).item() == Approx(1e18));
  CHECK(random::binomial({}, number(1e18), 0.25, {}).item() == Approx(2.5e17));
  CHECK(random::gamma({}, number(1e18), {}).item() == Approx(1e18));
}

TEST_CASE("distributions reject invalid arguments", "[random][errors]") {
  const Tensor x = ones({3});
  CHECK(message_of([&] { random::gamma({4}, x, {}); }) ==
        "gamma: alpha does not broadcast to shape: alpha is f32[3], shape is [4]");
  CHECK(message_of([&] { random::gamma({}, x, {}); }) ==
        "gamma: alpha does not broadcast to shape: alpha is f32[3], shape is []");
  CHECK(message_of([&] {
          random::binomial({3}, x, ones({2}), {});
        }).starts_with("binomial: shapes do not broadcast: n is f32[3], p is f32[2]"));
  CHECK(message_of([&] { random::poisson({3}, ones({3}, DType::i32), {}); }).starts_with("poisson: "));
  CHECK(message_of([&] {
          random::categorical(tensor(1.0), 3, {});
        }).starts_with("categorical: takes tensors of rank 1 or more"));
  CHECK(message_of([&] { random::categorical(x, -1, {}); }) == "categorical: n is -1; use 0 or more");
  CHECK(message_of([&] {
          random::categorical(ones({2, 0}), 1, {});
        }) == "categorical: nothing to choose from: logits is f32[2,0]");
  CHECK(message_of([&] {
          random::categorical(tensor({{0.0, 1.0}, {0.0, std::nan("")}}), 1, {});
        }) ==
        "categorical: row 1 of logits has NaN or infinity, or nothing above -infinity: logits is f32[2,2]");
  CHECK_THROWS_AS(random::categorical(full({2}, -kInf), 1, {}), ArgumentError);
  CHECK_THROWS_AS(random::gamma({std::int64_t{1} << 40, std::int64_t{1} << 40}, x, {}), ShapeError);
}

}   // namespace distributions_test
