// Rounding, quotients and masked products beyond their samples: halves, signs of zero, integers, and the
// error of division by 0.
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <limits>

#include "case.h"
#include "message_of.h"

namespace rounding_test {

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

std::vector<double> values(const Tensor& x) { return x.to_vector(); }
Tensor f64(const std::vector<double>& v) { return tensor(v); }

/// The gradients of f(a, b) for a given output gradient.
std::vector<double> gradients(Tensor (*f)(Operand, Operand), double a, double b, double dy = 1) {
  const Tensor x = tensor(a, DType::f64), y = tensor(b, DType::f64);
  GradientTape tape;
  tape.watch(x);
  tape.watch(y);
  const std::vector<Gradient> g =
      tape.gradient(f(x, y), Sources({x, y}), {.output_gradients = {tensor(dy, DType::f64)}});
  return {g[0].dense().item(), g[1].dense().item()};
}

}   // namespace

TEST_CASE("halves are rounded to even, and zeros keep their sign", "[rounding]") {
  const Tensor x = f64({-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 0x1p52 + 1, -0.2, kInf});
  CHECK(values(round(x)) == std::vector<double>{-2, -2, 0, 0, 2, 2, 0x1p52 + 1, 0, kInf});
  CHECK(values(rint(x)) == values(round(x)));
  CHECK(values(trunc(x)) == std::vector<double>{-2, -1, 0, 0, 1, 2, 0x1p52 + 1, 0, kInf});
  for (const Tensor& y : {round(x), trunc(x), ceil(x)})
    CHECK(std::signbit(values(y)[7]));
  CHECK(std::isnan(round(f64({std::nan("")})).to_vector()[0]));
}

TEST_CASE("integers are divided downwards and towards zero", "[rounding]") {
  const std::vector<double> a = {7, -7, 7, -7, 6, -6, 0}, b = {2, 2, -2, -2, 3, 3, -5};
  for (const DType t : {DType::i8, DType::i32, DType::i64}) {
    const Tensor x = astype(f64(a), t), y = astype(f64(b), t);
    CHECK(values(floor_div(x, y)) == std::vector<double>{3, -4, -4, 3, 2, -2, 0});
    CHECK(values(truncate_div(x, y)) == std::vector<double>{3, -3, -3, 3, 2, -2, 0});
    CHECK(values(floor_mod(x, y)) == std::vector<double>{1, 1, -1, -1, 0, 0, 0});
  }
  const Tensor bytes = tensor({7, 255, 0}, DType::u8);
  CHECK(values(floor_div(bytes, 2)) == std::vector<double>{3, 127, 0});
  CHECK(values(floor_mod(bytes, 2)) == std::vector<double>{1, 1, 0});
  const Tensor lowest = tensor(std::vector<std::int32_t>{std::numeric_limits<std::int32_t>::min()});
  CHECK(floor_div(lowest, -1).to_vector<std::int32_t>() == lowest.to_vector<std::int32_t>());
  CHECK(values(floor_mod(lowest, -1)) == std::vector<double>{0});
}

TEST_CASE("division of an integer by zero is an error, of a float it is not", "[rounding]") {
  const Tensor b = tensor({1, 2, 0, 4}, DType::i32);
  CHECK(message_of([&] {
          floor_div(tensor({8, 8, 8, 8}, DType::i32), b);
        }) == "floor_div: division by zero: element 2 of b is 0");
  CHECK(message_of([&] { floor_mod(8, b); }) == "floor_mod: division by zero: element 2 of b is 0");
  CHECK(values(floor_div(f64({1, -1}), f64({0, 0}))) == std::vector<double>{kInf, -kInf});
  CHECK(std::isnan(floor_mod(f64({1}), f64({0})).to_vector()[0]));
}

TEST_CASE("masked products and quotients are 0 where their mask is, with their gradients", "[rounding]") {
  for (const double a : {3.0, kInf, std::nan("")}) {
    CHECK(mul_no_nan(tensor(a, DType::f64), 0).item() == 0);
    CHECK(div_no_nan(tensor(a, DType::f64), 0).item() == 0);
    CHECK(gradients(div_no_nan, a, 0) == std::vector<double>{0, 0});
    CHECK(gradients(mul_no_nan, a, 0, 0) == std::vector<double>{0, 0});
  }
  for (Tensor (*f)(Operand, Operand) : {xlogy, xlog1py, xdivy})
    for (const double b : {0.0, -1.0, -2.0, std::nan("")}) {
      CHECK(f(0, tensor(b, DType::f64)).item() == 0);
      CHECK(gradients(f, 0, b) == std::vector<double>{0, 0});
    }
  CHECK(gradients(mul_no_nan, 3, 0) == std::vector<double>{0, 3});
  CHECK(gradients(div_no_nan, 3, 2) == std::vector<double>{0.5, -0.75});
  CHECK(gradients(hypot, 0, 0) == std::vector<double>{0, 0});
}

TEST_CASE("the gradient of floor_mod is the gradient of its branch", "[rounding]") {
  CHECK(gradients(floor_mod, 7.5, 2) == std::vector<double>{1, -3});
  CHECK(gradients(floor_mod, -7.5, 2) == std::vector<double>{1, 4});
}

TEST_CASE("cross takes vectors of three elements", "[rounding]") {
  CHECK(message_of([] {
          cross(zeros({2, 2}), zeros({2, 2}));
        }) == "cross: takes vectors of 3 elements along the last axis: a is f32[2,2], b is f32[2,2]");
  CHECK(message_of([] { cross(zeros({3}), 1); }) ==
        "cross: takes vectors of 3 elements along the last axis: a is f32[3], b is f32[]");
  CHECK(message_of([] { cross(zeros({3}, DType::i32), zeros({3}, DType::i32)); }) ==
        "cross: takes f32, f64, f16 or bf16, use astype: a is i32[3], b is i32[3]");
}

TEST_CASE("cases: masked logarithms and quotients, nextafter, angles", "[cases]") {
  const auto check = [](const char* id, Tensor (*f)(Operand, Operand), const char* a, const char* b) {
    check_case(id, [&](Case& c) {
      const Tensor x = c.input(a), y = c.input(b);
      GradientTape tape;
      tape.watch(x);
      tape.watch(y);
      c.check("grads", tape.gradient(f(x, y), Sources({x, y})));
    });
  };
  check("op-xlogy-x0.1-y0", xlogy, "x", "y");
  check("op-xdivy-x0-y3.1", xdivy, "x", "y");
  check("op-xdivy-x0.1-y0", xdivy, "x", "y");
  check("op-xdivy-x0-y0", xdivy, "x", "y");
  check("op-nextafter", nextafter, "x1", "x2");
  check("op-atan2", atan2, "y", "x");
  check_case("op-special-asinh", [&](Case& c) {
    const Tensor x = c.input("x");
    GradientTape tape;
    tape.watch(x);
    c.check("grads", {tape.gradient(asinh(x), x)});
  });
}

}   // namespace rounding_test
