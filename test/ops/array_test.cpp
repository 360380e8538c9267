// Ops that change the layout: all dtypes and all paths through the copy kernels against a plain loop, and
// exact error texts. The op table test covers values and derivatives of the single ops.
#include <algorithm>
#include <catch2/catch.hpp>
#include <limits>
#include <numeric>
#include <random>

#include "core/bytes.h"
#include "core/sanitizers.h"
#include "elements.h"

namespace array_test {

using namespace tapedeck;
using namespace tapedeck::test;

TEST_CASE("transpose moves every element to its place", "[array]") {
  const std::pair<Shape, std::vector<int>> examples[] = {
      {{37, 53}, {1, 0}},
      {{1, 5}, {1, 0}},
      {{16, 16}, {1, 0}},
      {{3, 100}, {1, 0}},
      {{2, 33, 20}, {0, 2, 1}},
      {{5, 6, 7}, {2, 1, 0}},
      {{5, 6, 7}, {1, 0, 2}},
      {{5, 6, 7}, {1, 2, 0}},
      {{17, 2, 3, 19}, {3, 1, 2, 0}},
      {{2, 3, 4, 5}, {1, 3, 0, 2}},
      {{2, 1, 3}, {1, 2, 0}},
      {{2, 3, 2, 2, 3}, {4, 2, 0, 3, 1}},
      // Few columns or few rows, more of either than one tile holds, and sizes that are no multiple of a
      // tile.
      {{101, 2}, {1, 0}},
      {{2, 101}, {1, 0}},
      {{101, 3}, {1, 0}},
      {{3, 101}, {1, 0}},
      {{5, 33, 4}, {0, 2, 1}},
      {{5, 4, 33}, {0, 2, 1}},
      {{3, 5}, {1, 0}},
      {{2, 2}, {1, 0}},
      {{40, 5}, {1, 0}},
      {{5, 40}, {1, 0}},
      {{15, 40}, {1, 0}},
      {{40, 9}, {1, 0}},
      {{8, 8}, {1, 0}},
      {{67, 300}, {1, 0}},
      {{300, 67}, {1, 0}},
      {{2, 6, 5, 3}, {0, 3, 1, 2}},
      {{2, 3, 6, 5}, {0, 2, 3, 1}},
      {{3, 70, 4, 16}, {0, 2, 1, 3}}};
  for (const DType dtype : kAll)
    for (const auto& example : examples) {
      const std::vector<int>& perm = example.second;
      INFO(to_string(Spec{dtype, example.first}));
      const Tensor x = counted(example.first, dtype);
      CHECK(maps(transpose(x, perm), x, [&](const Index& at) {
        Index from(at.size());
        for (std::size_t d = 0; d < at.size(); ++d)
          from[static_cast<std::size_t>(perm[d])] = at[d];
        return from;
      }));
    }
  CHECK(transpose(zeros({2, 3, 4})).shape() == Shape{4, 3, 2});
  CHECK(transpose(zeros({2, 3, 4}), {0, -1, -2}).shape() == Shape{2, 4, 3});
}

TEST_CASE("large copies are the same with several threads", "[array]") {
  const Tensor x = random::uniform({3, 301, 517}, {.seed = 1}), narrow = reshape(x, {-1, 3}),
               one_column = slice(narrow, {0, 0}, {-1, 1});
  const auto copies = [&] {
    return std::vector<Tensor>{transpose(x, {0, 2, 1}),
                               transpose(narrow),
                               transpose(transpose(narrow)),
                               transpose(x, {2, 1, 0}),
                               reverse(x, 0),
                               reverse(x, 2),
                               reverse(x),
                               tile(one_column, {1, 3}),
                               tile(x, {1, 1, 2}),
                               tile(slice(x, {0, 0, 0}, {1, 1, 70}), {1, 2000, 1}),
                               broadcast_to(reshape(x, {1, -1}), {2, x.size()}),
                               strided_slice(x, {{}, {{}, {}, -2}, {{}, {}, 3}}),
                               concat({x, x}, 2),
                               concat({x, x}, 0),
                               pad(x, {1, 1, 1}, {1, 1, 1}),
                               split(x, {100, 201}, 1)[1]};
  };
  const std::vector<Tensor> one = copies();
  set_num_threads(2);
  const std::vector<Tensor> two = copies();
  set_num_threads(1);
  for (std::size_t i = 0; i < one.size(); ++i) {
    INFO("copy " << i);
    CHECK(one[i].shape() == two[i].shape());
    CHECK(one[i].to_vector<float>() == two[i].to_vector<float>());
  }
  CHECK(one[0].at<float>({2, 516, 300}) == x.at<float>({2, 300, 516}));
  CHECK(transpose(one[0], {0, 2, 1}).to_vector<float>() == x.to_vector<float>());
  CHECK(one[2].to_vector<float>() == narrow.to_vector<float>());
  CHECK(reverse(one[6]).to_vector<float>() == x.to_vector<float>());
  CHECK(reverse(reverse(one[4], 1), 2).to_vector<float>() == one[6].to_vector<float>());
  CHECK(sum(one[9], 1).at({0, 69}) == Approx(2000 * x.at({0, 0, 69})));
}

TEST_CASE("reverse turns axes around", "[array]") {
  const Shape shapes[] = {{1}, {5}, {8}, {37}, {100}, {3, 1}, {4, 5}, {2, 3, 40}, {3, 1, 2, 7}};
  for (const DType dtype : kAll)
    for (const Shape& shape : shapes)
      for (unsigned mask = 0; mask < 1u << shape.ndim(); ++mask) {
        const Tensor x = counted(shape, dtype);
        std::vector<int> axes;
        for (int d = 0; d < x.ndim(); ++d)
          if (mask >> d & 1) axes.push_back(d % 2 ? d : d - x.ndim());
        INFO(to_string(x.spec()) << " along " << mask);
        CHECK(maps(reverse(x, Axes(axes)), x, [&](Index at) {
          for (int d = 0; d < x.ndim(); ++d)
            if (mask >> d & 1)
              at[static_cast<std::size_t>(d)] = shape[d] - 1 - at[static_cast<std::size_t>(d)];
          return at;
        }));
      }
  CHECK(reverse(tensor({1, 2, 3})).to_vector<int>() == std::vector<int>{3, 2, 1});
  CHECK(reverse(tensor(4)).item<int>() == 4);
}

TEST_CASE("tile repeats along every axis", "[array]") {
  const std::pair<Shape, Shape> examples[] = {{{3}, {4}},
                                              {{}, {3}},
                                              {{}, {}},
                                              {{1}, {100}},
                                              {{2, 3}, {1, 1}},
                                              {{2, 3}, {2, 1}},
                                              {{2, 3}, {1, 5}},
                                              {{2, 3}, {3, 2}},
                                              {{2, 3}, {4}},
                                              {{3}, {2, 2, 2}},
                                              {{2, 3}, {0, 2}},
                                              {{0, 3}, {2, 2}},
                                              {{40, 1}, {1, 7}},
                                              {{40, 1}, {1, 70}},
                                              {{5, 67}, {3, 2}},
                                              {{2, 1, 3, 1}, {1, 4, 2, 3}},
                                              {{1, 2, 1, 2, 1, 2, 1, 2}, {2, 2, 2, 2, 2, 1, 2, 2}}};
  for (const DType dtype : kAll)
    for (const auto& example : examples) {
      const Tensor x = counted(example.first, dtype);
      INFO(to_string(x.spec()) << " times " << to_string(example.second));
      const Tensor y = tile(x, example.second);
      const int ndim = std::max(x.ndim(), example.second.ndim());
      REQUIRE(y.ndim() == ndim);
      for (int d = 1; d <= ndim; ++d)
        CHECK(y.shape()[ndim - d] ==
              (d <= x.ndim() ? x.shape()[x.ndim() - d] : 1) *
                  (d <= example.second.ndim() ? example.second[example.second.ndim() - d] : 1));
      CHECK(maps(y, x, [&](const Index& at) {
        Index from(at.end() - x.ndim(), at.end());
        for (int d = 0; d < x.ndim(); ++d)
          from[static_cast<std::size_t>(d)] %= x.shape()[d];
        return from;
      }));
    }
}

TEST_CASE("elements go to their places whatever the shape", "[array]") {
  std::mt19937 engine(5);
  const auto below = [&](std::size_t n) { return static_cast<std::int64_t>(engine() % n); };
  const std::int64_t extents[] = {1, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 64, 67, 130};
  for (int i = 0; i < (kSanitized ? 60 : 400); ++i) {
    Shape shape;
    for (std::int64_t d = below(5); d >= 0; --d) {
      const std::int64_t extent = extents[below(std::size(extents))];
      shape.push_back(shape.size() * extent > 4000 ? 1 : extent);
    }
    const auto ndim = static_cast<std::size_t>(shape.ndim());
    const Tensor x = counted(shape, kAll[below(std::size(kAll))]);
    INFO(to_string(x.spec()) << ", number " << i);

    std::vector<int> perm(ndim);
    std::iota(perm.begin(), perm.end(), 0);
    std::shuffle(perm.begin(), perm.end(), engine);
    CHECK(maps(transpose(x, perm), x, [&](const Index& at) {
      Index from(ndim);
      for (std::size_t d = 0; d < ndim; ++d)
        from[static_cast<std::size_t>(perm[d])] = at[d];
      return from;
    }));

    std::vector<Slice> slices;
    Shape reps;
    std::int64_t copies = x.size();
    for (const std::int64_t n : shape) {
      const std::int64_t stride = 1 + below(3), begin = below(static_cast<std::size_t>(n));
      slices.push_back(below(2) ? Slice(begin, {}, stride) : Slice(begin, {}, -stride));
      reps.push_back(copies > 10000 ? 1 : 1 + below(9));
      copies *= reps[reps.ndim() - 1];
    }
    const Tensor part = strided_slice(x, slices);
    CHECK(maps(part, x, [&](Index at) {
      for (std::size_t d = 0; d < ndim; ++d)
        at[d] = *slices[d].begin + at[d] * slices[d].stride;
      return at;
    }));
    CHECK(maps(tile(x, reps), x, [&](Index at) {
      for (std::size_t d = 0; d < ndim; ++d)
        at[d] %= shape[static_cast<int>(d)];
      return at;
    }));

    // The adjoint has ones where the slice was taken, and zeros elsewhere.
    const Tensor y = astype(x, DType::f32);
    GradientTape tape;
    tape.watch(y);
    const Tensor back = tape.gradient(strided_slice(y, slices), y).dense();
    const Elements of_back(back);
    std::int64_t inside = 0;
    for_each_index(part.shape(), [&](Index at) {
      for (std::size_t d = 0; d < ndim; ++d)
        at[d] = *slices[d].begin + at[d] * slices[d].stride;
      inside += of_back[at];
    });
    CHECK(inside == part.size());
    CHECK(sum(back).item<std::int64_t>() == inside);
  }
}

TEST_CASE("the gradient of tile adds up all copies of an element", "[array]") {
  const Tensor x = random::uniform({2, 1, 3}, {.seed = 1}), dy = random::uniform({4, 2, 5, 15}, {.seed = 2});
  GradientTape tape;
  tape.watch(x);
  const Tensor y = tile(x, {4, 1, 5, 5});
  const Tensor dx = tape.gradient(Targets(y), Sources(x), {.output_gradients = {dy}})[0].dense();
  REQUIRE(dx.shape() == x.shape());
  std::vector<double> sums(6);
  for_each_index(dy.shape(), [&](const Index& at) {
    sums[static_cast<std::size_t>(at[1] * 3 + at[3] % 3)] += dy.at({at[0], at[1], at[2], at[3]});
  });
  for (std::size_t i = 0; i < sums.size(); ++i)
    CHECK(dx.to_vector()[i] == Approx(sums[i]));
}

TEST_CASE("ops that only change the shape share memory", "[array]") {
  const Tensor x = random::uniform({1, 30, 1, 20}, {.seed = 1});
  const auto shares = [&](const Tensor& y) { return y.raw() == x.raw(); };
  CHECK(shares(reshape(x, {20, 30})));
  CHECK(shares(expand_dims(x, 2)));
  CHECK(shares(squeeze(x)));
  CHECK(shares(transpose(x, {1, 3, 0, 2})));
  CHECK(shares(broadcast_to(x, {1, 1, 30, 1, 20})));
  CHECK(shares(tile(x, {1, 1, 1, 1})));
  CHECK(shares(reverse(x, {0, 2})));
  CHECK_FALSE(shares(transpose(x, {3, 2, 1, 0})));
  CHECK_FALSE(shares(reverse(x, 1)));
}

TEST_CASE("arrangements of no elements with huge extents", "[array]") {
  const std::int64_t n = std::int64_t{1} << 40;
  for (const DType dtype : kAll) {
    const Tensor x = huge_and_empty(dtype);   // [n, 0, n]
    CHECK(transpose(x, {1, 0, 2}).shape() == Shape{0, n, n});
    CHECK(reverse(x).shape() == x.shape());
    CHECK(tile(x, {1, 5, 2}).shape() == Shape{n, 0, 2 * n});
    CHECK(expand_dims(x, 1).shape() == Shape{n, 1, 0, n});
    CHECK(squeeze(expand_dims(x, 1)).shape() == x.shape());
    CHECK(broadcast_to(x, {7, n, 0, n}).size() == 0);
    CHECK(reshape(x, {0}).size() == 0);
  }
  const Tensor x = huge_and_empty();
  GradientTape tape({.persistent = true});
  tape.watch(x);
  for (const Tensor& y : {tile(x, {2, 3, 1}), reverse(x), transpose(x, {2, 0, 1}), expand_dims(x, 0)})
    CHECK(tape.gradient(y, x).dense().shape() == x.shape());
  CHECK_THROWS_AS(tile(zeros({2}), {std::numeric_limits<std::int64_t>::max()}), ShapeError);
  CHECK_THROWS_AS(tile(zeros({2}), {n, n}), ShapeError);
  CHECK_THROWS_AS(broadcast_to(zeros({1}), {n, n}), ShapeError);
  CHECK_THROWS_AS(one_hot(tensor({0, 1}), std::numeric_limits<std::int64_t>::max()), ShapeError);
}

TEST_CASE("broadcast_to repeats along every axis", "[array]") {
  const std::pair<Shape, Shape> examples[] = {{{}, {3, 4}},           {{4}, {3, 4}},
                                              {{3, 1}, {3, 4}},       {{1, 4}, {2, 3, 4}},
                                              {{2, 1, 4}, {2, 3, 4}}, {{2, 1, 3, 1}, {2, 37, 3, 5}}};
  for (const DType dtype : kAll)
    for (const auto& example : examples) {
      const Tensor x = counted(example.first, dtype);
      INFO(to_string(x.spec()) << " to " << to_string(example.second));
      CHECK(maps(broadcast_to(x, example.second), x, [&](const Index& at) {
        Index from(at.end() - x.ndim(), at.end());
        for (int d = 0; d < x.ndim(); ++d)
          if (x.shape()[d] == 1) from[static_cast<std::size_t>(d)] = 0;
        return from;
      }));
    }
}

TEST_CASE("reshape, expand_dims and squeeze change only the shape", "[array]") {
  const Tensor x = counted({2, 3, 4}, DType::i64);
  CHECK(reshape(x, {-1}).shape() == Shape{24});
  CHECK(reshape(x, {4, -1, 2}).shape() == Shape{4, 3, 2});
  CHECK(reshape(x, {4, 6}).to_vector() == x.to_vector());
  CHECK(expand_dims(x, 0).shape() == Shape{1, 2, 3, 4});
  CHECK(expand_dims(x, -1).shape() == Shape{2, 3, 4, 1});
  CHECK(expand_dims(x, -4).shape() == Shape{1, 2, 3, 4});
  const Tensor ones_around = reshape(x, {1, 24, 1});
  CHECK(squeeze(ones_around).shape() == Shape{24});
  CHECK(squeeze(ones_around, {-1}).shape() == Shape{1, 24});
  CHECK(squeeze(ones_around, {0, 2}).shape() == Shape{24});
  CHECK(squeeze(ones_around, 0).shape() == Shape{24, 1});
  CHECK(squeeze(x).shape() == x.shape());
  CHECK(squeeze(tensor(1.0)).shape() == Shape{});
  CHECK(expand_dims(tensor(1.0), 0).shape() == Shape{1});
  CHECK(squeeze(zeros({1, 1})).shape() == Shape{});
}

TEST_CASE("one_hot marks the indices that are in range", "[array]") {
  const Tensor y = one_hot(tensor<std::int64_t>({2, -1, 0, 3}), 3, DType::i32);
  CHECK(y.spec() == Spec{DType::i32, {4, 3}});
  CHECK(y.to_vector<int>() == std::vector<int>{0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0});
  CHECK(one_hot(tensor(1), 2, DType::boolean).to_vector<int>() == std::vector<int>{0, 1});
  const Tensor z = one_hot(tensor(1), 2, DType::c64);
  CHECK(z.dtype() == DType::c64);
  CHECK(real(z).to_vector() == std::vector<double>{0, 1});
}

TEST_CASE("identity passes slices through", "[array]") {
  const Tensor x = ones({5, 3});
  GradientTape tape;
  tape.watch(x);
  CHECK(tape.gradient(gather(identity(x), tensor({1})), x).slices());
}

TEST_CASE("stop_gradient cuts", "[array]") {
  const Tensor x = tensor({1.0, 2.0});
  GradientTape tape;
  tape.watch(x);
  CHECK(tape.gradient(x * stop_gradient(x), x).dense().to_vector() == std::vector<double>{1, 2});
}

TEST_CASE("astype has a result for every value", "[array]") {
  constexpr double inf = std::numeric_limits<double>::infinity(),
                   nan = std::numeric_limits<double>::quiet_NaN();
  constexpr std::int64_t lowest = std::numeric_limits<std::int64_t>::min(),
                         highest = std::numeric_limits<std::int64_t>::max();
  const Tensor x = tensor({1.9, -1.9, 1e30, -1e30, nan, inf, -0.5, 255.9}, DType::f64);
  CHECK(astype(x, DType::i64).to_vector<std::int64_t>() ==
        std::vector<std::int64_t>{1, -1, highest, lowest, 0, highest, 0, 255});
  CHECK(astype(x, DType::i32).to_vector<std::int64_t>() ==
        std::vector<std::int64_t>{1, -1, 2147483647, -2147483648LL, 0, 2147483647, 0, 255});
  CHECK(astype(astype(x, DType::f32), DType::i32).to_vector<std::int64_t>() ==
        std::vector<std::int64_t>{1, -1, 2147483647, -2147483648LL, 0, 2147483647, 0, 255});
  CHECK(astype(x, DType::i8).to_vector<int>() == std::vector<int>{1, -1, 127, -128, 0, 127, 0, 127});
  CHECK(astype(x, DType::u8).to_vector<int>() == std::vector<int>{1, 0, 255, 0, 0, 255, 0, 255});
  CHECK(astype(x, DType::boolean).to_vector<int>() == std::vector<int>{1, 1, 1, 1, 1, 1, 1, 1});
  CHECK(astype(tensor({0.0, -0.0, 2.0}), DType::boolean).to_vector<int>() == std::vector<int>{0, 0, 1});
  CHECK(astype(tensor({1, 0}, DType::boolean), DType::f32).to_vector() == std::vector<double>{1, 0});
  // NumPy 1.24, too, keeps the low bits.
  const Tensor n =
      tensor(std::vector<std::int64_t>{300, -1, 200, (std::int64_t{1} << 32) + 5, std::int64_t{1} << 31});
  CHECK(astype(n, DType::u8).to_vector<int>() == std::vector<int>{44, 255, 200, 5, 0});
  CHECK(astype(n, DType::i8).to_vector<int>() == std::vector<int>{44, -1, -56, 5, 0});
  CHECK(astype(n, DType::i32).to_vector<std::int64_t>() ==
        std::vector<std::int64_t>{300, -1, 200, 5, -2147483648});
}

TEST_CASE("errors name the operand that does not fit", "[array][errors]") {
  const Tensor x = zeros({2, 3});
  CHECK_THROWS_WITH(reshape(x, {4, 2}), "reshape: element counts differ: x is f32[2,3], shape is [4,2]");
  CHECK_THROWS_WITH(reshape(x, {-1, 4}),
                    "reshape: no extent fits in the place of -1: x is f32[2,3], shape is [-1,4]");
  CHECK_THROWS_WITH(reshape(x, {-1, -1}), "reshape: more than one extent is -1: shape is [-1,-1]");
  CHECK_THROWS_WITH(expand_dims(x, 3), "expand_dims: axis 3 is out of range for x, f32[2,3]; use -3..2");
  CHECK_THROWS_WITH(expand_dims(zeros({1, 1, 1, 1, 1, 1, 1, 1}), 0),
                    "expand_dims: more than 8 axes: x is f32[1,1,1,1,1,1,1,1]");
  CHECK_THROWS_WITH(squeeze(x, 2), "squeeze: axis 2 is out of range for x of rank 2; use -2..1");
  CHECK_THROWS_WITH(squeeze(zeros({1, 2}), {0, -2}), "squeeze: axis -2 is named twice for x of rank 2");
  CHECK_THROWS_WITH(reverse(x, -3), "reverse: axis -3 is out of range for x of rank 2; use -2..1");
  CHECK_THROWS_WITH(reverse(x, {0, 0}), "reverse: axis 0 is named twice for x of rank 2");
  CHECK_THROWS_WITH(tile(x, {1, -1}), "tile: a negative count: reps is [1,-1]");
  CHECK_THROWS_WITH(tile(x, {1, std::int64_t{1} << 62}),
                    "tile: too many elements: x is f32[2,3], reps is [1,4611686018427387904]");
  CHECK_THROWS_WITH(squeeze(x, {0}), "squeeze: the extent of axis 0 of x, f32[2,3], is not 1");
  CHECK_THROWS_WITH(transpose(x, {0, 0}),
                    "transpose: perm does not name every axis of x once: perm is [0,0], x is f32[2,3]");
  CHECK_THROWS_WITH(transpose(x, {0}),
                    "transpose: perm does not name every axis of x once: perm is [0], x is f32[2,3]");
  CHECK_THROWS_AS(transpose(x, {0, 1, 2}), ShapeError);
  CHECK_THROWS_WITH(broadcast_to(x, {3, 3}),
                    "broadcast_to: x does not broadcast to shape: x is f32[2,3], shape is [3,3]");
  CHECK_THROWS_AS(broadcast_to(x, {3}), ShapeError);
  CHECK_THROWS_AS(one_hot(x, 3), DTypeError);
  CHECK_THROWS_AS(one_hot(tensor(1), -1), ShapeError);
}

}   // namespace array_test
