// Cumulative ops: every kernel path against a plain loop, edge cases, and errors. The op table test covers
// derivatives.
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <limits>

#include "message_of.h"
#include "ops/op_samples.h"
#include "ops/sample_inputs.h"
#include "tapedeck/tapedeck.h"

namespace scan_test {

using namespace tapedeck;
using namespace tapedeck::test;
using samples::f64;

namespace {

const double kInf = std::numeric_limits<double>::infinity(), kNaN = std::numeric_limits<double>::quiet_NaN();

/// A plain loop over the middle axis of [before, n, after].
template <class F> Tensor plain(const Tensor& x, const ScanOptions& o, double start, const F& f) {
  const std::int64_t before = x.shape()[0], n = x.shape()[1], after = x.shape()[2];
  const std::vector<double> v = x.to_vector();
  std::vector<double> y(v.size());
  for (std::int64_t b = 0; b < before; ++b)
    for (std::int64_t a = 0; a < after; ++a) {
      double total = start;
      for (std::int64_t k = 0; k < n; ++k) {
        const auto at = static_cast<std::size_t>((b * n + (o.reverse ? n - 1 - k : k)) * after + a);
        const double next = f(total, v[at]);
        y[at] = o.exclusive ? total : next;
        total = next;
      }
    }
  return tensor(y, x.shape());
}

}   // namespace

TEST_CASE("scans agree with a plain loop, whatever the shape and the direction", "[scan]") {
  for (const Shape& shape : {Shape{3, 37, 1}, Shape{1, 4, 1}, Shape{2, 1, 1}, Shape{2, 19, 5},
                             Shape{1, 7, 300}, Shape{2, 0, 3}, Shape{70, 3, 1}})
    for (const bool exclusive : {false, true})
      for (const bool reverse : {false, true}) {
        const ScanOptions o{exclusive, reverse};
        INFO(to_string(shape) << (exclusive ? " exclusive" : "") << (reverse ? " reverse" : ""));
        const Tensor x = samples::uniform(shape, -1.5, 1.5);
        CHECK(close(cumsum(x, 1, o), plain(x, o, 0, [](double a, double b) { return a + b; }), 1e-13));
        CHECK(close(cumprod(x, 1, o), plain(x, o, 1, [](double a, double b) { return a * b; }), 1e-13));
        CHECK(close(cumsum(astype(x, DType::f32), 1, o),
                    plain(x, o, 0, [](double a, double b) { return a + b; }), 1e-5));
        const Tensor whole = floor(x * 10);
        CHECK(close(cumsum(astype(whole, DType::i32), 1, o),
                    plain(whole, o, 0, [](double a, double b) { return a + b; }), 0));
        const Tensor small = sign(whole);
        CHECK(close(cumprod(astype(small, DType::i64), 1, o),
                    plain(small, o, 1, [](double a, double b) { return a * b; }), 0));
        const Tensor y = cumulative_logsumexp(x, 1, o);
        if (shape[1])
          CHECK(close(y,
                      plain(x, o, std::numeric_limits<double>::lowest(),
                            [](double a, double b) {
                              return std::max(a, b) + std::log1p(std::exp(-std::abs(a - b)));
                            }),
                      1e-13));
        else
          CHECK(y.shape() == shape);
      }
}

TEST_CASE("sums of f32 are kept in f64", "[scan]") {
  const Tensor y = cumsum(full({1'000'000}, 0.1));
  CHECK(y.at({999'999}) == Approx(1'000'000 * static_cast<double>(0.1f)).epsilon(1e-7));
}

TEST_CASE("the running log of sums neither overflows nor loses infinities", "[scan]") {
  CHECK(close(cumulative_logsumexp(tensor({-kInf, -kInf, 0.0, 800.0, -800.0}, DType::f64)),
              tensor({-kInf, -kInf, 0.0, 800.0, 800.0}, DType::f64), 1e-14));
  CHECK(close(cumulative_logsumexp(tensor({1.0, kInf, 2.0}, DType::f64)),
              tensor({1.0, kInf, kInf}, DType::f64), 1e-14));
  const Tensor y = cumulative_logsumexp(tensor({1.0, kNaN, 2.0}, DType::f64));
  CHECK((y.at({0}) == 1 && std::isnan(y.at({1})) && std::isnan(y.at({2}))));
  // The gradients of e^x[0] / (e^x[0] + e^x[1]), far from 0 and at -∞.
  const Tensor x = tensor({-kInf, -2000.0, 2000.0, 2000.0}, DType::f64);
  GradientTape tape;
  tape.watch(x);
  CHECK(close(tape.gradient(cumulative_logsumexp(x), x).dense(), tensor({0.0, 1.0, 1.5, 0.5}, DType::f64),
              1e-12));
}

// Expected values by hand: y = (x0, x0 x1, x0 x1 x2, x0 x1 x2 x3).
TEST_CASE("derivatives of a running product are exact where elements are 0", "[scan]") {
  const Tensor one = f64({2, 0, 3, 4}), two = f64({2, 0, 0, 4});
  const auto total = [](const Tensor& x) { return sum(cumprod(x)); };
  CHECK(close(grad(total, one).dense(), f64({1, 32, 0, 0}), 0));
  CHECK(close(grad(total, two).dense(), f64({1, 2, 0, 0}), 0));
  const Tensor second = hessian(total, two);
  CHECK(close(second, f64({{0, 1, 0, 0}, {1, 0, 10, 0}, {0, 10, 0, 0}, {0, 0, 0, 0}}), 0));
  const auto before = [](const Tensor& x) {
    return sum(cumprod(x, 0, {.exclusive = true, .reverse = true}));
  };
  CHECK(close(grad(before, one).dense(), f64({0, 12, 4, 4}), 0));
}

// exp(x[j] - y[i]) is 0 for numbers beside an infinity, and NaN for the infinity itself, as for logsumexp.
TEST_CASE("an infinity leaves the gradients around it exact", "[scan]") {
  const auto f = [](const Tensor& t) { return cumulative_logsumexp(t, 0); };
  for (const double infinity : {kInf, -kInf}) {
    INFO(infinity);
    const Tensor x = f64({1, infinity, 1, 2});
    const std::vector<double> g = grad([&](const Tensor&t) { return sum(f(t)); }, x).dense().to_vector(),
                              d = jvp(f, x, f64({1, 0, 0, 0})).to_vector();
    CHECK(d[0] == 1);
    if (infinity > 0) {
      CHECK(g[0] == 1);   // of its own sum alone
      CHECK((g[2] == 0 && g[3] == 0));
      CHECK(jvp(f, x, f64({1, 0, 1, 1})).to_vector()[0] == 1);
    } else {
      CHECK(g[0] == Approx(2 + 0.5 + 1 / (2 + std::exp(1.0))));
      CHECK(g[1] == 0);
      CHECK(d[1] == 1);
    }
  }
}

TEST_CASE("errors of scans", "[scan][errors]") {
  CHECK(message_of([] {
          cumsum(ones({2, 3}), 2);
        }) == "cumsum: axis 2 is out of range for x of rank 2; use -2..1");
  CHECK(message_of([] { cumprod(ones({}), 0); }) == "cumprod: axis 0 is out of range for x of rank 0");
  CHECK(message_of([] { cumsum(ones({2}, DType::boolean)); }) ==
        "cumsum: i8, u8 and bool cannot be accumulated, use astype: x is bool[2]");
  CHECK(cumsum(ones({2}, DType::u16)).dtype() == DType::u16);
  CHECK(message_of([] { cumulative_logsumexp(ones({2}, DType::i32)); }) ==
        "cumulative_logsumexp: takes f32, f64, f16 or bf16, use astype: x is i32[2]");
}

}   // namespace scan_test
