// Sizes at the ends of their ranges: extents that overflow when they are multiplied or added, tensors without
// elements but of huge extents, and options out of range. Expected values are by hand.
#include <catch2/catch.hpp>
#include <limits>

#include "message_of.h"
#include "tapedeck/tapedeck.h"
#include "values.h"

namespace sizes_test {

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max(),
                       kLeast = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t k30 = std::int64_t{1} << 30, k31 = std::int64_t{1} << 31, k62 = std::int64_t{1} << 62;

// The gradient of the sum of f(x).
template <class F> Tensor gradient_of(const F& f, const Tensor& x) {
  GradientTape tape;
  tape.watch(x);
  return tape.gradient(f(x), x).dense();
}

}   // namespace

TEST_CASE("triangles with diagonals far outside", "[sizes]") {
  const Tensor x = ones({5, 4});
  for (const std::int64_t k : {std::int64_t{4}, k31, kMost / 2, kMost}) {
    CHECK(triu(x, k).to_vector<float>() == std::vector<float>(20));
    CHECK(tril(x, k).to_vector<float>() == std::vector<float>(20, 1));
  }
  for (const std::int64_t k : {std::int64_t{-5}, -k31, kLeast / 2, kLeast}) {
    CHECK(triu(x, k).to_vector<float>() == std::vector<float>(20, 1));
    CHECK(tril(x, k).to_vector<float>() == std::vector<float>(20));
  }
  CHECK(band_part(x, kMost, kMost).to_vector<float>() == std::vector<float>(20, 1));
  CHECK(band_part(x, kLeast, kLeast).to_vector<float>() == std::vector<float>(20, 1));
}

TEST_CASE("images without elements take constant time", "[sizes]") {
  CHECK(max_pool3d(zeros({1, 2, 0, 2, 1}), {.window = 1, .padding = Padding::same}).shape() ==
        Shape{1, 2, 0, 2, 1});
  CHECK(max_pool2d(zeros({0, k30, 1, 1}), {.window = 1}).shape() == Shape{0, k30, 1, 1});
  CHECK(avg_pool1d(zeros({0, k30, 1}), {.window = 2}).shape() == Shape{0, k30 / 2, 1});
  CHECK(max_pool_with_argmax(zeros({0, k30, 1, 1}), {.window = 1}).position.spec() ==
        Spec{DType::i64, {0, k30, 1, 1}});
  CHECK_THROWS_AS(max_pool2d(zeros({0, 4, 4, 1}, DType::i32), {.window = 1}), DTypeError);
  CHECK(fractional_max_pool(zeros({k62, 3, 3, 0}), {.height_ratio = 3, .width_ratio = 3}, {.seed = 1})
            .y.shape() == Shape{k62, 1, 1, 0});
  CHECK_THROWS_WITH(fractional_max_pool(zeros({std::numeric_limits<std::int64_t>::max(), 2, 0}),
                                        {.height_ratio = 1, .width_ratio = 1}, {.seed = 1}),
                    "fractional_max_pool: more than 2^31 regions are too many: an axis has extent "
                    "9223372036854775807, its ratio is 1");
  CHECK(gradient_of(
            [](const Tensor& x) {
              return fractional_avg_pool(x, {1.6, 1.4}, {.seed = 1}).y;
            },
            zeros({k62, 3, 2, 0}))
            .shape() == Shape{k62, 3, 2, 0});
  for (const auto f : {resize_nearest, resize_bilinear, resize_bicubic}) {
    CHECK(f(zeros({k62 / 2, k31, 0}), {2, 2}, Align::centres).shape() == Shape{2, 2, 0});
    CHECK(f(zeros({2, 2, 0}), {k30, k30}, Align::corners).shape() == Shape{k30, k30, 0});
    CHECK(gradient_of(
              [&](const Tensor& x) {
                return f(x, {k30, 3}, Align::edges);
              },
              zeros({k30, 2, 0}))
              .shape() == Shape{k30, 2, 0});
    CHECK_THROWS_AS(f(zeros({2, 2, 0}, DType::i32), {2, 2}, Align::centres), DTypeError);
  }
  CHECK(gradient_of(
            [](const Tensor& boxes) {
              return crop_and_resize(zeros({k62, k31, 1, 0}), boxes, zeros({3}, DType::i64), {4, 1});
            },
            zeros({3, 4}))
            .shape() == Shape{3, 4});
  CHECK(scale_and_translate(zeros({2, 2, 0}), {k30, k30}).shape() == Shape{k30, k30, 0});
  CHECK(crop_and_resize(zeros({1, 2, 2, 0}), zeros({1, 4}), zeros({1}, DType::i32), {k30, k30}).shape() ==
        Shape{1, k30, k30, 0});
  const Tensor identity = tensor({1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0});
  CHECK(projective_transform(zeros({1, 2, 2, 0}), identity, {k30, k30}).shape() == Shape{1, k30, k30, 0});
  CHECK(gradient_of(
            [&](const Tensor& x) {
              return projective_transform(x, identity, {k30, k30});
            },
            zeros({1, 2, 2, 0}))
            .shape() == Shape{1, 2, 2, 0});
}

TEST_CASE("matrices and sequences without elements take constant time", "[sizes]") {
  CHECK(cholesky(zeros({k62, 0, 0})).shape() == Shape{k62, 0, 0});
  CHECK(svdvals(zeros({k31, k31, 0, 2})).shape() == Shape{k31, k31, 0});
  CHECK(qr(zeros({k31, k31, 2, 0})).r.shape() == Shape{k31, k31, 0, 0});
  CHECK(lu(zeros({0, 0})).permutation.shape() == Shape{0});
  CHECK(triangular_solve(zeros({k62, 0, 0}), zeros({0, 1})).shape() == Shape{k62, 0, 1});
  CHECK(tridiagonal_matmul(zeros({k62, 3, 0}), zeros({k62, 0, 1})).shape() == Shape{k62, 0, 1});
  CHECK(tridiagonal_solve(zeros({3, 2}), zeros({k62, 2, 0})).shape() == Shape{k62, 2, 0});
  CHECK(mirror_pad(zeros({0, k62}), {0, 3}, {0, 4}).shape() == Shape{0, k62 + 7});
  CHECK_THROWS_AS(mirror_pad(zeros({0, kMost}), {0, 3}, {0, 4}), ShapeError);

  const Tensor weights = zeros({5, 12}), bias = zeros({12});
  const LstmState none{zeros({0, 3}), zeros({0, 3})};
  CHECK(block_lstm(zeros({k62, 0, 2}), none, weights, bias).h.shape() == Shape{k62, 0, 3});
  CHECK(gradient_of(
            [&](const Tensor& w) {
              return block_lstm(zeros({k62, 0, 2}), none, w, bias).h;
            },
            weights)
            .to_vector<float>() == std::vector<float>(60));
  CHECK_THROWS_AS(
      block_lstm(zeros({k62, k62, 0}), {zeros({k62, 0}), zeros({k62, 0})}, zeros({0, 0}), zeros({0})),
      ShapeError);
}

TEST_CASE("matrices without elements have any extents", "[sizes]") {
  const Tensor x = zeros({0, k31 - 1, k31 - 1});
  CHECK(inv(x).shape() == x.shape());
  CHECK(det(x).shape() == Shape{0});
  CHECK(slogdet(x).sign.shape() == Shape{0});
  CHECK(matrix_exponential(x).shape() == x.shape());
  CHECK(matrix_square_root(x).shape() == x.shape());
  CHECK(solve(x, zeros({0, k31 - 1, 3})).shape() == Shape{0, k31 - 1, 3});
}

TEST_CASE("the exponential of a matrix whose norm is infinite", "[sizes]") {
  const double infinity = std::numeric_limits<double>::infinity();   // (exp(2e308) + 1) / 2
  CHECK(matrix_exponential(full({2, 2}, 1e308, DType::f64)).to_vector<double>() ==
        std::vector<double>(4, infinity));
}

TEST_CASE("entries of tensors without elements are moved in constant time", "[sizes]") {
  for (const std::int64_t shift : {std::int64_t{1}, std::int64_t{-1}, k62, kMost, kLeast}) {
    CHECK(roll(zeros({kMost, 0}), shift, 0).shape() == Shape{kMost, 0});
    CHECK(roll(zeros({0, k62, k31}), shift, {1, 2}).shape() == Shape{0, k62, k31});
  }
  // -2⁶³ mod 5 = 2 and (2⁶³ - 1) mod 5 = 2.
  const std::vector<float> x = {0, 1, 2, 3, 4}, moved = {3, 4, 0, 1, 2};
  CHECK(roll(tensor(x), kLeast, 0).to_vector<float>() == moved);
  CHECK(roll(tensor(x), kMost, 0).to_vector<float>() == moved);
  CHECK(argmax(zeros({0, k31, k62}), 1).shape() == Shape{0, k62});
  CHECK(space_to_depth(zeros({0, 2, k62, k31}), 2).shape() == Shape{0, 1, k62 / 2, 4 * k31});
  CHECK(depth_to_space(zeros({0, k31, k31, 4 * k31}), 2).shape() == Shape{0, 2 * k31, 2 * k31, k31});
  CHECK(batch_to_space_nd(zeros({0, k62, 3}), {1}, {2}, {3}).shape() == Shape{0, k62 - 5, 3});
  CHECK_THROWS_AS(batch_to_space_nd(zeros({0, k62, 3}), {2}, {0}, {0}), ShapeError);
  CHECK_THROWS_AS(space_to_batch_nd(zeros({0, kMost, 3}), {1}, {1}, {0}), ShapeError);
}

TEST_CASE("tensors without elements are joined and cut", "[sizes]") {
  const Tensor x = zeros({2, 0, k62, k31});
  CHECK(unstack(x)[1].shape() == Shape{0, k62, k31});
  CHECK(split(x, 2)[1].shape() == Shape{1, 0, k62, k31});
  CHECK(gradient_of([](const Tensor& t) { return stack({t, t}); }, x).shape() == x.shape());
}

TEST_CASE("ranges of diagonals are not visited one by one", "[sizes]") {
  constexpr int least = std::numeric_limits<int>::min(), most = std::numeric_limits<int>::max();
  const Diagonals all(least, most);
  CHECK(matrix_diag(zeros({std::int64_t{1} << 32, 0}), all).shape().size() == 0);
  CHECK_THROWS_AS(matrix_diag(zeros({0, 3}), Diagonals(2, 1)), ArgumentError);
  CHECK_THROWS_AS(matrix_diag(zeros({0, kMost}), Diagonals(2)), ShapeError);
}

TEST_CASE("counts and lengths that exceed any list", "[sizes]") {
  CHECK(repeat(zeros({2, 0}), {k62 / 2, 5}, 0).shape() == Shape{k62 / 2 + 5, 0});
  CHECK(gradient_of(
            [](const Tensor& x) {
              return repeat(x, {k62 / 2, 5}, 0);
            },
            zeros({2, 0}))
            .shape() == Shape{2, 0});
  CHECK_THROWS_AS(repeat(zeros({2, 0}), {k62, k62}, 0), ShapeError);

  const Tensor rows = zeros({3, 0}), chosen = zeros({4}, DType::i32);
  const auto mean_of = [&](const Tensor& x) { return sparse_segment_mean(x, chosen, chosen, kMost); };
  CHECK(mean_of(rows).shape() == Shape{kMost, 0});
  CHECK(gradient_of(mean_of, rows).shape() == Shape{3, 0});
  CHECK(unsorted_segment_max(zeros({4, 0}), chosen, kMost).shape() == Shape{kMost, 0});
  CHECK(unsorted_segment_mean(zeros({4, 0}), chosen, kMost).shape() == Shape{kMost, 0});
  CHECK(gradient_of(
            [](const Tensor& x) {
              return tile(x, {0, kMost / 4});
            },
            ones({1, 3}))
            .to_vector<float>() == std::vector<float>(3));
  CHECK_THROWS_AS(unsorted_segment_max(zeros({4, 0}), full({4}, 7, DType::i32), 7), ShapeError);

  CHECK(rfft(zeros({0, 4}), {k62}).shape() == Shape{0, k62 / 2 + 1});
  CHECK(gradient_of([](const Tensor& x) { return real(rfft(x, {k62})); }, zeros({0, 4})).shape() ==
        Shape{0, 4});
  CHECK(irfft(zeros({0, 4}, DType::c64), {k62}).shape() == Shape{0, k62});
  CHECK(gradient_of([](const Tensor& x) { return irfft(x, {k62}); }, zeros({0, 4}, DType::c64)).shape() ==
        Shape{0, 4});
  CHECK(fft2d(zeros({0, k31, k31, 1}, DType::c64)).shape() == Shape{0, k31, k31, 1});
  CHECK(fft3d(zeros({0, k31, k31, k31}, DType::c64)).shape() == Shape{0, k31, k31, k31});
  CHECK_THROWS_AS(irfft(zeros({0, kMost}, DType::c64)), ShapeError);
}

TEST_CASE("products of extents of empty tensors that overflow", "[sizes]") {
  const Tensor x = zeros({k31, k31, k31, 0});
  CHECK(sum(x, {0, 1, 2}).shape() == Shape{0});
  CHECK(mean(x, {0, 1, 2}).shape() == Shape{0});
  CHECK(gradient_of([](const Tensor& t) { return mean(t, {0, 1, 2}); }, x).shape() == x.shape());
  CHECK_THROWS_AS(max(x, {0, 1, 2}), ShapeError);
  CHECK_THROWS_AS(median(x, {0, 1, 2}), ShapeError);
  CHECK_THROWS_AS(variance(x, {0, 1, 2}), ShapeError);
  CHECK(einsum("abcd->d", {x}).shape() == Shape{0});
  // The tangent of the gradient of a product.
  CHECK(gradient_of(
            [](const Tensor& t) {
              GradientTape tape;
              tape.watch(t);
              return tape.gradient(prod(t, 1), t).dense();
            },
            zeros({0, k62}))
            .shape() == Shape{0, k62});
}

TEST_CASE("numbers that are not dtypes are rejected", "[sizes]") {
  const auto none = static_cast<DType>(77);
  const Tensor x = ones({2});
  CHECK(message_of<DTypeError>([&] { (void)zeros({2}, none); }) ==
        "dtype: no dtype has the number 77; use f32, f64, …");
  CHECK_THROWS_AS(astype(x, none), DTypeError);
  CHECK_THROWS_AS(one_hot(zeros({2}, DType::i32), 3, none), DTypeError);
  CHECK_THROWS_AS(random::normal({2}, {.seed = 1}, none), DTypeError);
  CHECK_THROWS_AS(arange(3, none), DTypeError);
  CHECK_THROWS_AS(name_of(none), DTypeError);
  CHECK_THROWS_AS(size_of(none), DTypeError);
  CHECK_THROWS_AS(promote(DType::f32, none), DTypeError);
}

TEST_CASE("a range in the wrong direction is empty, however long", "[sizes]") {
  CHECK(arange(0, -1e300).size() == 0);
  CHECK(arange(1e18, 0, 1e-3).size() == 0);
  CHECK_THROWS_AS(arange(0, 1e300), ShapeError);
}

TEST_CASE("out-of-memory errors name dtype, shape and bytes", "[sizes]") {
  constexpr std::int64_t n = std::int64_t{1} << 45;
  const std::string text = "tensor: no memory for the 140737488355328 bytes of f32[35184372088832]";
  CHECK(message_of<OutOfMemory>([&] { (void)zeros({n}); }) == text);   // a std::exception, too
  CHECK_THROWS_AS(zeros({n}), std::bad_alloc);
  CHECK(message_of<OutOfMemory>([&] {
          (void)broadcast_to(ones({}), {n, 1});
        }) == "tensor: no memory for the 140737488355328 bytes of f32[35184372088832,1]");
}

}   // namespace sizes_test
