// Activations and losses: the cases of test/data/cases.json on them, kinks, extreme values, and errors. The
// op table test covers derivatives.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "case.h"
#include "closeness.h"
#include "ops/sample_inputs.h"

namespace activations_test {

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

const double kNaN = std::numeric_limits<double>::quiet_NaN(), kInf = std::numeric_limits<double>::infinity();

/// The first and the second derivative of f at x, and whether there is a second one.
struct Derivatives {
  Tensor first;
  Gradient second;
};
template <class F> Derivatives derivatives(const F& f, const Tensor& x) {
  GradientTape outer;
  outer.watch(x);
  GradientTape inner;
  inner.watch(x);
  const Tensor first = inner.gradient(f(x), x).dense();
  return {first, outer.gradient(first, x)};
}

}   // namespace

TEST_CASE("cases: activations", "[cases][nn]") {
  check_case("op-relu6-grad", [&](Case& c) {
    const auto [first, second] = derivatives([](const Tensor& x) { return relu6(x); }, c.input("x"));
    c.check("grads", std::vector<Tensor>{first});
    REQUIRE(second.defined());
    if (c.compares()) CHECK(worst(second.dense(), zeros({2, 4})) == 0);
  });
  check_case("op-swish-beta", [&](Case& c) {
    const Tensor x = c.input("x"), beta = c.input("beta");
    GradientTape tape;
    tape.watch(x), tape.watch(beta);
    const auto [dx, dbeta] = tape.gradient(silu(x, beta), x, beta);
    c.check("grads", std::vector<Gradient>{dx, dbeta});
  });
  check_case("op-act-elu", [&](Case& c) {
    c.check("grads",
            std::vector<Tensor>{derivatives([](const Tensor& x) { return elu(x); }, c.input("x")).first});
  });
  check_case("op-elu-second-derivative", [&](Case& c) {
    c.check("second", derivatives([](const Tensor& x) { return elu(x); }, c.input("x")).second);
  });
}

TEST_CASE("activations that are straight on both sides have zeros as second derivatives, not none", "[nn]") {
  const Tensor x = tensor({-2.0, 0.0, 3.0, 6.0, 7.0}, DType::f64);
  const auto [of_relu, second_of_relu] = derivatives([](const Tensor& t) { return relu(t); }, x);
  CHECK(of_relu.to_vector() == std::vector<double>{0, 0, 1, 1, 1});
  REQUIRE(second_of_relu.defined());
  CHECK(second_of_relu.dense().to_vector() == std::vector<double>(5, 0));
  const auto [of_relu6, second_of_relu6] = derivatives([](const Tensor& t) { return relu6(t); }, x);
  CHECK(of_relu6.to_vector() == std::vector<double>{0, 0, 1, 0, 0});
  REQUIRE(second_of_relu6.defined());
  CHECK(second_of_relu6.dense().to_vector() == std::vector<double>(5, 0));
}

TEST_CASE("activations far from 0", "[nn]") {
  const Tensor x = tensor({-kInf, -1e30, -800.0, 800.0, kInf}, DType::f64);
  CHECK(elu(x).to_vector() == std::vector<double>{-1, -1, -1, 800, kInf});
  CHECK(worst(selu(slice(x, {0}, {4})), tensor({-1.7580993408473766, -1.7580993408473766, -1.7580993408473766,
                                                800 * 1.0507009873554805},
                                               DType::f64)) < 1e-12);
  CHECK(worst(silu(slice(x, {1}, {3})), tensor({0.0, 0.0, 800.0}, DType::f64)) < 1e-300);
  CHECK(worst(gelu(slice(x, {2}, {2}), Gelu::tanh), tensor({0.0, 800.0}, DType::f64)) < 1e-12);
  CHECK(worst(softsign(slice(x, {1}, {3})), tensor({-1.0, -800.0 / 801, 800.0 / 801}, DType::f64)) < 1e-15);
  CHECK(relu6(x).to_vector() == std::vector<double>{0, 0, 0, 6, 6});
  for (const auto& f :
       {+[](Operand t) { return relu6(t); }, +[](Operand t) { return elu(t); },
        +[](Operand t) { return selu(t); }, +[](Operand t) { return silu(t); },
        +[](Operand t) { return softsign(t); }, +[](Operand t) { return gelu(t, Gelu::tanh); }})
    CHECK(std::isnan(f(tensor(kNaN, DType::f64)).item()));
}

TEST_CASE("gelu is x times the normal distribution", "[nn]") {
  const Tensor x = tensor({-10.0, -1.5, -0.25, 0.0, 0.5, 2.0}, DType::f64);
  // torch.nn.functional.gelu; at -10 mpmath's -10 · ncdf(-10)
  const Tensor expected = tensor({-7.619853024160526e-23, -0.10021080190328704, -0.10032341857926907, 0.0,
                                  0.34573123063700656, 1.9544997361036416},
                                 DType::f64);
  CHECK(worst(gelu(x) / where(equal(x, 0), 1, expected), tensor({1.0, 1.0, 1.0, 0.0, 1.0, 1.0}, DType::f64)) <
        1e-13);
  CHECK(worst(gelu(x * 1), gelu(x)) == 0);
  CHECK(worst(gelu(x, Gelu::tanh), expected) < 1e-3);
  CHECK(gelu(2.0).item() == Approx(1.9544997361036416));
}

TEST_CASE("selu keeps the mean and the variance of standard normal numbers", "[nn]") {
  const Tensor y = selu(random::normal({400'000}, {5}, DType::f64));
  CHECK(std::abs(mean(y).item()) < 0.01);
  CHECK(std::abs(mean(square(y)).item() - 1) < 0.01);
}

TEST_CASE("sigmoid_cross_entropy neither overflows nor hides NaN", "[nn]") {
  const std::vector<double> y =
      sigmoid_cross_entropy(tensor({0.0, 1.0, 1.0, 0.0, 0.0}, DType::f64),
                            tensor({1000.0, -1000.0, 1000.0, -1000.0, kNaN}, DType::f64))
          .to_vector();
  CHECK((y[0] == 1000 && y[1] == 1000 && y[2] == 0 && y[3] == 0 && std::isnan(y[4])));
}

TEST_CASE("mean_squared_error and huber_loss are means of rows", "[nn]") {
  const Tensor labels = tensor({{0.0, 1.0, 2.0}, {0.0, 0.0, 0.0}}, DType::f64),
               predictions = tensor({{0.0, 3.0, 1.0}, {3.0, -3.0, 0.5}}, DType::f64);
  CHECK(worst(mean_squared_error(labels, predictions), tensor({5.0 / 3, 18.25 / 3}, DType::f64)) < 1e-15);
  // Rows of the errors e: 0 2 -1 and 3 -3 1/2. For delta 1 the loss is e²/2 up to |e| = 1, then |e| - 1/2.
  CHECK(worst(huber_loss(labels, predictions), tensor({2.0 / 3, 5.125 / 3}, DType::f64)) < 1e-15);
  CHECK(worst(huber_loss(labels, predictions, 2), tensor({2.5 / 3, 8.125 / 3}, DType::f64)) < 1e-15);
  GradientTape tape;
  tape.watch(predictions);
  CHECK(worst(tape.gradient(huber_loss(labels, predictions), predictions).dense() * 3,
              tensor({{0.0, 1.0, -1.0}, {1.0, -1.0, 0.5}}, DType::f64)) < 1e-15);
  CHECK(huber_loss(labels, astype(predictions, DType::f32)).dtype() == DType::f64);
  CHECK_THROWS_WITH(
      mean_squared_error(tensor(1.0), 2),
      "mean_squared_error: labels and predictions are of rank 0; the mean is along their last axis");
  CHECK_THROWS_WITH(huber_loss(labels, predictions, 0), "huber_loss: delta is 0; use a positive one");
  CHECK_THROWS_AS(huber_loss(labels, predictions, kNaN), ArgumentError);
  CHECK_THROWS_WITH(
      huber_loss(labels, zeros({2}, DType::f64)),
      "huber_loss: labels and predictions do not have one shape: labels is f64[2,3], predictions is f64[2]; "
      "reshape one of them");
}

TEST_CASE("dropout leaves out a share of the elements and scales the others", "[nn]") {
  const Tensor x = samples::uniform({200, 500}, 1, 2);
  GradientTape tape;
  tape.watch(x);
  const Tensor y = dropout(x, 0.25, {3}), kept = astype(y > 0, DType::f64);
  CHECK(std::abs(mean(kept).item() - 0.75) < 0.01);
  CHECK(worst(y, kept * x / 0.75) < 1e-15);
  CHECK(worst(tape.gradient(y, x).dense(), kept / 0.75) < 1e-15);
  CHECK(same_bits(dropout(x, 0.25, {3}), y));
  CHECK_FALSE(same_bits(dropout(x, 0.25, {4}), y));
  CHECK(worst(dropout(x, 0, {3}), x) == 0);
  CHECK_THROWS_WITH(dropout(x, 1, {3}), "dropout: rate is 1; use 0 or more and less than 1");
  CHECK_THROWS_AS(dropout(x, -0.5, {3}), ArgumentError);
  CHECK_THROWS_WITH(dropout(tensor({1, 2}), 0.5, {3}),
                    "dropout: takes f32, f64, f16 or bf16, use astype: x is i32[2]");
}

TEST_CASE("activations with a number reject integers", "[nn]") {
  CHECK_THROWS_WITH(leaky_relu(tensor({1, 2})),
                    "leaky_relu: takes f32, f64, f16 or bf16, use astype: x is i32[2]");
  CHECK_THROWS_WITH(silu(tensor({1, 2}), 2), "silu: takes f32, f64, f16 or bf16, use astype: x is i32[2]");
  CHECK_THROWS_AS(silu(ones({2}, DType::boolean)), DTypeError);
  CHECK_THROWS_AS(leaky_relu(ones({2}, DType::c64)), DTypeError);
  CHECK(leaky_relu(tensor({-1, 2}), tensor({0.5, 0.5})).to_vector() == std::vector<double>{-0.5, 2});
}

}   // namespace activations_test
