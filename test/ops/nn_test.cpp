// Softmax and cross-entropy: closed forms, any axis, extreme values, labels, and the same bits for any number
// of threads. The op table test covers derivatives.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>

#include "closeness.h"
#include "ops/sample_inputs.h"
#include "tapedeck/tapedeck.h"

namespace nn_test {

using namespace tapedeck;

namespace {

const double kNaN = std::numeric_limits<double>::quiet_NaN(), kInf = std::numeric_limits<double>::infinity();

}   // namespace

TEST_CASE("softmax of rows of every length agrees with its definition", "[nn]") {
  for (const std::int64_t n : {1, 2, 7, 8, 10, 16, 17, 37, 1000}) {
    INFO("rows of " << n);
    const Tensor x = samples::uniform({5, n}, -4, 4);
    const Tensor e = exp(x), total = sum(e, -1, {.keepdims = true});
    CHECK(worst(softmax(x), e / total) < 1e-15);
    CHECK(worst(log_softmax(x), x - log(total)) < 2e-14);
    CHECK(worst(softmax(astype(x, DType::f32)), e / total) < 2e-7);
    CHECK(worst(log_softmax(astype(x, DType::f32)), x - log(total)) < 2e-6);
    const Tensor labels = astype(arange(5) * 0 + (n - 1), DType::i32);
    CHECK(worst(sparse_softmax_cross_entropy(labels, x),
                log(reshape(total, {5})) - reshape(slice(x, {0, n - 1}, {5, 1}), {5})) < 2e-14);
  }
}

TEST_CASE("softmax along any axis", "[nn]") {
  const Tensor x = samples::uniform({3, 4, 5}, -4, 4), e = exp(x);
  for (const int axis : {0, 1, 2, -1, -2, -3}) {
    CHECK(worst(softmax(x, axis), e / sum(e, axis, {.keepdims = true})) < 1e-15);
    CHECK(worst(log_softmax(x, axis), log(e / sum(e, axis, {.keepdims = true}))) < 1e-14);
  }
  CHECK(softmax(zeros({0, 3})).shape() == Shape{0, 3});
  CHECK(softmax(zeros({3, 0})).shape() == Shape{3, 0});
}

TEST_CASE("softmax neither overflows nor hides NaN", "[nn]") {
  const Tensor x = tensor({{1000.0, 1001.0}, {-1000.0, 0.0}, {-1e30, -1e30}}, DType::f64);
  // 1 / (1 + e) and its complement.
  CHECK(worst(softmax(x), samples::f64({{0.2689414213699951, 0.7310585786300049}, {0, 1}, {0.5, 0.5}})) <
        1e-15);
  CHECK(worst(log_softmax(x), samples::f64({{-1.3132616875182228, -0.31326168751822286},
                                            {-1000, 0},
                                            {-std::log(2.0), -std::log(2.0)}})) < 1e-12);

  const Tensor odd =
      tensor({{-kInf, 0.0, 0.0}, {-kInf, -kInf, -kInf}, {kNaN, 0.0, 1.0}, {0.0, 0.0, 0.0}}, DType::f64);
  const std::vector<double> y = softmax(odd).to_vector(), l = log_softmax(odd).to_vector();
  CHECK((y[0] == 0 && y[1] == 0.5 && y[2] == 0.5));
  CHECK(l[0] == -kInf);
  for (std::size_t i = 3; i < 9; ++i)
    CHECK((std::isnan(y[i]) && std::isnan(l[i])));
  CHECK(y[9] == Approx(1.0 / 3));
}

TEST_CASE("the gradient of the cross-entropy is softmax minus one-hot", "[nn]") {
  const Tensor logits = samples::uniform({4, 10}, -2, 2), labels = tensor({3, 0, 9, 3}, DType::i64);
  GradientTape tape;
  tape.watch(logits);
  const Tensor loss = mean(sparse_softmax_cross_entropy(labels, logits));
  const Tensor expected = (softmax(logits) - one_hot(labels, 10, DType::f64)) / 4;
  CHECK(worst(tape.gradient(loss, logits).dense(), expected) < 1e-16);
}

TEST_CASE("relu", "[nn]") {
  const Tensor x = tensor({-2.0, 0.0, 3.0, -kInf, kInf}, DType::f64);
  GradientTape tape;
  tape.watch(x);
  const Tensor y = relu(x);
  CHECK(y.to_vector() == std::vector<double>{0, 0, 3, 0, kInf});
  CHECK(tape.gradient(y, x).dense().to_vector() == std::vector<double>{0, 0, 1, 0, 1});
  CHECK(std::isnan(relu(tensor(kNaN, DType::f64)).item()));
}

TEST_CASE("leaky_relu scales negative numbers", "[nn]") {
  const Tensor x = tensor({-2.0, 0.0, 3.0, -kInf, kInf}, DType::f64), alpha = tensor(0.5, DType::f64);
  GradientTape tape({.persistent = true});
  tape.watch(x), tape.watch(alpha);
  const Tensor y = leaky_relu(x), z = leaky_relu(tensor({-2.0, 3.0}, DType::f64), alpha);
  CHECK(y.to_vector() == std::vector<double>{-0.4, 0, 3, -kInf, kInf});
  CHECK(tape.gradient(y, x).dense().to_vector() == std::vector<double>{0.2, 0.2, 1, 0.2, 1});
  CHECK(z.to_vector() == std::vector<double>{-1, 3});
  CHECK(tape.gradient(z, alpha).dense().item() == -2);
  CHECK(leaky_relu(tensor({-1.0f}), 0.1).dtype() == DType::f32);
  CHECK(std::isnan(leaky_relu(tensor(kNaN, DType::f64)).item()));
}

TEST_CASE("softplus neither overflows nor loses small results", "[nn]") {
  const Tensor x = tensor({-kInf, -740.0, -40.0, 0.0, 40.0, 1000.0, kInf}, DType::f64);
  GradientTape tape({.persistent = true});
  tape.watch(x);
  const Tensor y = softplus(x), dx = tape.gradient(y, x).dense();
  CHECK(worst(slice(y, {0}, {6}),
              tensor({0.0, std::exp(-740.0), std::exp(-40.0), std::log(2.0), 40.0, 1000.0}, DType::f64)) <
        1e-17);
  CHECK(y.at({6}) == kInf);
  CHECK(dx.at({1}) == std::exp(-740.0));
  CHECK(worst(dx, sigmoid(x)) == 0);
  CHECK(worst(tape.gradient(dx, x).dense(),
              tensor({0.0, std::exp(-740.0), std::exp(-40.0), 0.25, 0.0, 0.0, 0.0}, DType::f64)) < 1e-16);
  CHECK(std::isnan(softplus(tensor(kNaN, DType::f64)).item()));
}

TEST_CASE("bias_add adds a row to the last axis", "[nn]") {
  const Tensor x = samples::uniform({2, 3, 4}, -1, 1), bias = samples::uniform({4}, -1, 1, 1);
  GradientTape tape;
  tape.watch(x), tape.watch(bias);
  const Tensor y = bias_add(x, bias);
  CHECK(worst(y, x + broadcast_to(bias, {2, 3, 4})) == 0);
  const auto [dx, db] = tape.gradient(y, x, bias);
  CHECK(worst(dx.dense(), ones({2, 3, 4})) == 0);
  CHECK(db.dense().to_vector() == std::vector<double>(4, 6));
  CHECK_THROWS_WITH(
      bias_add(x, zeros({3})),
      "bias_add: bias must be a vector as long as the last axis of x: x is f64[2,3,4], bias is f32[3]");
  for (const DType dtype : {DType::f16, DType::f32, DType::f64, DType::c64, DType::c128, DType::i64})
    CHECK(bias_add(ones({2, 3}, dtype), ones({3}, dtype)).spec() == Spec{dtype, {2, 3}});
  CHECK_THROWS_AS(bias_add(x, zeros({1})), ShapeError);
  CHECK_THROWS_AS(bias_add(x, zeros({3, 4})), ShapeError);
  CHECK_THROWS_AS(bias_add(tensor(1.0), zeros({1})), ShapeError);
}

TEST_CASE("softmax_cross_entropy of dense labels", "[nn]") {
  for (const std::int64_t n : {1, 2, 7, 8, 10, 16, 17, 37, 1000}) {
    INFO("rows of " << n);
    const Tensor logits = samples::uniform({5, n}, -4, 4), labels = samples::uniform({5, n}, -1, 1, 1);
    const Tensor expected = -sum(labels * log_softmax(logits), -1);
    const double scale = static_cast<double>(n);
    CHECK(worst(softmax_cross_entropy(labels, logits), expected) < 1e-14 * scale);
    CHECK(worst(softmax_cross_entropy(astype(labels, DType::f32), astype(logits, DType::f32)), expected) <
          1e-5 * scale);
    // One-hot labels give the same as the sparse op.
    const Tensor classes = astype(arange(5) * 0 + (n - 1), DType::i64);
    CHECK(worst(softmax_cross_entropy(one_hot(classes, n, DType::f64), logits),
                sparse_softmax_cross_entropy(classes, logits)) < 1e-13);
  }
  const Tensor logits = samples::uniform({4, 10}, -2, 2),
               labels = softmax(samples::uniform({4, 10}, -2, 2, 1));
  GradientTape tape;
  tape.watch(logits), tape.watch(labels);
  const auto [of_labels, of_logits] = tape.gradient(softmax_cross_entropy(labels, logits), labels, logits);
  CHECK(worst(of_labels.dense(), -log_softmax(logits)) == 0);
  CHECK(worst(of_logits.dense(), softmax(logits) - labels) < 1e-15);
}

TEST_CASE("softmax_cross_entropy neither overflows nor hides NaN", "[nn]") {
  const Tensor logits = tensor({{1000.0, 0.0}, {-1000.0, 0.0}, {kNaN, 0.0}, {0.0, 0.0}}, DType::f64);
  const Tensor labels = tensor({{0.0, 1.0}, {1.0, 0.0}, {0.0, 1.0}, {kNaN, 0.0}}, DType::f64);
  const std::vector<double> y = softmax_cross_entropy(labels, logits).to_vector();
  CHECK((y[0] == 1000 && y[1] == 1000 && std::isnan(y[2]) && std::isnan(y[3])));
  CHECK(softmax_cross_entropy(zeros({3, 0}), zeros({3, 0})).to_vector() == std::vector<double>(3, 0));
}

TEST_CASE("softmax does not depend on the number of threads", "[nn]") {
  const Tensor x = astype(samples::uniform({3000, 101}, -4, 4), DType::f32),
               labels = full({3000}, 7, DType::i64);
  const int before = num_threads();
  const auto all = [&](int threads) {
    set_num_threads(threads);
    return std::vector<Tensor>{softmax(x), log_softmax(x), sparse_softmax_cross_entropy(labels, x),
                               softmax(x, 0), softmax_cross_entropy(softmax(x), x)};
  };
  const std::vector<Tensor> one = all(1), two = all(2);
  set_num_threads(before);
  for (std::size_t i = 0; i < one.size(); ++i)
    CHECK(same_bits(one[i], two[i]));
}

TEST_CASE("softmax and cross-entropy reject invalid arguments", "[nn][errors]") {
  const Tensor logits = zeros({2, 3});
  CHECK_THROWS_WITH(softmax(logits, 2), "softmax: axis 2 is out of range for x of rank 2; use -2..1");
  CHECK_THROWS_WITH(softmax(tensor({1, 2})), "softmax: takes f32, f64, f16 or bf16, use astype: x is i32[2]");
  CHECK_THROWS_AS(softmax(tensor(1.0)), ShapeError);
  CHECK_THROWS_WITH(sparse_softmax_cross_entropy(tensor({0, 3}), logits),
                    "sparse_softmax_cross_entropy: label 3 at [1] is out of range for 3 classes: labels is "
                    "i32[2], logits is f32[2,3]");
  CHECK_THROWS_WITH(sparse_softmax_cross_entropy(tensor({{0, 1}, {2, -1}}, DType::i64), zeros({2, 2, 3})),
                    "sparse_softmax_cross_entropy: label -1 at [1,1] is out of range for 3 classes: labels "
                    "is i64[2,2], logits is f32[2,2,3]");
  CHECK_THROWS_WITH(sparse_softmax_cross_entropy(tensor({0}), logits),
                    "sparse_softmax_cross_entropy: labels do not have the shape of logits without its last "
                    "axis: labels is i32[1], logits is f32[2,3]; reshape one of them");
  CHECK_THROWS_AS(sparse_softmax_cross_entropy(tensor({0.0, 1.0}), logits), DTypeError);
  CHECK_THROWS_WITH(softmax_cross_entropy(zeros({3}), logits),
                    "softmax_cross_entropy: labels and logits do not have one shape of rank 1 or more: "
                    "labels is f32[3], logits is f32[2,3]; reshape one of them");
  CHECK_THROWS_WITH(softmax_cross_entropy(zeros({2, 3}, DType::f64), logits),
                    "softmax_cross_entropy: dtypes differ: labels is f64[2,3], logits is f32[2,3]");
  CHECK_THROWS_AS(softmax_cross_entropy(tensor(1.0), tensor(1.0)), ShapeError);
  CHECK_THROWS_AS(softmax_cross_entropy(tensor({1}), tensor({1})), DTypeError);
}

}   // namespace nn_test
