// Reductions: every kernel path against a plain loop in long double, closed forms, edge cases, golden errors, and the same
// bits for any number of threads. Derivatives are in the op table test.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>

#include "ops/samples.h"
#include "closeness.h"
#include "tapedeck/tapedeck.h"

using namespace tapedeck;

namespace {

const double kNaN = std::numeric_limits<double>::quiet_NaN(), kInf = std::numeric_limits<double>::infinity();

/// What plain loops give for [outer, n, inner], reduced over the middle.
struct Plain { std::vector<double> sum, max; std::vector<std::int64_t> argmax; };
Plain plain(const Tensor& x, std::int64_t outer, std::int64_t n, std::int64_t inner) {
  const std::vector<double> v = x.to_vector();
  Plain p;
  for (std::int64_t o = 0; o < outer; ++o)
    for (std::int64_t i = 0; i < inner; ++i) {
      long double sum = 0;
      std::int64_t best = 0;
      const auto at = [&](std::int64_t k) { return v[static_cast<std::size_t>((o * n + k) * inner + i)]; };
      for (std::int64_t k = 0; k < n; ++k) {
        sum += at(k);
        if (at(k) > at(best)) best = k;
      }
      p.sum.push_back(static_cast<double>(sum));
      p.max.push_back(at(best));
      p.argmax.push_back(best);
    }
  return p;
}

void check_near(const Tensor& y, const std::vector<double>& expected, double tolerance) {
  const std::vector<double> v = y.to_vector();
  REQUIRE(v.size() == expected.size());
  double worst = 0;
  for (std::size_t i = 0; i < v.size(); ++i) worst = std::max(worst, std::abs(v[i] - expected[i]) / std::max(1.0, std::abs(expected[i])));
  CHECK(worst <= tolerance);
}

struct ThreadsForScope {
  explicit ThreadsForScope(int n) : before(num_threads()) { set_num_threads(n); }
  ~ThreadsForScope() { set_num_threads(before); }
  int before;
};

}  // namespace

TEST_CASE("reductions over a middle axis agree with plain loops", "[reduce]") {
  // Rows and columns; narrow and wide; shorter and longer than a vector, a strip, a block and a piece.
  const std::int64_t sizes[][3] = {{1, 1, 1},  {3, 5, 1},    {2, 37, 1},   {1, 70000, 1}, {1, 1100000, 1}, {4, 3, 7},       {1, 1000, 3},     {2, 700, 37},
                                   {1, 9, 70}, {3, 517, 65}, {1, 2, 5000}, {1, 600, 2100}, {70000, 3, 1},  {1, 5, 300000}, {1, 100003, 11}};
  for (const auto& [outer, n, inner] : sizes) {
    INFO("[" << outer << "," << n << "," << inner << "]");
    const Tensor x = samples::uniform({outer, n, inner}, -1, 1);
    const Plain p = plain(x, outer, n, inner);
    check_near(sum(x, 1), p.sum, 1e-13 * static_cast<double>(n));
    check_near(max(x, 1), p.max, 0);
    CHECK(argmax(x, 1).to_vector<std::int64_t>() == p.argmax);
    const Tensor single = astype(x, DType::f32), whole = astype(x * 1000, DType::i32);
    check_near(sum(single, 1), plain(single, outer, n, inner).sum, 1e-6 + 1e-8 * static_cast<double>(n));
    check_near(sum(whole, 1), plain(whole, outer, n, inner).sum, 0);
    check_near(sum(astype(whole, DType::i64), 1), plain(whole, outer, n, inner).sum, 0);
  }
}

TEST_CASE("max and argmax take every dtype that has an order", "[reduce]") {
  for (const DType t : {DType::f32, DType::f64, DType::i32, DType::i64, DType::u8}) {
    INFO(name_of(t));
    std::vector<std::int64_t> v(3 * 100);
    for (std::size_t i = 0; i < v.size(); ++i) v[i] = static_cast<std::int64_t>(i * 37 % 251);
    const Tensor x = astype(tensor(v, {3, 100}), t);
    const Plain rows = plain(x, 3, 100, 1), columns = plain(x, 1, 3, 100);
    CHECK(max(x, 1).dtype() == t);
    check_near(max(x, 1), rows.max, 0);
    check_near(max(x, 0), columns.max, 0);
    CHECK(argmax(x).to_vector<std::int64_t>() == rows.argmax);
    CHECK(argmax(x, 0).to_vector<std::int64_t>() == columns.argmax);
  }
}

TEST_CASE("axes may be any set, from either end", "[reduce]") {
  const Tensor x = astype(reshape(arange(120), {2, 3, 4, 5}), DType::f64);
  // NumPy: np.arange(120).reshape(2, 3, 4, 5).sum(axis=(0, 2)), and so on.
  CHECK(sum(x, {0, 2}).to_vector() == std::vector<double>{300, 308, 316, 324, 332, 460, 468, 476, 484, 492, 620, 628, 636, 644, 652});
  CHECK(sum(x, {-2, 0}).shape() == Shape{3, 5});
  CHECK(sum(x, {1, 3}, true).shape() == Shape{2, 1, 4, 1});
  CHECK(sum(x, {1, 3}).to_vector() == std::vector<double>{330, 405, 480, 555, 1230, 1305, 1380, 1455});
  CHECK(sum(x).item() == 7140);
  CHECK(sum(x, {}, true).shape() == Shape{1, 1, 1, 1});
  CHECK(mean(x, {0, 1, 2, 3}).item() == 59.5);
  CHECK(max(x, {0, 3}).to_vector() == std::vector<double>{64, 69, 74, 79, 84, 89, 94, 99, 104, 109, 114, 119});
  CHECK(argmax(x, -3, true).shape() == Shape{2, 1, 4, 5});
}

TEST_CASE("no axes, no elements, rank 0", "[reduce]") {
  const Tensor x = tensor({{1.0, 2.0}, {3.0, 4.0}});
  CHECK(same_bits(sum(x, std::vector<int>{}), x));
  CHECK(same_bits(max(x, std::vector<int>{}), x));
  CHECK(sum(tensor(2.5)).item() == 2.5);
  CHECK(mean(tensor(2.5)).item() == 2.5);
  CHECK(max(tensor(2.5)).item() == 2.5);

  const Tensor empty = zeros({2, 0, 3});
  CHECK(sum(empty).item() == 0);
  CHECK(sum(empty, 1).to_vector() == std::vector<double>(6, 0));
  CHECK(sum(empty, 0).shape() == Shape{0, 3});
  CHECK(std::isnan(mean(empty).item()));
  CHECK(std::isnan(mean(empty, 1).at({1, 2})));
  CHECK(max(empty, 0).shape() == Shape{0, 3});
  CHECK(argmax(empty, 2).shape() == Shape{2, 0});
}

TEST_CASE("NaN and infinities", "[reduce]") {
  for (const std::int64_t n : {5, 37, 1000})
    for (const std::int64_t position : {std::int64_t{0}, n / 2, n - 1}) {
      std::vector<double> v(static_cast<std::size_t>(n), 1.0);
      v[static_cast<std::size_t>(position)] = kNaN;
      INFO("NaN at " << position << " of " << n);
      for (const Tensor& x : {tensor(v), astype(tensor(v), DType::f32)}) {
        CHECK(std::isnan(max(x).item()));
        CHECK(std::isnan(sum(x).item()));
        CHECK(argmax(x).item<std::int64_t>() == position);
        const Tensor columns = reshape(x, {n, 1}) * ones({1, 20}, x.dtype());
        CHECK(std::isnan(max(columns, 0).at({3})));
        CHECK(argmax(columns, 0).at<std::int64_t>({3}) == position);
      }
    }
  CHECK(max(tensor(std::vector<double>{-kInf, -kInf})).item() == -kInf);
  CHECK(argmax(tensor(std::vector<double>{-kInf, -kInf})).item<std::int64_t>() == 0);
  CHECK(sum(tensor(std::vector<double>{kInf, 1})).item() == kInf);
}

TEST_CASE("equal maxima share the gradient", "[reduce]") {
  const Tensor x = tensor({{1.0, 3.0, 3.0}, {2.0, 2.0, 2.0}}, DType::f64);
  GradientTape tape;
  tape.watch(x);
  const Tensor g = tape.gradient(max(x, 1), x).dense();
  const std::vector<double> expected = {0, 0.5, 0.5, 1.0 / 3, 1.0 / 3, 1.0 / 3};
  CHECK(g.to_vector() == expected);
}

TEST_CASE("rounding errors of long f32 sums stay small", "[reduce]") {
  // 0.1f is 0.100000001490116…; a running sum is off by 1e-2, and the fewer lanes a vector has, the longer are the sums in them.
  const double exact = 0.1f * 1e6;
  const Tensor x = full({1000, 1000}, 0.1);
  CHECK(sum(x).item() == Approx(exact).epsilon(1e-5));
  CHECK(sum(reshape(x, {1000000, 1}), 0).item() == Approx(exact).epsilon(1e-5));
  CHECK(sum(reshape(x, {100000, 10}), 0).at({9}) == Approx(exact / 10).epsilon(1e-5));
}

TEST_CASE("integer sums wrap around", "[reduce]") {
  const std::int32_t largest = std::numeric_limits<std::int32_t>::max();
  CHECK(sum(tensor({largest, 1}, DType::i32)).item<std::int32_t>() == std::numeric_limits<std::int32_t>::min());
}

TEST_CASE("reductions do not depend on the number of threads", "[reduce]") {
  for (const Shape& shape : {Shape{3000000}, Shape{1500, 1500}, Shape{9, 300000}, Shape{300000, 9}}) {
    const Tensor x = astype(samples::uniform(shape, -1, 1), DType::f32);
    const auto all = [&](int threads) {
      const ThreadsForScope scope(threads);
      return std::vector<Tensor>{sum(x), sum(x, 0), sum(x, -1), mean(x), max(x, 0), max(x), argmax(x, -1)};
    };
    const std::vector<Tensor> one = all(1), two = all(2);
    for (std::size_t i = 0; i < one.size(); ++i) CHECK(same_bits(one[i], two[i]));
  }
}

TEST_CASE("what reductions refuse", "[reduce][errors]") {
  const Tensor x = zeros({2, 3});
  CHECK_THROWS_WITH(sum(x, 3), "sum: axis 3 is out of range for x of rank 2; use -2..1");
  CHECK_THROWS_WITH(argmax(x, -3), "argmax: axis -3 is out of range for x of rank 2; use -2..1");
  CHECK_THROWS_WITH(max(x, {1, -1}), "max: axis -1 is named twice for x of rank 2");
  CHECK_THROWS_WITH(max(zeros({0, 3}), 0), "max: no elements to choose from: x is f32[0,3]");
  CHECK_THROWS_WITH(argmax(zeros({2, 0})), "argmax: no elements to choose from: x is f32[2,0]");
  CHECK_THROWS_WITH(sum(zeros({2}, DType::u8)), "sum: u8 and bool are not added up, use astype: x is u8[2]");
  CHECK_THROWS_WITH(mean(zeros({2}, DType::i32)), "mean: takes f32 or f64, use astype: x is i32[2]");
  CHECK_THROWS_WITH(max(zeros({2}, DType::boolean)), "max: bool has no order, use astype: x is bool[2]");
  CHECK_THROWS_AS(sum(x, 3), ShapeError);
  CHECK_THROWS_AS(mean(zeros({2}, DType::i32)), DTypeError);
}
