// Arithmetic and choices: kinks, bounds, signs of zero and infinity, integers. The op table test covers all
// other derivatives.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "tapedeck/tapedeck.h"
#include "values.h"

namespace math_test {

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

const double kNaN = std::numeric_limits<double>::quiet_NaN(), kInf = std::numeric_limits<double>::infinity();
/// The gradient of the sum of f at x.
template <class F> Values slope(const F& f, const Values& x) {
  const Tensor t = tensor(x);
  GradientTape tape;
  tape.watch(t);
  return tape.gradient(f(t), t).dense().to_vector();
}

}   // namespace

TEST_CASE("sign, and the derivative of abs, are 0 at 0", "[math]") {
  const Values x = {-kInf, -2, 0, 3, kInf};
  CHECK(sign(tensor(x)).to_vector() == Values{-1, -1, 0, 1, 1});
  CHECK(std::isnan(sign(tensor(kNaN)).item()));
  CHECK(slope([](const Tensor& t) { return abs(t); }, x) == Values{-1, -1, 0, 1, 1});
  CHECK(slope([](const Tensor& t) { return sign(t) * t; }, {-2, 0, 3}) == Values{-1, 0, 1});
  CHECK(sign(tensor({-7, 0, 7})).to_vector<std::int32_t>() == std::vector<std::int32_t>{-1, 0, 1});
  CHECK(sign(tensor({0, 200}, DType::u8)).to_vector() == Values{0, 1});
}

TEST_CASE("floor and ceil", "[math]") {
  const Tensor x = tensor(Values{-1.5, -0.5, 0, 0.5, 1e300, -kInf, kInf, 4503599627370495.5});
  CHECK(floor(x).to_vector() == Values{-2, -1, 0, 0, 1e300, -kInf, kInf, 4503599627370495});
  CHECK(ceil(x).to_vector() == Values{-1, 0, 0, 1, 1e300, -kInf, kInf, 4503599627370496});
  CHECK(floor(tensor({-1.5f, 8388609.0f, 3e9f, -3e9f})).to_vector() == Values{-2, 8388609, 3e9, -3e9});
  CHECK(ceil(tensor({-1.5f, 8388609.0f, 3e9f, -3e9f})).to_vector() == Values{-1, 8388609, 3e9, -3e9});
  CHECK(std::isnan(floor(tensor(kNaN)).item()));
  GradientTape tape;
  tape.watch(x);
  const Tensor y = floor(x) + ceil(x);
  CHECK_FALSE(tape.gradient(y, x).defined());
  CHECK_THROWS_WITH(floor(tensor({1, 2})), "floor: takes f32, f64, f16 or bf16, use astype: x is i32[2]");
}

TEST_CASE("the gradient of clip flows to the operand that it chose", "[math]") {
  const Tensor x = tensor(Values{-kInf, 0, 1, 2, 3, 4, kInf}), low = tensor(1.0, DType::f64),
               high = tensor(3.0, DType::f64);
  GradientTape tape({.persistent = true});
  tape.watch(x), tape.watch(low), tape.watch(high);
  const Tensor y = clip(x, low, high), crossed = clip(x, high, low);
  CHECK(y.to_vector() == Values{1, 1, 1, 2, 3, 3, 3});
  CHECK(crossed.to_vector() == Values(7, 1.0));
  const auto of_y = tape.gradient(y, x, low, high), of_crossed = tape.gradient(crossed, x, low, high);
  CHECK(of_y[0].dense().to_vector() == Values{0, 0, 1, 1, 1, 0, 0});
  CHECK(of_y[1].dense().item() == 2);
  CHECK(of_y[2].dense().item() == 2);
  CHECK(of_crossed[0].dense().to_vector() == Values(7, 0.0));
  CHECK(of_crossed[1].dense().item() == 7);
  CHECK(of_crossed[2].dense().item() == 0);
  CHECK(clip(tensor({-5, 0, 5, 9}), 0, 5).to_vector<std::int32_t>() == std::vector<std::int32_t>{0, 0, 5, 5});
  CHECK(std::isnan(clip(tensor(kNaN), 0, 1).item()));
  CHECK(clip(tensor({1.0, 2.0}), tensor({{0.0, 3.0}, {1.5, 0.0}}), 2.5).shape() == Shape{2, 2});
}

TEST_CASE("reciprocal and rsqrt of zero and infinity", "[math]") {
  CHECK(reciprocal(tensor(Values{0, -kInf, kInf, 4})).to_vector() == Values{kInf, 0, 0, 0.25});
  CHECK(rsqrt(tensor(Values{0, kInf, 4})).to_vector() == Values{kInf, 0, 0.5});
  CHECK(slope([](const Tensor& t) { return reciprocal(t); }, {0, 2}) == Values{-kInf, -0.25});
  CHECK(slope([](const Tensor& t) { return rsqrt(t); }, {0, 4}) == Values{-kInf, -0.0625});
}

TEST_CASE("squared_difference of integers", "[math]") {
  CHECK(squared_difference(tensor({1, 5, 9}), 4).to_vector<std::int32_t>() ==
        std::vector<std::int32_t>{9, 1, 25});
}

TEST_CASE("sigmoid neither overflows nor loses small results", "[math]") {
  const Tensor x = tensor(Values{-kInf, -800, -740, 0, 800, kInf});
  const Values y = sigmoid(x).to_vector();
  CHECK(y[0] == 0);
  CHECK(y[1] == 0);
  CHECK(y[2] == std::exp(-740.0));
  CHECK(y[3] == 0.5);
  CHECK((y[4] == 1 && y[5] == 1));
  CHECK(slope([](const Tensor& t) { return sigmoid(t); }, {-kInf, 0, kInf}) == Values{0, 0.25, 0});
}

TEST_CASE("logic accepts bool tensors, and numbers as bool", "[math]") {
  const Tensor a = tensor({{1, 0}, {0, 1}}, DType::boolean);
  CHECK(logical_and(a, true).to_vector() == a.to_vector());
  CHECK(logical_or(a, 2).to_vector() == Values(4, 1.0));
  CHECK(logical_and(a, expand_dims(tensor({1, 0}, DType::boolean), 1)).to_vector() == Values{1, 0, 0, 0});
  CHECK(logical_not(logical_not(a)).to_vector() == a.to_vector());
  CHECK(logical_not(zeros({0, 3}, DType::boolean)).shape() == Shape{0, 3});
  CHECK_THROWS_WITH(logical_and(a, tensor({1, 0})),
                    "logical_and: takes bool, compare with 0 first: a is bool[2,2], b is i32[2]");
  CHECK_THROWS_WITH(logical_not(tensor({1.0})), "logical_not: takes bool, compare with 0 first: x is f32[1]");
  CHECK_THROWS_AS(logical_or(a, zeros({3}, DType::boolean)), ShapeError);
}

// The sums of small integers are exact, so the loops below are the expected values.
TEST_CASE("rows of every length, added to new memory and to an operand's", "[math]") {
  for (const std::int64_t rows : {2, 5, 700})
    for (std::int64_t n = 1; n < 40; ++n) {
      CAPTURE(rows, n);
      const Tensor row = arange(n, DType::f32), column = reshape(100 * arange(rows, DType::f32), {rows, 1});
      const Tensor outer = column + row;
      Tensor own = column + row;
      const Tensor over = std::move(own) + row, turned = row - outer;
      bool all = true;
      for (std::int64_t i = 0; i < rows; ++i)
        for (std::int64_t j = 0; j < n; ++j) {
          const auto expected = static_cast<float>(100 * i + j);
          all &= outer.at<float>({i, j}) == expected;
          all &= over.at<float>({i, j}) == expected + static_cast<float>(j);
          all &= turned.at<float>({i, j}) == static_cast<float>(-100 * i);
        }
      CHECK(all);
    }
}

TEST_CASE("gradients of rows and columns of every length are their counts", "[math]") {
  const auto check = [](const auto& f, double of_matrix, double of_other) {
    for (const std::int64_t rows : {3, 600})
      for (std::int64_t n = 1; n < 40; ++n)
        for (const bool is_row : {true, false}) {
          CAPTURE(rows, n, is_row);
          const Tensor a = ones({rows, n}), b = ones(is_row ? Shape{n} : Shape{rows, 1});
          GradientTape tape;
          tape.watch(a), tape.watch(b);
          const auto [da, db] = tape.gradient(f(a, b), a, b);
          const double count = static_cast<double>(is_row ? rows : n);
          CHECK(all(equal(da.dense(), of_matrix)).template item<bool>());
          CHECK(all(equal(db.dense(), of_other * count)).template item<bool>());
        }
  };
  check([](const Tensor& a, const Tensor& b) { return a + b; }, 1, 1);
  check([](const Tensor& a, const Tensor& b) { return a - b; }, 1, -1);
  check([](const Tensor& a, const Tensor& b) { return b - a; }, -1, 1);
}

}   // namespace math_test
