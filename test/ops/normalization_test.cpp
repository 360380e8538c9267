// Normalisation: its case in test/data/cases.json, closed forms, large offsets, and errors. The op table test
// covers derivatives.
#include <catch2/catch.hpp>
#include <cmath>

#include "case.h"
#include "closeness.h"
#include "ops/sample_inputs.h"

namespace normalization_test {

using namespace tapedeck;
using namespace tapedeck::test;

TEST_CASE("cases: fused batch normalisation", "[cases][norm]") {
  check_case("op-fused-batchnorm-training", DType::f64, [&](Case& c) {
    const Tensor rows = c.input("x"), x = reshape(rows, {4, 1, 1, 2}), scale = c.input("scale"),
                 offset = c.input("offset");
    GradientTape tape;
    tape.watch(x), tape.watch(scale), tape.watch(offset);
    const Tensor y = batch_norm(x, scale, offset).y;
    const std::vector<Gradient> g =
        tape.gradient(Targets(y), Sources({x, scale, offset}),
                      {.output_gradients = {reshape(arange(1, 9, 1, DType::f64), {4, 1, 1, 2})}});
    c.check("grads", std::vector<Tensor>{reshape(g[0].dense(), {4, 2}), g[1].dense(), g[2].dense()});
  });
}

TEST_CASE("layer_norm gives rows of mean 0 and variance 1", "[norm]") {
  for (const std::int64_t n : {1, 2, 7, 16, 37, 64, 65, 1000}) {
    INFO("rows of " << n);
    const Tensor x = samples::uniform({5, n}, -4, 4),
                 y = layer_norm(x, ones({n}, DType::f64), zeros({n}, DType::f64), 0);
    if (n == 1) continue;   // variance 0
    CHECK(worst(mean(y, -1), zeros({5})) < 1e-14);
    CHECK(worst(mean(square(y), -1), ones({5})) < 1e-13);
    const Tensor centred = x - mean(x, -1, {.keepdims = true}),
                 expected = centred / sqrt(mean(square(centred), -1, {.keepdims = true}));
    CHECK(worst(y, expected) < 1e-14);
    CHECK(worst(layer_norm(astype(x, DType::f32), ones({n}), zeros({n}), 0), expected) < 1e-5);
  }
  // A large mean does not destroy the precision of the variance.
  const Tensor x = samples::uniform({3, 100}, -1, 1), one = ones({100}, DType::f64),
               zero = zeros({100}, DType::f64);
  CHECK(worst(layer_norm(x + 1e6, one, zero), layer_norm(x, one, zero)) < 1e-8);
  CHECK(std::isnan(layer_norm(tensor({1.0, std::nan(""), 2.0}), ones({3}), zeros({3})).at({0})));
}

TEST_CASE("batch_norm has the batch's moments, and inference uses given ones", "[norm]") {
  const Tensor x = samples::uniform({4, 3, 2, 5}, -1, 3), scale = samples::uniform({5}, 0.5, 2, 1),
               offset = samples::uniform({5}, -1, 1, 2);
  const auto [y, mean_of_batch, variance, saved_mean, saved_variance] = batch_norm(x, scale, offset);
  CHECK(worst(mean_of_batch, mean(x, {0, 1, 2})) < 1e-15);
  CHECK(worst(saved_mean, mean_of_batch) == 0);
  CHECK(saved_mean.id() != mean_of_batch.id());
  CHECK(worst(saved_variance, mean(square(x - mean_of_batch), {0, 1, 2})) < 1e-14);
  CHECK(worst(variance, saved_variance * (24.0 / 23)) < 1e-14);
  CHECK(worst(batch_norm_inference(x, scale, offset, mean_of_batch, saved_variance), y) < 1e-13);
  // Unused outputs get no gradient; the others are ordinary functions of x.
  GradientTape tape;
  tape.watch(x), tape.watch(scale);
  const BatchNorm again = batch_norm(x, scale, offset);
  const auto [dx, dscale] = tape.gradient(again.mean, x, scale);
  CHECK(worst(dx.dense(), full_like(x, 1.0 / 24)) < 1e-15);
  CHECK_FALSE(dscale.defined());
}

TEST_CASE("local_response_normalization reads only near channels", "[norm]") {
  const Tensor x = tensor({{1.0, 2.0, 3.0, 4.0}}, DType::f64);
  const std::vector<double> y =
      local_response_normalization(x, {.radius = 1, .bias = 1, .alpha = 1, .beta = 1}).to_vector();
  CHECK(y[0] == Approx(1.0 / 6));    // 1 + 1 + 4
  CHECK(y[1] == Approx(2.0 / 15));   // 1 + 1 + 4 + 9
  CHECK(y[3] == Approx(4.0 / 26));
  CHECK(worst(local_response_normalization(x, {.radius = 0, .bias = 0, .beta = 0.5}), ones({1, 4})) < 1e-15);
}

TEST_CASE("normalisation rejects invalid arguments", "[norm][errors]") {
  const Tensor x = zeros({2, 3});
  CHECK_THROWS_WITH(layer_norm(x, ones({2}), zeros({3})),
                    "layer_norm: scale must be a vector as long as the last axis of x: x is f32[2,3], scale "
                    "is f32[2], offset is f32[3]");
  CHECK_THROWS_WITH(layer_norm(x, ones({3}), zeros({3}, DType::f64)),
                    "layer_norm: dtypes differ: x is f32[2,3], scale is f32[3], offset is f64[3]");
  CHECK_THROWS_WITH(layer_norm(tensor(1.0), ones({3}), zeros({3})),
                    "layer_norm: x needs rank 1 or more: x is f32[], scale is f32[3], offset is f32[3]");
  CHECK_THROWS_WITH(layer_norm(x, ones({3}), zeros({3}), -1), "layer_norm: epsilon is -1; use 0 or more");
  CHECK_THROWS_AS(layer_norm(tensor({1, 2}), ones({2}), zeros({2})), DTypeError);
  CHECK_THROWS_WITH(
      batch_norm(zeros({0, 3}), ones({3}), zeros({3})),
      "batch_norm: no elements to take the mean of: x is f32[0,3], scale is f32[3], offset is f32[3]");
  CHECK_THROWS_AS(batch_norm(x, ones({2, 3}), zeros({3})), ShapeError);
  CHECK_THROWS_WITH(batch_norm_inference(x, ones({3}), zeros({3}), zeros({3}), ones({2})),
                    "batch_norm_inference: scale, offset, mean and variance must be vectors as long "
                    "as the last axis of x: x is f32[2,3], they are f32[3], f32[3], f32[3] and f32[2]");
  const auto infer = [](DType of_x, DType of_scale, DType of_mean, DType of_variance) {
    return batch_norm_inference(ones({2, 3}, of_x), ones({3}, of_scale), zeros({3}, of_scale),
                                zeros({3}, of_mean), ones({3}, of_variance));
  };
  for (const DType t : {DType::i32, DType::boolean, DType::c64})
    CHECK_THROWS_AS(infer(t, t, t, t), DTypeError);
  CHECK_THROWS_WITH(infer(DType::i32, DType::f32, DType::f32, DType::f32),
                    "batch_norm_inference: takes f32, f64, f16 or bf16, use astype: x is i32[2,3]");
  CHECK_THROWS_WITH(infer(DType::f32, DType::f32, DType::f32, DType::f64),
                    "batch_norm_inference: x is f32[2,3], scale, offset, mean and variance are f32[3], "
                    "f32[3], f32[3] and f64[3]; use one dtype, or mix only f32, f16 and bf16");
  CHECK_THROWS_AS(infer(DType::f32, DType::f64, DType::f32, DType::f32), DTypeError);
  CHECK_THROWS_AS(infer(DType::f16, DType::f16, DType::f64, DType::f32), DTypeError);
  for (const DType of_x : {DType::f16, DType::f32})
    for (const DType scale : {DType::f16, DType::f32})
      for (const DType moments : {DType::f16, DType::f32}) {
        const Tensor y = infer(of_x, scale, moments, moments);
        CHECK(y.dtype() == of_x);
        CHECK(worst(astype(y, DType::f64), full({2, 3}, 1 / std::sqrt(1.001), DType::f64)) < 1e-3);
      }
  CHECK_THROWS_WITH(local_response_normalization(x, {.radius = -1}),
                    "local_response_normalization: radius is -1; use 0 or more");
  CHECK_THROWS_AS(local_response_normalization(tensor(1.0)), ShapeError);
}

TEST_CASE("batch_norm of many rows agrees with its formula, even if means drift", "[norm]") {
  const std::int64_t rows = 20'000, n = 7;
  const Tensor x = samples::uniform({rows, n}, -1, 1) +
                   reshape(arange(0, 5, 5.0 / rows, DType::f64), {rows, 1}),
               scale = samples::uniform({n}, 0.5, 2, 1);
  const Tensor offset = samples::uniform({n}, -1, 1, 2), dy = samples::uniform({rows, n}, -1, 1, 3) + x;
  const auto gradients = [&](const auto& f) {
    GradientTape tape;
    tape.watch(x), tape.watch(scale), tape.watch(offset);
    const Tensor y = f();
    std::vector<Tensor> all = {y};
    for (const Gradient& g : tape.gradient(Targets(y), Sources{x, scale, offset}, {.output_gradients = {dy}}))
      all.push_back(g.dense());
    return all;
  };
  const std::vector<Tensor> of_op = gradients([&] { return batch_norm(x, scale, offset, 1e-3).y; });
  const std::vector<Tensor> of_formula = gradients([&] {
    const Tensor centred = x - mean(x, 0);
    return centred * rsqrt(mean(square(centred), 0) + 1e-3) * scale + offset;
  });
  for (std::size_t i = 0; i < 4; ++i)
    CHECK(worst(of_op[i], of_formula[i]) < 1e-9);
}

TEST_CASE("batch_norm_inference of halves computes in f32", "[normalization]") {
  for (const DType t : {DType::f16, DType::bf16})
    for (const DType of_parameters : {t, DType::f32}) {
      const auto vector = [&](double v) { return full({1}, v, of_parameters); };
      const Tensor x = astype(tensor({{1000.0}, {1008.0}, {1016.0}}), t);
      const Tensor y = batch_norm_inference(x, vector(1), vector(0), vector(1008), vector(64), 1e-3);
      CHECK(y.dtype() == t);
      CHECK(max(abs(astype(y, DType::f32) - tensor({{-1.0f}, {0.0f}, {1.0f}}))).item() < 1e-2);
      const Tensor large = full({2, 1}, 2112, t);
      CHECK(
          max(abs(batch_norm_inference(large, vector(1), vector(0), vector(2112), vector(0), 1e-3))).item() ==
          0);
    }
}

}   // namespace normalization_test
