// gradcheck itself: correct derivatives pass, planted errors are caught.
#include <catch2/catch.hpp>
#include <limits>
#include <sstream>

#include "message_of.h"
#include "ops/odd_ops.h"
#include "ops/sample_inputs.h"
#include "tapedeck/gradcheck.h"
#include "tapedeck/op.h"
#include "tapedeck/tapedeck.h"

namespace gradcheck_test {

using namespace tapedeck;
using samples::f64, samples::uniform, test::message_of;

namespace {

Spec like_first(const Call& c) { return c.x[0].spec(); }
void cube_kernel(const Call& c, std::span<Tensor> y) { y[0] = c.x[0] * c.x[0] * c.x[0]; }
Tensor three_x_squared(const Call& c, const Tensor& dy) { return 3 * c.x[0] * c.x[0] * dy; }

constexpr Op cube_with(std::string_view name, Rule rule) {
  return {.name = name,
          .doc = "x³",
          .args = {"x"},
          .infer = like_first,
          .forward = {cube_kernel, Outputs::by_kernel},
          .rule = rule};
}

constexpr Op kRight = cube_with(
    "right", Rule::custom(
                 {.x = 1},
                 [](const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
                   dx[0] = three_x_squared(c, dy[0].dense());
                 },
                 [](const Call& c, Refs dx, std::span<Tensor> dy) { dy[0] = three_x_squared(c, dx[0]); }));
constexpr Op kWrongFactor =
    cube_with("wrong_factor",
              Rule::custom(
                  {.x = 1},
                  [](const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
                    dx[0] = 2.99 * c.x[0] * c.x[0] * dy[0].dense();
                  },
                  [](const Call& c, Refs dx, std::span<Tensor> dy) { dy[0] = three_x_squared(c, dx[0]); }));
constexpr Op kForgetsDy = cube_with(
    "forgets_dy",
    Rule::custom(
        {.x = 1},
        [](const Call& c, std::span<Gradient>, std::span<Gradient> dx) { dx[0] = 3 * c.x[0] * c.x[0]; },
        [](const Call& c, Refs dx, std::span<Tensor> dy) { dy[0] = three_x_squared(c, dx[0]); }));
constexpr Op kWrongJvp =
    cube_with("wrong_jvp",
              Rule::custom(
                  {.x = 1},
                  [](const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
                    dx[0] = three_x_squared(c, dy[0].dense());
                  },
                  [](const Call& c, Refs dx, std::span<Tensor> dy) { dy[0] = -three_x_squared(c, dx[0]); }));
constexpr Op kCutsSecondOrder =
    cube_with("cuts_second_order",
              Rule::custom(
                  {.x = 1},
                  [](const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
                    dx[0] = 3 * stop_gradient(c.x[0] * c.x[0]) * dy[0].dense();
                  },
                  [](const Call& c, Refs dx, std::span<Tensor> dy) { dy[0] = three_x_squared(c, dx[0]); }));
constexpr Op kWrongShape = cube_with(
    "wrong_shape", Rule::custom({.x = 1}, [](const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
      dx[0] = sum(three_x_squared(c, dy[0].dense()));
    }));
constexpr Op kSwapped = {
    .name = "swapped",
    .doc = "a - 2 b, with the gradients exchanged.",
    .args = {"a", "b"},
    .infer = like_first,
    .forward = {[](const Call& c, std::span<Tensor> y) { y[0] = c.x[0] - 2 * c.x[1]; }, Outputs::by_kernel},
    .rule = Rule::custom({}, [](const Call&, std::span<Gradient> dy, std::span<Gradient> dx) {
      dx[1] = dy[0], dx[0] = -2 * dy[0].dense();
    })};

TensorFunction function(const Op& op) {
  return [&op](const std::vector<Tensor>& x) { return op.run(x)[0]; };
}
const std::vector<Tensor> point = {uniform({2, 3}, -1, 1)};

}   // namespace

TEST_CASE("gradcheck accepts correct derivatives", "[gradcheck]") {
  CHECK(check_vjp(function(kRight), point));
  CHECK(check_jvp(function(kRight), point));
  CHECK(check_gradients(function(kRight), point));
  const TensorFunction f = [](const std::vector<Tensor>& x) { return tanh(matmul(x[0], x[1])) * exp(x[2]); };
  CHECK(check_gradients(f, {uniform({2, 3}, -1, 1), uniform({3, 4}, -1, 1, 1), uniform({4}, -1, 1, 2)}));
}

TEST_CASE("gradcheck takes a tensor that is given twice for two inputs", "[gradcheck]") {
  const Tensor x = uniform({3}, -1, 1);
  const TensorFunction f = [](const std::vector<Tensor>& in) { return in[0] * in[1] * in[1]; };
  CHECK(check_vjp(f, {x, x}));
  CHECK(check_jvp(f, {x, x}));
  CHECK(check_gradients(f, {x, x}));
}

TEST_CASE("inputs may be held", "[gradcheck]") {
  const std::vector<Tensor> x = {uniform({3}, -1, 1), uniform({3}, -1, 1, 1)};
  const TensorFunction f = [](const std::vector<Tensor>& in) { return stop_gradient(in[0]) * in[1]; };
  CHECK_FALSE(check_gradients(f, x));
  CHECK(check_gradients(f, x, {.held = 0b01}));
}

TEST_CASE("check_op finds the faults of an op", "[gradcheck]") {
  const auto fault = [](const Op& op, const Sample& s, const OpCheckOptions& options = {}) {
    const OpAgreement a = check_op(op, {&s, 1}, options);
    CHECK(a.fault.empty() == static_cast<bool>(a));
    std::ostringstream out;
    out << a;
    return out.str();
  };
  const auto contains = [](const char* text) { return Catch::Contains(text); };
  const Sample any = {.inputs = point};
  CHECK(fault(kRight, any) == "no fault");
  CHECK(fault(kRight, {.inputs = {f64({1, -2})}, .expected = {f64({1, -8})}, .oracle = "x**3"}) ==
        "no fault");
  CHECK(fault(kRight, {.inputs = {f64({1, -2})}, .expected = {f64({1, 8})}, .oracle = "x**3"}) ==
        "right, sample 0: output 0, f64[2], is -8 at element 1, not 8");
  CHECK(fault(kRight, {.inputs = {f64({1})}, .expected = {tensor({1.0f})}, .oracle = "x**3"}) ==
        "right, sample 0: output 0 is f64[1], expected is f32[1]");
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(fault(kRight, {.inputs = {f64({1, 2})}, .expected = {f64({1, nan})}, .oracle = "x**3"}) ==
        "right, sample 0: output 0, f64[2], is 8 at element 1, not nan");
  CHECK(fault(kRight, {.inputs = {f64({1, nan})}, .expected = {f64({1, 8})}, .oracle = "x**3"}) ==
        "right, sample 0: output 0, f64[2], is nan at element 1, not 8");
  CHECK_THAT(fault(kWrongFactor, any), contains("wrong_factor, sample 0: vjp disagrees: analytic "));
  CHECK_THAT(fault(kWrongJvp, any), contains("jvp disagrees: analytic "));
  CHECK_THAT(fault(kCutsSecondOrder, any), contains("vjp of vjp disagrees: analytic "));
  CHECK(fault(kWrongFactor, any, {.differences = false}) == "no fault");
  CHECK(fault(kRight, any, {.gradients = {.held = 1}}) ==
        "right, sample 0: input 0 is held, but has a gradient");
  constexpr static Op no_rule = cube_with("no_rule", Rule::none()),
                      undefined_rule = cube_with("undefined", Rule::undefined());
  CHECK(fault(no_rule, any) == "no fault");
  CHECK(fault(no_rule, {.inputs = {f64({1, nan})}, .expected = {f64({1, nan})}, .oracle = "x**3"}) ==
        "no fault");
  CHECK(fault(undefined_rule, any) == "no fault");
  constexpr static Op throws =
      cube_with("throws", Rule::custom({}, [](const Call&, std::span<Gradient>, std::span<Gradient>) {
                  throw std::runtime_error("not today");
                }));
  CHECK(fault(throws, any) == "throws, sample 0: the check of the derivative has thrown: not today");
  CHECK(fault(kRight, {.inputs = {}}) ==
        "right, sample 0: the op has thrown: " + message_of<Error>([] { kRight.run({}); }));
}

TEST_CASE("check_op sees stacked cotangents and f32", "[gradcheck]") {
  constexpr static Op rank = cube_with(
      "rank", Rule::custom({.x = 1}, [](const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
        dx[0] = (dy[0].dense().ndim() == 2 ? 3 : 4) * c.x[0] * c.x[0] * dy[0].dense();
      }));
  constexpr static Op coarse = {.name = "coarse",
                                .doc = "x, rounded in f32.",
                                .args = {"x"},
                                .infer = like_first,
                                .forward = {[](const Call& c, std::span<Tensor> y) {
                                              y[0] = c.x[0].dtype() == DType::f32 ? round(c.x[0])
                                                                                  : identity(c.x[0]);
                                            },
                                            Outputs::by_kernel},
                                .rule = Rule::linear([](const Call&, const Tensor& dy) { return dy; })};
  const Sample any = {.inputs = point};
  CHECK_THAT(
      check_op(rank, {&any, 1}).fault,
      Catch::StartsWith("rank, sample 0: from stacked cotangents, the gradient of input 0, f64[2,3], is "));
  CHECK(check_op(coarse, {}).fault == "coarse: there are no samples");
  CHECK_THAT(check_op(coarse, {&any, 1}).fault, Catch::StartsWith("coarse, sample 0: in f32, output 0, "));
}

TEST_CASE("gradcheck accepts right derivatives in f32, with its wider tolerance", "[gradcheck]") {
  const std::vector<Tensor> x = {astype(point[0], DType::f32)};
  CHECK(check_gradients(function(kRight), x));
  CHECK_FALSE(check_vjp(function(kWrongFactor), x, {.tolerance = 1e-4}));
}

TEST_CASE("gradcheck catches planted errors", "[gradcheck]") {
  CHECK_FALSE(check_vjp(function(kWrongFactor), point));
  CHECK_FALSE(check_vjp(function(kForgetsDy), point));
  CHECK(check_vjp(function(kWrongJvp), point));
  CHECK_FALSE(check_jvp(function(kWrongJvp), point));
  CHECK_FALSE(check_vjp(function(kSwapped), {uniform({3}, -1, 1), uniform({3}, -1, 1, 1)}));
  CHECK_FALSE(check_jvp(function(kSwapped), {uniform({3}, -1, 1), uniform({3}, -1, 1, 1)}));
}

TEST_CASE("gradcheck names the element", "[gradcheck]") {
  const auto printed = [](const Agreement& a) {
    std::ostringstream out;
    out << a;
    return out.str();
  };
  // The gradient of the second input is doubled at [1,2].
  const TensorFunction f = [](const std::vector<Tensor>& x) {
    Tensor y;
    {
      const StopRecording pause;
      y = sum(x[0] * real(x[1]));
    }
    const Tensor inputs[] = {x[0], x[1]}, outputs[] = {y};
    const auto gradients = [x](std::span<const Tensor> dy) {
      const Tensor wrong = strided_slice_update(x[0], {1, 2}, 2.0 * strided_slice(x[0], {1, 2}));
      return std::vector<Gradient>{real(x[1]) * dy[0], astype(wrong, x[1].dtype()) * dy[0]};
    };
    record_operation("wrong", outputs, inputs, gradients);
    return y;
  };
  const std::vector<Tensor> x = {uniform({2, 3}, 1, 2), uniform({2, 3}, 1, 2, 1)};
  const Agreement a = check_vjp(f, x);
  REQUIRE_FALSE(a);
  REQUIRE(a.element);
  CHECK(a.element->input == 1);
  CHECK(a.element->index == std::vector<std::int64_t>{1, 2});
  CHECK(a.element->analytic == Approx(2 * a.element->numeric));
  CHECK_THAT(printed(a), Catch::Contains("; by input 1, f64[2,3], at [1,2]: analytic "));
  CHECK_FALSE(check_vjp(function(kRight), point).element);

  const Agreement z = check_vjp(f, {x[0], complex(x[1], x[1])});
  REQUIRE(z.element);
  CHECK(z.element->index == std::vector<std::int64_t>{1, 2});
  CHECK_FALSE(z.element->imaginary);
  const Agreement j = check_jvp(function(kWrongJvp), point);
  REQUIRE(j.element);
  CHECK(j.element->analytic == Approx(-j.element->numeric));
  CHECK(check_gradients(function(kCutsSecondOrder), point).element);
}

TEST_CASE("gradcheck catches a rule whose own derivative is wrong", "[gradcheck]") {
  CHECK(check_vjp(function(kCutsSecondOrder), point));
  CHECK(check_jvp(function(kCutsSecondOrder), point));
  const Agreement a = check_gradients(function(kCutsSecondOrder), point);
  CHECK_FALSE(a);
  CHECK(a.what == "vjp of vjp");
}

TEST_CASE("gradcheck catches a gradient that is NaN or of another shape", "[gradcheck]") {
  const TensorFunction root = [](const std::vector<Tensor>& x) { return sqrt(x[0]); };
  CHECK_FALSE(check_vjp(root, {f64({-1, 2})}));
  CHECK_THROWS_AS(check_vjp(function(kWrongShape), point), Error);
}

TEST_CASE("gradcheck keeps integers and bools constant", "[gradcheck]") {
  const TensorFunction rows = [](const std::vector<Tensor>& x) { return square(gather(x[1], x[0])); };
  CHECK(check_gradients(rows, {tensor({2, 0, 2}), uniform({3, 2}, -1, 1)}));
  const Tensor y = as_function(test::kIdentities)({f64({1, 2}), tensor({3, 4, 5})});
  CHECK(y.to_vector() == std::vector<double>{1, 2});
}

TEST_CASE("gradcheck reports what it cannot check, and shows both numbers", "[gradcheck]") {
  const TensorFunction same = [](const std::vector<Tensor>& x) { return x[0]; };
  CHECK_THROWS_WITH(check_vjp(same, {arange(3)}), "gradcheck: no input is f32, f64, c64 or c128");
  CHECK_THROWS_AS(check_vjp(same, {arange(3)}), DTypeError);
  CHECK_THROWS_WITH(check_jvp([](const std::vector<Tensor>& x) { return argmax(x[0]); }, {f64({1, 2})}),
                    "gradcheck: the function returns i64[]; it must be f32, f64, c64 or c128");
  std::ostringstream out;
  out << Agreement{"vjp", 1.5, 2, 1e-6};
  CHECK(out.str() == "vjp disagrees: analytic 1.5, numeric 2, tolerance 1e-06");
  out.str("");
  out << Agreement{"jvp", 2, 2, 1e-6};
  CHECK(out.str() == "jvp agrees: analytic 2, numeric 2, tolerance 1e-06");
}

}   // namespace gradcheck_test
