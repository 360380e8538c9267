// Initializers: bounds and variances from the papers' formulas, and which ones layers use.
#include <catch2/catch.hpp>
#include <cmath>

#include "closeness.h"
#include "tapedeck/nn.h"
#include "tapedeck/tapedeck.h"

namespace initializers_test {

using namespace tapedeck;

namespace init = tapedeck::nn::initializers;

namespace {

constexpr random::Key kKey{.seed = 1};

double largest(const Tensor& x) { return max(abs(x)).item(); }
double deviation(const Tensor& x) { return stddev(x).item(); }

}   // namespace

TEST_CASE("initializers have their bounds and deviations") {
  const Shape kernel{3, 3, 40, 60};   // fans 360 and 540
  const auto make = [&](const nn::Initializer& i) { return i(kernel, kKey, DType::f64); };
  // 21,600 numbers: a largest one comes within 0.1 % of the bound, a deviation within 2 %.
  const auto is_uniform = [&](const nn::Initializer& i, double limit) {
    CHECK(largest(make(i)) == Approx(limit).epsilon(1e-3));
    CHECK(largest(make(i)) <= limit);
    CHECK(deviation(make(i)) == Approx(limit / std::sqrt(3)).epsilon(0.02));
  };
  const auto is_normal = [&](const nn::Initializer& i, double variance) {
    CHECK(deviation(make(i)) == Approx(std::sqrt(variance)).epsilon(0.02));
    CHECK(largest(make(i)) <= 2 * std::sqrt(variance) / 0.8796);   // truncated
  };
  is_uniform(init::glorot_uniform(), std::sqrt(6.0 / 900));
  is_uniform(init::he_uniform(), std::sqrt(6.0 / 360));
  is_uniform(init::lecun_uniform(), std::sqrt(3.0 / 360));
  is_uniform(init::uniform(), 0.05);
  is_normal(init::glorot_normal(), 2.0 / 900);
  is_normal(init::he_normal(), 2.0 / 360);
  is_normal(init::lecun_normal(), 1.0 / 360);
  CHECK(deviation(make(init::normal(2, 5))) == Approx(2).epsilon(0.02));
  CHECK(mean(make(init::normal(2, 5))).item() == Approx(5).epsilon(0.02));
  CHECK(largest(make(init::truncated_normal(0.5))) <= 1);
  CHECK(same_bits(make(init::constant(3)), full(kernel, 3, DType::f64)));
  CHECK(same_bits(make(init::ones()), ones(kernel, DType::f64)));
  CHECK(same_bits(init::zeros()({2}, kKey, DType::f32), zeros({2})));
}

TEST_CASE("orthogonal kernels have orthonormal columns or rows") {
  const Tensor tall = init::orthogonal(2)({3, 4, 5}, kKey, DType::f64);
  const Tensor columns = reshape(tall, {12, 5});
  CHECK(worst(matmul(columns, columns, {.transpose_a = true}), 4 * eye(5, DType::f64)) < 1e-14);
  const Tensor wide = init::orthogonal()({2, 5}, kKey, DType::f64);
  CHECK(worst(matmul(wide, wide, {.transpose_b = true}), eye(2, DType::f64)) < 1e-14);
  CHECK_THROWS_WITH(init::orthogonal()({3}, kKey, DType::f32),
                    "orthogonal: the shape [3] has rank 1; use 2 or more");
  CHECK(worst(init::identity(3)({2, 3}, kKey, DType::f32), 3 * eye(2, 3)) == 0);
  CHECK_THROWS_WITH(init::identity()({2, 2, 2}, kKey, DType::f32),
                    "identity: the shape [2,2,2] must have rank 2");
}

TEST_CASE("initializers reject invalid numbers") {
  CHECK_THROWS_WITH(init::uniform(1, 1),
                    "uniform: low must be less than high, and high - low finite: low is 1, high is 1");
  CHECK_THROWS_WITH(init::normal(INFINITY), "normal: inf and 0 are not both finite");
}

TEST_CASE("layers begin as in Keras or in PyTorch") {
  const nn::LayerOptions pytorch{.defaults = nn::Defaults::pytorch};
  const nn::Dense keras_dense(50, 80, kKey), torch_dense(50, 80, kKey, pytorch);
  CHECK(largest(keras_dense.kernel) == Approx(std::sqrt(6.0 / 130)).epsilon(0.01));
  CHECK(largest(*keras_dense.bias) == 0);
  CHECK(largest(torch_dense.kernel) == Approx(1 / std::sqrt(50)).epsilon(0.01));
  CHECK(largest(*torch_dense.bias) == Approx(1 / std::sqrt(50)).epsilon(0.1));
  const nn::Conv2d torch_conv(6, 20, 5, kKey,
                              {.groups = 2, .defaults = nn::Defaults::pytorch});   // fan_in 75
  CHECK(largest(torch_conv.kernel) == Approx(1 / std::sqrt(75)).epsilon(0.01));

  const nn::Embedding keras_table(100, 50, kKey), torch_table(100, 50, kKey, pytorch);
  CHECK(largest(keras_table.table) == Approx(0.05).epsilon(0.01));
  CHECK(deviation(torch_table.table) == Approx(1).epsilon(0.05));

  const nn::Lstm keras_lstm(10, 30, kKey), torch_lstm(10, 30, kKey, pytorch);
  const Tensor recurrent = slice(keras_lstm.kernel, {10, 0}, {30, 120});
  CHECK(worst(matmul(recurrent, recurrent, {.transpose_b = true}), eye(30)) < 1e-5);
  const nn::Lstm even(4, 4, kKey, pytorch);   // both parts of its kernel have one shape and one initializer
  CHECK(max(abs(slice(even.kernel, {0, 0}, {4, 16}) - slice(even.kernel, {4, 0}, {4, 16}))).item() > 0.1);
  CHECK(keras_lstm.forget_bias == 1);
  CHECK(torch_lstm.forget_bias == 0);
  CHECK(largest(torch_lstm.kernel) == Approx(1 / std::sqrt(30)).epsilon(0.01));
  const nn::Gru torch_gru(10, 30, kKey, pytorch);
  CHECK(largest(torch_gru.kernel) == Approx(1 / std::sqrt(30)).epsilon(0.01));

  const nn::MultiHeadAttention torch_heads(64, 4, kKey, {.defaults = nn::Defaults::pytorch});
  CHECK(largest(torch_heads.query.kernel) == Approx(std::sqrt(6.0 / 128)).epsilon(0.01));
  CHECK(largest(*torch_heads.query.bias) == 0);
  CHECK_FALSE(same_bits(torch_heads.query.kernel, torch_heads.key.kernel));

  const nn::Dense given(2, 3, kKey, {.use_bias = false, .kernel = init::ones(), .dtype = DType::f64});
  CHECK(same_bits(given.kernel, ones({2, 3}, DType::f64)));
  CHECK_FALSE(given.bias);
}

}   // namespace initializers_test
