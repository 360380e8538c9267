// Reductions: every kernel path against a plain loop in long double, closed forms, edge cases, exact error
// texts, and the same bits for any number of threads. The op table test covers derivatives.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>

#include "closeness.h"
#include "ops/sample_inputs.h"
#include "tapedeck/tapedeck.h"

namespace reduce_test {

using namespace tapedeck;

namespace {

const double kNaN = std::numeric_limits<double>::quiet_NaN(), kInf = std::numeric_limits<double>::infinity();

/// The results of plain loops for [outer, n, inner], reduced over the middle axis.
struct Plain {
  std::vector<double> sum, max, min, logsumexp;
  std::vector<std::int64_t> argmax, argmin;
};
Plain plain(const Tensor& x, std::int64_t outer, std::int64_t n, std::int64_t inner) {
  const std::vector<double> v = x.to_vector();
  Plain p;
  for (std::int64_t o = 0; o < outer; ++o)
    for (std::int64_t i = 0; i < inner; ++i) {
      long double sum = 0, exponentials = 0;
      std::int64_t best = 0, least = 0;
      const auto at = [&](std::int64_t k) { return v[static_cast<std::size_t>((o * n + k) * inner + i)]; };
      for (std::int64_t k = 0; k < n; ++k) {
        sum += at(k);
        exponentials += std::exp(static_cast<long double>(at(k)));
        if (at(k) > at(best)) best = k;
        if (at(k) < at(least)) least = k;
      }
      p.sum.push_back(static_cast<double>(sum));
      p.logsumexp.push_back(static_cast<double>(std::log(exponentials)));
      p.max.push_back(at(best)), p.argmax.push_back(best);
      p.min.push_back(at(least)), p.argmin.push_back(least);
    }
  return p;
}

void check_near(const Tensor& y, const std::vector<double>& expected, double tolerance) {
  const std::vector<double> v = y.to_vector();
  REQUIRE(v.size() == expected.size());
  double worst = 0;
  for (std::size_t i = 0; i < v.size(); ++i)
    worst = std::max(worst, std::abs(v[i] - expected[i]) / std::max(1.0, std::abs(expected[i])));
  CHECK(worst <= tolerance);
}

struct ThreadsForScope {
  explicit ThreadsForScope(int n) : before(num_threads()) { set_num_threads(n); }
  ~ThreadsForScope() { set_num_threads(before); }
  int before;
};

}   // namespace

TEST_CASE("reductions over a middle axis agree with plain loops", "[reduce]") {
  // Rows and columns; narrow and wide; shorter and longer than each unit into which the kernels divide work:
  // a vector, a strip, a block and a piece.
  const std::int64_t sizes[][3] = {{1, 1, 1},       {3, 5, 1},      {2, 37, 1},     {1, 70000, 1},
                                   {1, 1100000, 1}, {4, 3, 7},      {1, 1000, 3},   {2, 700, 37},
                                   {1, 9, 70},      {3, 517, 65},   {1, 2, 5000},   {1, 600, 2100},
                                   {70000, 3, 1},   {1, 5, 300000}, {1, 100003, 11}};
  for (const auto& [outer, n, inner] : sizes) {
    INFO("[" << outer << "," << n << "," << inner << "]");
    const Tensor x = samples::uniform({outer, n, inner}, -1, 1);
    const Plain p = plain(x, outer, n, inner);
    check_near(sum(x, 1), p.sum, 1e-13 * static_cast<double>(n));
    check_near(max(x, 1), p.max, 0);
    CHECK(argmax(x, 1).to_vector<std::int64_t>() == p.argmax);
    check_near(min(x, 1), p.min, 0);
    CHECK(argmin(x, 1).to_vector<std::int64_t>() == p.argmin);
    check_near(logsumexp(x, 1), p.logsumexp, 1e-13);
    // The product of exp(x) is the exponential of the sum; x is scaled, so that it stays in range.
    const double scale = 0.5 / std::sqrt(static_cast<double>(n));
    check_near(log(prod(exp(x * scale), 1)) / scale, p.sum, 1e-13 * static_cast<double>(n));
    const Tensor bits = x > 0.99;
    CHECK(same_bits(any(bits, 1), max(x, 1) > 0.99));
    CHECK(same_bits(all(logical_not(bits), 1), max(x, 1) <= 0.99));
    const Tensor single = astype(x, DType::f32), whole = astype(x * 1000, DType::i32);
    check_near(sum(single, 1), plain(single, outer, n, inner).sum, 1e-6 + 1e-8 * static_cast<double>(n));
    check_near(sum(whole, 1), plain(whole, outer, n, inner).sum, 0);
    check_near(sum(astype(whole, DType::i64), 1), plain(whole, outer, n, inner).sum, 0);
  }
}

TEST_CASE("extremes accept every ordered dtype", "[reduce]") {
  for (const DType t : {DType::f32, DType::f64, DType::i8, DType::i32, DType::i64, DType::u8}) {
    INFO(name_of(t));
    std::vector<std::int64_t> v(3 * 100);
    for (std::size_t i = 0; i < v.size(); ++i)
      v[i] = static_cast<std::int64_t>(i * 37 % 251);
    const Tensor x = astype(tensor(v, {3, 100}), t);
    const Plain rows = plain(x, 3, 100, 1), columns = plain(x, 1, 3, 100);
    CHECK(max(x, 1).dtype() == t);
    check_near(max(x, 1), rows.max, 0);
    check_near(max(x, 0), columns.max, 0);
    CHECK(argmax(x).to_vector<std::int64_t>() == rows.argmax);
    CHECK(argmax(x, 0).to_vector<std::int64_t>() == columns.argmax);
    check_near(min(x, 1), rows.min, 0);
    check_near(min(x, 0), columns.min, 0);
    CHECK(argmin(x).to_vector<std::int64_t>() == rows.argmin);
    CHECK(argmin(x, 0).to_vector<std::int64_t>() == columns.argmin);
  }
}

TEST_CASE("axes may be any set, from either end", "[reduce]") {
  const Tensor x = astype(reshape(arange(120), {2, 3, 4, 5}), DType::f64);
  // NumPy: np.arange(120).reshape(2, 3, 4, 5).sum(axis=(0, 2)), and so on.
  CHECK(sum(x, {0, 2}).to_vector() ==
        std::vector<double>{300, 308, 316, 324, 332, 460, 468, 476, 484, 492, 620, 628, 636, 644, 652});
  CHECK(sum(x, {-2, 0}).shape() == Shape{3, 5});
  CHECK(sum(x, {1, 3}, {.keepdims = true}).shape() == Shape{2, 1, 4, 1});
  CHECK(sum(x, {1, 3}).to_vector() == std::vector<double>{330, 405, 480, 555, 1230, 1305, 1380, 1455});
  CHECK(sum(x).item() == 7140);
  CHECK(sum(x, {}, {.keepdims = true}).shape() == Shape{1, 1, 1, 1});
  CHECK(mean(x, {0, 1, 2, 3}).item() == 59.5);
  CHECK(max(x, {0, 3}).to_vector() ==
        std::vector<double>{64, 69, 74, 79, 84, 89, 94, 99, 104, 109, 114, 119});
  CHECK(argmax(x, -3, {.keepdims = true}).shape() == Shape{2, 1, 4, 5});
  CHECK(min(x, {0, 3}).to_vector() == std::vector<double>{0, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55});
  CHECK(worst(logsumexp(x, {0, 2}), log(sum(exp(x), {0, 2}))) < 1e-13);
  CHECK(logsumexp(x, {0, 2}, {.keepdims = true}).shape() == Shape{1, 3, 1, 5});
  CHECK(prod(x, {1, 3}, {.keepdims = true}).shape() == Shape{2, 1, 4, 1});
  CHECK(prod(slice(x, {0, 0, 0, 1}, {1, 1, 2, 2}), {0, 1, 2}).to_vector() == std::vector<double>{6, 14});
}

TEST_CASE("no axes, no elements, rank 0", "[reduce]") {
  const Tensor x = tensor({{1.0, 2.0}, {3.0, 4.0}});
  CHECK(same_bits(sum(x, std::vector<int>{}), x));
  CHECK(same_bits(max(x, std::vector<int>{}), x));
  CHECK(sum(tensor(2.5)).item() == 2.5);
  CHECK(mean(tensor(2.5)).item() == 2.5);
  CHECK(max(tensor(2.5)).item() == 2.5);
  CHECK(prod(tensor(2.5)).item() == 2.5);
  CHECK(logsumexp(tensor(2.5)).item() == 2.5);
  CHECK(same_bits(logsumexp(x, std::vector<int>{}), x));
  CHECK(any(tensor(true)).item() == 1);

  const Tensor empty = zeros({2, 0, 3});
  CHECK(sum(empty).item() == 0);
  CHECK(sum(empty, 1).to_vector() == std::vector<double>(6, 0));
  CHECK(sum(empty, 0).shape() == Shape{0, 3});
  CHECK(std::isnan(mean(empty).item()));
  CHECK(std::isnan(mean(empty, 1).at({1, 2})));
  CHECK(max(empty, 0).shape() == Shape{0, 3});
  CHECK(prod(empty, 1).to_vector() == std::vector<double>(6, 1));
  CHECK(logsumexp(empty, 1).to_vector() == std::vector<double>(6, -kInf));
  CHECK(logsumexp(empty, 0).shape() == Shape{0, 3});
  CHECK(any(empty > 0).item() == 0);
  CHECK(all(empty > 0).item() == 1);
  for (Tensor (*f)(const Tensor&, const Axes&, ReduceOptions) : {prod, logsumexp}) {
    GradientTape tape;
    tape.watch(empty);
    CHECK(tape.gradient(f(empty, 1, {}), empty).dense().shape() == Shape{2, 0, 3});
  }
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
        CHECK(std::isnan(min(x).item()));
        CHECK(argmin(x).item<std::int64_t>() == position);
        CHECK(std::isnan(prod(x).item()));
        CHECK(std::isnan(logsumexp(x).item()));
        const Tensor columns = reshape(x, {n, 1}) * ones({1, 20}, x.dtype());
        CHECK(std::isnan(max(columns, 0).at({3})));
        CHECK(argmax(columns, 0).at<std::int64_t>({3}) == position);
        CHECK(std::isnan(min(columns, 0).at({3})));
        CHECK(argmin(columns, 0).at<std::int64_t>({3}) == position);
      }
    }
  CHECK(max(tensor(std::vector<double>{-kInf, -kInf})).item() == -kInf);
  CHECK(argmax(tensor(std::vector<double>{-kInf, -kInf})).item<std::int64_t>() == 0);
  CHECK(sum(tensor(std::vector<double>{kInf, 1})).item() == kInf);
}

TEST_CASE("equal extremes share the gradient", "[reduce]") {
  const Tensor x = tensor({{1.0, 3.0, 3.0}, {2.0, 2.0, 2.0}}, DType::f64);
  GradientTape tape;
  tape.watch(x);
  const Tensor y = max(x, 1) - 2 * min(-x, 1);   // in effect three times the maximum
  const std::vector<double> expected = {0, 1.5, 1.5, 1, 1, 1};
  CHECK(worst(tape.gradient(y, x).dense(), tensor(expected, {2, 3})) < 1e-15);
}

TEST_CASE("the gradient of a product is exact with zeros, to third order", "[reduce]") {
  const auto derivatives = [](const Tensor& x, const Axes& axes) {
    GradientTape third({.persistent = true});
    third.watch(x);
    GradientTape second;
    second.watch(x);
    GradientTape first;
    first.watch(x);
    const Tensor g = first.gradient(sum(prod(x, axes)), x).dense();
    const Tensor h =
        second.gradient(sum(square(g)), x).dense();   // twice the matrix of second derivatives times g
    return std::vector<Tensor>{g, h, third.gradient(sum(h), x).dense()};
  };
  // For x, y, z: the gradient is (yz, xz, xy) and its squares' sum y²z² + x²z² + x²y², of which h is the
  // gradient.
  for (const std::vector<double>& v : {std::vector<double>{2, 3, 5}, {0, 3, 5}, {2, 0, 0}, {0, 0, 0}}) {
    const double a = v[0], b = v[1], c = v[2];
    const auto d = derivatives(tensor(v), Axes());
    CHECK(d[0].to_vector() == std::vector<double>{b * c, a * c, a * b});
    CHECK(d[1].to_vector() ==
          std::vector<double>{2 * a * (b * b + c * c), 2 * b * (a * a + c * c), 2 * c * (a * a + b * b)});
    const double s[] = {2 * (b * b + c * c) + 4 * a * (b + c), 2 * (a * a + c * c) + 4 * b * (a + c),
                        2 * (a * a + b * b) + 4 * c * (a + b)};
    CHECK(d[2].to_vector() == std::vector<double>(s, s + 3));
  }
  // Rows of zeros, of one and of none, along another axis than the last, longer than a vector.
  std::vector<double> rows(3 * 100, 1.01);
  rows[7] = rows[100 + 7] = rows[100 + 50] = 0;
  const Tensor x = tensor(rows, {3, 100}), across = transpose(x);
  const auto of_rows = derivatives(x, 1), of_columns = derivatives(across, 0);
  CHECK(of_rows[0].at({0, 7}) == Approx(std::pow(1.01, 99)));
  CHECK(of_rows[0].at({0, 8}) == 0);
  CHECK(of_rows[0].at({1, 7}) == 0);
  CHECK(of_rows[0].at({2, 99}) == Approx(std::pow(1.01, 99)));
  // With two zeros, only the second derivative with respect to both is not 0.
  CHECK(of_rows[1].at({1, 7}) == 0);
  CHECK(of_rows[2].at({1, 50}) == Approx(2 * std::pow(1.01, 196)));
  CHECK(of_rows[2].at({1, 51}) == 0);
  for (std::size_t i = 0; i < 3; ++i)
    CHECK(worst(transpose(of_columns[i]), of_rows[i]) <= 1e-12 * max(abs(of_rows[i])).item());
}

TEST_CASE("the product of the others agrees with its definition for rows of every length", "[reduce]") {
  for (const DType dtype : {DType::f32, DType::f64})
    for (const std::int64_t n : {1, 2, 7, 16, 31, 32, 33, 63, 64, 65, 100, 127, 1000}) {
      const Tensor x = astype(1 + samples::uniform({3, n}, -1, 1) / std::sqrt(static_cast<double>(n)), dtype);
      GradientTape tape;
      tape.watch(x);
      const Tensor y = prod(x, 1, {.keepdims = true});
      INFO(n << " of " << name_of(dtype));
      CHECK(worst(tape.gradient(y, x).dense(), y / x) < (dtype == DType::f32 ? 2e-4 : 1e-12));
    }
}

TEST_CASE("logsumexp neither overflows nor turns infinities into NaN", "[reduce]") {
  const Tensor x =
      tensor({{1000.0, 1001.0}, {-1000.0, -1e30}, {-kInf, -kInf}, {-kInf, 3.0}, {kInf, 1.0}, {kInf, -kInf}},
             DType::f64);
  const std::vector<double> expected = {1001.3132616875182, -1000, -kInf, 3, kInf, kInf};
  CHECK(logsumexp(x, 1).to_vector() == expected);
  CHECK(logsumexp(astype(x, DType::f32), 1).to_vector() ==
        std::vector<double>{1001.31326f, -1000, -kInf, 3, kInf, kInf});
  GradientTape tape;
  tape.watch(x);
  const Tensor y = logsumexp(x, 1);
  CHECK(y.to_vector() == expected);
  const std::vector<double> g = tape.gradient(y, x).dense().to_vector();
  CHECK(g[0] == Approx(0.2689414213699951).epsilon(1e-14));
  CHECK(std::vector<double>(g.begin() + 2, g.begin() + 8) == std::vector<double>{1, 0, 0, 0, 0, 1});
  CHECK((std::isnan(g[8]) && g[9] == 0));   // there is no limit: it depends on the path
}

TEST_CASE("logsumexp is the same, recorded or not", "[reduce]") {
  const Tensor x = samples::uniform({4, 37, 5}, -3, 3);
  for (const Axes& axes : {Axes(), Axes(0), Axes(1), Axes({0, 2}), Axes({1, 2})}) {
    GradientTape tape;
    tape.watch(x);
    const Tensor y = logsumexp(x, axes, {.keepdims = true});
    CHECK(worst(tape.gradient(y, x).dense(), exp(x - y)) < 1e-15);
    CHECK(same_bits(y, logsumexp(x, axes, {.keepdims = true})));
  }
}

TEST_CASE("rounding errors of long f32 sums stay small", "[reduce]") {
  // 0.1f is 0.100000001490116…; a running sum is off by 1e-2, and the fewer lanes a vector has, the longer
  // are the sums in them.
  const double exact = 0.1f * 1e6;
  const Tensor x = full({1000, 1000}, 0.1);
  CHECK(sum(x).item() == Approx(exact).epsilon(1e-5));
  CHECK(sum(reshape(x, {1000000, 1}), 0).item() == Approx(exact).epsilon(1e-5));
  CHECK(sum(reshape(x, {100000, 10}), 0).at({9}) == Approx(exact / 10).epsilon(1e-5));
}

TEST_CASE("integer sums wrap around", "[reduce]") {
  const std::int32_t largest = std::numeric_limits<std::int32_t>::max();
  CHECK(sum(tensor({largest, 1}, DType::i32)).item<std::int32_t>() ==
        std::numeric_limits<std::int32_t>::min());
}

TEST_CASE("reductions do not depend on the number of threads", "[reduce]") {
  for (const Shape& shape : {Shape{3000000}, Shape{1500, 1500}, Shape{9, 300000}, Shape{300000, 9}}) {
    const Tensor x = astype(samples::uniform(shape, -1, 1), DType::f32);
    const auto all = [&](int threads) {
      const ThreadsForScope scope(threads);
      return std::vector<Tensor>{sum(x),    sum(x, 0),       sum(x, -1),      mean(x),
                                 max(x, 0), max(x),          argmax(x, -1),   prod(x, 0),
                                 min(x),    logsumexp(x, 0), logsumexp(x, -1)};
    };
    const std::vector<Tensor> one = all(1), two = all(2);
    for (std::size_t i = 0; i < one.size(); ++i)
      CHECK(same_bits(one[i], two[i]));
  }
}

TEST_CASE("euclidean_norm neither overflows nor underflows in its squares", "[reduce]") {
  for (const double scale : {1e-300, 1e-200, 1e-160, 1e-154, 1.0, 1e154, 1e200, 1e307}) {
    CAPTURE(scale);
    const Tensor x = tensor({3.0, 4.0}, DType::f64) * scale;
    GradientTape tape;
    tape.watch(x);
    const Tensor y = euclidean_norm(x), dx = tape.gradient(y, x).dense();
    CHECK(y.item() / scale == Approx(5).epsilon(1e-15));
    CHECK(worst(dx, tensor({0.6, 0.8}, DType::f64)) < 1e-15);
  }
  for (const double scale : {1e-38, 1e-25, 1e-16, 1.0, 1e16, 1e25, 6e37})
    CHECK(euclidean_norm(tensor({3.0, 4.0}, DType::f32) * scale).item() / scale == Approx(5).epsilon(1e-6));
  CHECK(euclidean_norm(tensor({3e-320, 4e-320}, DType::f64)).item() == 5e-320);
  // Rows and columns, of which only some are out of range.
  const Tensor x =
      tensor({{3e200, 4e200, 0.0}, {3.0, 4.0, 0.0}, {3e-200, 4e-200, 0.0}, {0.0, 0.0, 0.0}}, DType::f64);
  for (const Tensor& y : {euclidean_norm(x, 1), euclidean_norm(transpose(x), 0)}) {
    const std::vector<double> norms = y.to_vector();
    CHECK(norms[0] / 1e200 == Approx(5).epsilon(1e-15));
    CHECK(norms[1] == 5);
    CHECK(norms[2] / 1e-200 == Approx(5).epsilon(1e-15));
    CHECK(norms[3] == 0);
  }
  CHECK(euclidean_norm(tensor({kInf, 1.0}, DType::f64)).item() == kInf);
  CHECK(std::isnan(euclidean_norm(tensor({kNaN, 1e200}, DType::f64)).item()));
}

TEST_CASE("reductions reject invalid arguments", "[reduce][errors]") {
  const Tensor x = zeros({2, 3});
  CHECK_THROWS_WITH(sum(x, 3), "sum: axis 3 is out of range for x of rank 2; use -2..1");
  CHECK_THROWS_WITH(argmax(x, -3), "argmax: axis -3 is out of range for x of rank 2; use -2..1");
  CHECK_THROWS_WITH(max(x, {1, -1}), "max: axis -1 is named twice for x of rank 2");
  CHECK_THROWS_WITH(max(zeros({0, 3}), 0), "max: no elements to choose from: x is f32[0,3]");
  CHECK_THROWS_WITH(argmax(zeros({2, 0})), "argmax: no elements to choose from: x is f32[2,0]");
  CHECK_THROWS_WITH(sum(zeros({2}, DType::u8)),
                    "sum: i8, u8 and bool cannot be summed, use astype: x is u8[2]");
  CHECK_THROWS_WITH(mean(zeros({2}, DType::i32)),
                    "mean: takes f32, f64, f16, bf16, c64 or c128, use astype: x is i32[2]");
  CHECK_THROWS_WITH(max(zeros({2}, DType::boolean)), "max: bool has no order, use astype: x is bool[2]");
  CHECK_THROWS_WITH(min(zeros({0, 3}), 0), "min: no elements to choose from: x is f32[0,3]");
  CHECK_THROWS_WITH(prod(zeros({2}, DType::u8)),
                    "prod: i8, u8 and bool cannot be multiplied, use astype: x is u8[2]");
  CHECK_THROWS_WITH(logsumexp(zeros({2, 3}, DType::i32)),
                    "logsumexp: takes f32, f64, f16 or bf16, use astype: x is i32[2,3]");
  CHECK_THROWS_WITH(logsumexp(x, 2), "logsumexp: axis 2 is out of range for x of rank 2; use -2..1");
  CHECK_THROWS_WITH(any(x), "any: takes bool, compare with 0 first: x is f32[2,3]");
  CHECK_THROWS_AS(all(zeros({2}, DType::u8)), DTypeError);
  CHECK_THROWS_AS(sum(x, 3), ShapeError);
  CHECK_THROWS_AS(mean(zeros({2}, DType::i32)), DTypeError);
}

TEST_CASE("derivatives of norms over no elements are 0", "[reduce]") {
  const Tensor x = zeros({3, 0}, DType::f64);
  for (const double order : {0.5, 1.0, 2.0, 3.0}) {
    INFO("order " << order);
    const auto f = [order](const Tensor& t) { return norm(t, order, 1); };
    CHECK(f(x).to_vector() == std::vector<double>(3, 0));
    CHECK(jvp(f, x, x).to_vector() == std::vector<double>(3, 0));
    CHECK(grad(f, x).dense().shape() == x.shape());
  }
  const auto f = [](const Tensor& t) { return euclidean_norm(t, 1); };
  CHECK(jvp(f, x, x).to_vector() == std::vector<double>(3, 0));
}

// As NumPy's var with ddof: 1 / 0 and 0 / 0.
TEST_CASE("the divisor of a variance is 0 or more", "[reduce]") {
  const Tensor x = tensor({{1.0, 3.0}, {2.0, 2.0}}, DType::f64);
  CHECK(variance(x, 1, {.correction = 1}).to_vector() == std::vector<double>{2, 0});
  for (const double correction : {2.0, 3.0}) {
    const std::vector<double> v = variance(x, 1, {.correction = correction}).to_vector();
    CHECK(v[0] == kInf);
    CHECK(std::isnan(v[1]));
  }
}

// As NumPy's reductions of a number.
TEST_CASE("axes 0 and -1 of a tensor without axes are its only element", "[reduce]") {
  const Tensor x = tensor(-2.5, DType::f64);
  for (const int axis : {0, -1})
    for (const bool keepdims : {false, true}) {
      for (Tensor (*f)(const Tensor&, const Axes&, ReduceOptions) :
           {sum, prod, mean, max, min, logsumexp, median}) {
        CHECK(f(x, axis, {.keepdims = keepdims}).item() == -2.5);
        CHECK(f(x, axis, {.keepdims = keepdims}).ndim() == 0);
        CHECK(grad([&](const Tensor& t) { return f(t, axis, {.keepdims = keepdims}); }, x).dense().item() ==
              1);
      }
      for (Tensor (*f)(const Tensor&, int, ReduceOptions) : {argmax, argmin})
        CHECK(f(x, axis, {.keepdims = keepdims}).item<std::int64_t>() == 0);
      CHECK(norm(x, 2, axis, {.keepdims = keepdims}).item() == 2.5);
      CHECK(variance(x, axis, {.keepdims = keepdims}).item() == 0);
      CHECK(count_nonzero(x, axis, {.keepdims = keepdims}).item<std::int64_t>() == 1);
      CHECK(any(x > 0, axis, {.keepdims = keepdims}).item<bool>() == false);
      CHECK(squeeze(x, axis).item() == -2.5);
      CHECK(reverse(x, axis).item() == -2.5);
    }
  CHECK_THROWS_AS(sum(x, 1), ShapeError);
  CHECK_THROWS_AS(sum(x, -2), ShapeError);
}

}   // namespace reduce_test
