// Conversion between xtensor's arrays and tensors: every layout and lazy expression on the way in, no copy on
// the way out.
#include <catch2/catch.hpp>
#include <xtensor/xarray.hpp>
#include <xtensor/xmath.hpp>
#include <xtensor/xtensor.hpp>
#include <xtensor/xview.hpp>

#include "tapedeck/tapedeck.h"
#include "tapedeck/xtensor.h"

namespace xtensor_test {

using namespace tapedeck;

namespace {

using Doubles = std::vector<double>;

}   // namespace

TEST_CASE("arrays become tensors of their value type", "[xtensor]") {
  const xt::xarray<double> a{{1, 2, 3}, {4, 5, 6}};
  CHECK(from_xtensor(a).spec() == Spec{DType::f64, {2, 3}});
  CHECK(from_xtensor(a).to_vector() == Doubles{1, 2, 3, 4, 5, 6});
  CHECK(from_xtensor(xt::xtensor<float, 1>{1, 2}).spec() == Spec{DType::f32, {2}});
  CHECK(from_xtensor(xt::xarray<std::int64_t>{1, 2}).dtype() == DType::i64);
  CHECK(from_xtensor(xt::xarray<bool>{true, false}).to_vector<int>() == std::vector<int>{1, 0});
}

TEST_CASE("rank 0 and empty arrays", "[xtensor]") {
  const Tensor scalar = from_xtensor(xt::xarray<double>(2.5));
  CHECK(scalar.shape() == Shape{});
  CHECK(scalar.item() == 2.5);
  CHECK(as_xtensor<double>(scalar)() == 2.5);
  CHECK(from_xtensor(xt::xarray<float>::from_shape({0, 3})).shape() == Shape{0, 3});
  CHECK(as_xtensor<float>(zeros({0, 3})).size() == 0);
}

TEST_CASE("views, column-major arrays and lazy expressions are read in row-major order", "[xtensor]") {
  const xt::xarray<double> a{{1, 2, 3}, {4, 5, 6}};
  CHECK(from_xtensor(xt::view(a, xt::all(), xt::range(1, 3))).to_vector() == Doubles{2, 3, 5, 6});
  CHECK(from_xtensor(xt::view(a, xt::all(), 1)).to_vector() == Doubles{2, 5});
  CHECK(from_xtensor(xt::transpose(a)).to_vector() == Doubles{1, 4, 2, 5, 3, 6});
  const xt::xarray<double, xt::layout_type::column_major> columns = a;
  CHECK(from_xtensor(columns).to_vector() == Doubles{1, 2, 3, 4, 5, 6});
  CHECK(from_xtensor(2 * a + 1.0).to_vector() == Doubles{3, 5, 7, 9, 11, 13});
  CHECK(from_xtensor(xt::sin(a) * columns).at({1, 2}) == std::sin(6.0) * 6);
  CHECK(from_xtensor(a > 2.0).dtype() == DType::boolean);
}

TEST_CASE("tensors become arrays without a copy", "[xtensor]") {
  const Tensor t = reshape(arange(0, 60, 1, DType::f64), {3, 20});
  const auto a = as_xtensor<double>(t);
  CHECK(a.data() == t.data<double>().data());
  CHECK(a.shape()[0] == 3);
  CHECK(a(1, 2) == 22);
  CHECK(xt::sum(a)() == 59 * 30);
  static_assert(std::is_const_v<std::remove_reference_t<decltype(a(0, 0))>>);
  CHECK(from_xtensor(a + a).to_vector() == (t + t).to_vector());
  CHECK_THROWS_WITH(as_xtensor<float>(t), "data: the tensor is f64[3,20], not f32; use astype");
}

TEST_CASE("the array keeps the elements alive, and an op leaves them unchanged", "[xtensor]") {
  const std::int64_t before = live_bytes();
  {
    Tensor t = ones({1000});
    const auto a = as_xtensor<float>(t);
    const Tensor y = std::move(t) * 2.0;
    t = Tensor();
    CHECK(a(999) == 1);
    CHECK(xt::sum(a)() == 1000);
    CHECK(y.at({0}) == 2);
  }
  CHECK(live_bytes() == before);
}

}   // namespace xtensor_test
