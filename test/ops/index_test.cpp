// Elements chosen by indices: all dtypes of elements and indices against a plain loop, duplicates, sparse
// gradients, and exact error texts. The op table test covers values and derivatives of the single ops.
#include <catch2/catch.hpp>
#include <limits>

#include "elements.h"

namespace index_test {

using namespace tapedeck;
using namespace tapedeck::test;

TEST_CASE("gather and scatter_add along every axis, in every dtype", "[index]") {
  for (const DType dtype : kAll)
    for (const DType index_dtype : {DType::i32, DType::i64})
      for (const int axis : {0, 1, -1}) {
        const Tensor x = counted({4, 5, 6}, dtype);
        const int at = axis < 0 ? axis + 3 : axis;
        const Tensor indices = astype(tensor({{3, 0}, {3, 1}}), index_dtype);
        const Tensor y = gather(x, indices, axis);
        const Elements at_index(indices);
        CHECK(y.ndim() == 4);
        CHECK(maps(y, x, [&](const Index& index) {
          Index from = index;
          from.erase(from.begin() + at);
          from[static_cast<std::size_t>(at)] =
              at_index[{index[static_cast<std::size_t>(at)], index[static_cast<std::size_t>(at) + 1]}];
          return from;
        }));
        if (dtype == DType::boolean) continue;
        const Tensor back = scatter_add(ones(y.shape(), dtype), indices, x.shape(), axis);
        CHECK(back.shape() == x.shape());
        const Elements of_back(back);
        for_each_index(x.shape(), [&](const Index& index) {
          const std::int64_t i = index[static_cast<std::size_t>(at)];
          if (of_back[index] != (i == 3 ? 2 : i < 2)) FAIL_CHECK("wrong sum at " << i);
        });
      }
}

TEST_CASE("indices are of any integer dtype", "[index][errors]") {
  const Tensor x = counted({4, 3}, DType::f32), at = tensor({2, 0, 1});
  const auto all = [&](const Tensor& i) {
    return std::vector{gather(x, i),
                       gather_nd(x, expand_dims(i, 1)),
                       scatter_add(ones({3, 3}), i, {4, 3}),
                       unsorted_segment_sum(ones({3}), i, 4),
                       dynamic_stitch(std::vector{i}, std::vector{ones({3, 2})}),
                       one_hot(i, 4),
                       sparse_softmax_cross_entropy(i, ones({3, 4})),
                       to_dense({ones({3, 2}), i, Shape{4, 2}})};
  };
  const std::vector<Tensor> expected = all(at);
  for (const DType dtype : kAll) {
    const Tensor i = astype(at, dtype);
    CAPTURE(name_of(dtype));
    if (!is_integer(dtype)) {
      CHECK_THROWS_WITH(gather(x, i), Catch::Contains("gather: indices must be integers, use astype: "));
      continue;
    }
    const std::vector<Tensor> y = all(i);
    for (std::size_t k = 0; k < y.size(); ++k)
      CHECK(y[k].to_vector() == expected[k].to_vector());
  }
}

TEST_CASE("the gradient of gathered rows names the rows", "[index]") {
  const Tensor x = random::normal({5, 3}, {.seed = 1});
  const Tensor indices = tensor<std::int64_t>({{4, 0}, {4, 2}});
  GradientTape tape({.persistent = true});
  tape.watch(x);
  const Tensor rows = gather(x, indices), columns = gather(x, tensor({1, 1}), 1);
  const Gradient sparse = tape.gradient(rows, x);
  REQUIRE(sparse.slices());
  CHECK(sparse.slices()->values.shape() == Shape{4, 3});
  CHECK(sparse.slices()->indices.to_vector<int>() == std::vector<int>{4, 0, 4, 2});
  CHECK(sparse.slices()->dense_shape == Shape{5, 3});
  CHECK(sum(sparse.dense(), -1).to_vector() == std::vector<double>{3, 0, 3, 0, 6});
  const Gradient dense = tape.gradient(columns, x);
  CHECK(dense.is_dense());
  CHECK(sum(dense.dense(), 0).to_vector() == std::vector<double>{0, 10, 0});
}

// Per batch, as loops would: the first batch's indices must not arrange the second's sums. These sums depend
// on their order: 2^24 takes up each 1 that is added to it, and gives back only itself.
TEST_CASE("gradients of rows gathered in batches add up in the order of the indices", "[index]") {
  constexpr std::int64_t count = 8192, width = 16;
  std::vector<std::int64_t> which(2 * count);
  which[0] = which[count - 1] = 1;
  const Tensor x = zeros({2, 2, width}), indices = reshape(tensor(which), {2, count});
  std::vector<double> dy(count, 1);
  dy[0] = 1 << 24, dy[count - 1] = -(1 << 24);
  const Tensor up = broadcast_to(reshape(astype(tensor(dy), DType::f32), {1, count, 1}), {2, count, width});
  GradientTape tape;
  tape.watch(x);
  const Tensor y = gather(x, indices, 1, 1);
  const Tensor dx = tape.gradient(y, x, {.output_gradients = {up}}).dense();
  CHECK(mean(dx, -1).to_vector() == std::vector<double>{count - 2, 0, 0, 0});
}

TEST_CASE("gather_nd and scatter_nd at every depth, in every dtype", "[index]") {
  for (const DType dtype : kAll)
    for (const DType index_dtype : {DType::i32, DType::i64})
      for (const int depth : {0, 1, 2, 3}) {
        const Tensor x = counted({4, 5, 6}, dtype);
        const Tensor all =
            tensor<std::int64_t>({{{3, 0, 5}, {1, 4, 2}}, {{3, 0, 5}, {0, 0, 0}}, {{1, 2, 3}, {1, 2, 4}}});
        const Tensor indices = astype(slice(all, {0, 0, 0}, {3, 2, depth}), index_dtype);
        INFO(to_string(x.spec()) << " at depth " << depth);
        const Tensor y = gather_nd(x, indices);
        CHECK(y.ndim() == 2 + 3 - depth);
        const Elements at_index(indices), of_y(y);
        const auto from = [&](const Index& index) {
          Index position;
          for (int d = 0; d < depth; ++d)
            position.push_back(at_index[{index[0], index[1], d}]);
          position.insert(position.end(), index.begin() + 2, index.end());
          return position;
        };
        CHECK(maps(y, x, from));
        if (dtype == DType::boolean) continue;
        const Tensor back = scatter_nd(indices, y, x.shape());
        CHECK(back.spec() == x.spec());
        std::vector<std::int64_t> sums(static_cast<std::size_t>(x.size()));
        for_each_index(y.shape(), [&](const Index& index) {
          const Index to = from(index);
          sums[static_cast<std::size_t>((to[0] * 5 + to[1]) * 6 + to[2])] += of_y[index];
        });
        if (size_of(dtype) == 1)
          for (std::int64_t& n : sums)
            n = dtype == DType::u8 ? static_cast<std::uint8_t>(n)
                                   : static_cast<std::int8_t>(n);   // indices that wrap around
        CHECK(back.to_vector<std::int64_t>() == sums);
      }
}

TEST_CASE("a position may come several times", "[index]") {
  const Tensor indices = tensor<std::int64_t>({{1}, {1}, {1}});
  CHECK(scatter_nd(indices, tensor({1.0, 2.0, 4.0}), {3}).to_vector() == std::vector<double>{0, 7, 0});
  CHECK(scatter_add(tensor({1.0, 2.0, 4.0}), tensor({2, 0, 2}), {3}).to_vector() ==
        std::vector<double>{2, 0, 5});
  CHECK(scatter_nd(tensor({1, 2}), tensor(5), {2, 3}).to_vector<int>() == std::vector<int>{0, 0, 0, 0, 0, 5});
}

TEST_CASE("indices of no elements with huge extents", "[index]") {
  const std::int64_t n = std::int64_t{1} << 40;
  const Tensor x = huge_and_empty();   // [n, 0, n]
  CHECK(gather(x, tensor<std::int64_t>({5, n - 1})).shape() == Shape{2, 0, n});
  CHECK(gather(x, tensor({0, 1}), 2).shape() == Shape{n, 0, 2});
  CHECK(gather(zeros({3, 0}), tensor({2, 0})).shape() == Shape{2, 0});
  CHECK(gather(zeros({0, 3}), zeros({0}, DType::i64)).shape() == Shape{0, 3});
  CHECK(gather(zeros({n, 3, 0}), tensor({2}), 1).shape() == Shape{n, 1, 0});
  CHECK(scatter_add(zeros({n, 2, 0}), tensor({1, 1}), {n, 3, 0}, 1).shape() == Shape{n, 3, 0});
  CHECK(scatter_add(zeros({0, 3}), zeros({0}, DType::i32), {2, 3}).to_vector() == std::vector<double>(6));
  CHECK(gather_nd(x, tensor<std::int64_t>({{n - 1}})).shape() == Shape{1, 0, n});
  CHECK(gather_nd(zeros({2, 3}), zeros({0, 2}, DType::i32)).shape() == Shape{0});
  CHECK(gather_nd(zeros({2, 3}), zeros({n, 0, 2}, DType::i32)).shape() == Shape{n, 0});
  CHECK(scatter_nd(zeros({0, 1}, DType::i64), zeros({0, 3}), {2, 3}).to_vector() == std::vector<double>(6));
  CHECK(scatter_nd(tensor<std::int64_t>({{n - 1}}), zeros({1, 0, n}), x.shape()).shape() == x.shape());
  CHECK_THROWS_AS(gather(x, tensor({0}), 1), ShapeError);
  CHECK_THROWS_AS(gather_nd(zeros({n, 0}), tensor({{0, 0}})), ShapeError);
  CHECK_THROWS_AS(scatter_nd(tensor({{0, 0}}), zeros({1}), {n, n}), ShapeError);
  CHECK_THROWS_AS(gather_nd(zeros({2, 3}), zeros({0, n}, DType::i32)), ShapeError);
}

TEST_CASE("errors name the index that does not fit", "[index][errors]") {
  const Tensor x = zeros({2, 3});
  constexpr std::int64_t far = std::int64_t{1} << 32;   // truncates to 0 in 32 bits
  CHECK_THROWS_WITH(gather(zeros({3, 4}), tensor({0, 1, 7})),
                    "gather: index 7 at position 2 is out of range for axis 0 of x, f32[3,4]");
  CHECK_THROWS_WITH(gather(zeros({3, 4}), tensor({-1}), 1),
                    "gather: index -1 at position 0 is out of range for axis 1 of x, f32[3,4]");
  CHECK_THROWS_AS(gather(x, x), DTypeError);
  CHECK_THROWS_AS(gather(x, tensor(0), 2), ShapeError);
  CHECK_THROWS_AS(gather(tensor(1.0), tensor(0)), ShapeError);
  CHECK_THROWS_WITH(scatter_add(zeros({1, 3}), tensor({2}), {2, 3}),
                    "scatter_add: index 2 at position 0 is out of range for axis 0 of the result, f32[2,3]");
  CHECK_THROWS_AS(scatter_add(zeros({2, 3}), tensor({1}), {2, 3}), ShapeError);
  CHECK_THROWS_AS(scatter_add(zeros({1, 4}), tensor({1}), {2, 3}), ShapeError);
  CHECK_THROWS_AS(scatter_add(zeros({3}), tensor({1}), {2, 3}), ShapeError);
  CHECK_THROWS_WITH(gather(x, tensor({far})),
                    "gather: index 4294967296 at position 0 is out of range for axis 0 of x, f32[2,3]");
  CHECK_THROWS_AS(gather(x, tensor({std::numeric_limits<std::int64_t>::min()})), ShapeError);
  CHECK_THROWS_WITH(gather_nd(x, tensor({{0, 1}, {1, 3}})),
                    "gather_nd: index [1,3] at position 1 is out of range for x, f32[2,3]");
  CHECK_THROWS_WITH(gather_nd(x, tensor({{-1, 0}})),
                    "gather_nd: index [-1,0] at position 0 is out of range for x, f32[2,3]");
  CHECK_THROWS_AS(gather_nd(x, tensor<std::int64_t>({{far, 0}})), ShapeError);
  CHECK_THROWS_WITH(gather_nd(x, tensor({{0, 0, 0}})),
                    "gather_nd: 3 coordinates for 2 axes: x is f32[2,3], indices is i32[1,3]");
  CHECK_THROWS_WITH(gather_nd(x, tensor(0)),
                    "gather_nd: indices need an axis of coordinates: x is f32[2,3], indices is i32[]");
  CHECK_THROWS_WITH(gather_nd(x, tensor({{0.0}})),
                    "gather_nd: indices must be integers, use astype: x is f32[2,3], indices is f32[1,1]");
  CHECK_THROWS_WITH(scatter_nd(tensor({{0, 1}, {2, 0}}), zeros({2}), {2, 3}),
                    "scatter_nd: index [2,0] at position 1 is out of range for the result, f32[2,3]");
  CHECK_THROWS_WITH(
      scatter_nd(tensor({{0}}), zeros({1, 4}), {2, 3}),
      "scatter_nd: updates must be [1,3] for shape [2,3]: updates is f32[1,4], indices is i32[1,1]");
  CHECK_THROWS_WITH(
      scatter_nd(tensor({{0}}), zeros({7, 1, 3}), {2, 3}),
      "scatter_nd: updates must have 2 axes: updates is f32[7,1,3], indices is i32[1,1], shape is [2,3]");
  CHECK_THROWS_AS(scatter_nd(tensor({{0, 0, 0}}), zeros({1}), {2, 3}), ShapeError);
  CHECK_THROWS_AS(scatter_nd(tensor(0), zeros({3}), {2, 3}), ShapeError);
  CHECK_THROWS_AS(scatter_nd(tensor({{0}}), zeros({1, 3}, DType::boolean), {2, 3}), DTypeError);
  CHECK_THROWS_AS(scatter_nd(tensor({{0.0}}), zeros({1, 3}), {2, 3}), DTypeError);
  CHECK_THROWS_AS(scatter_nd(tensor({{0}}), zeros({1}), {-2}), ShapeError);
  CHECK_THROWS_AS(scatter_nd(tensor({{0}}), zeros({1}), {std::numeric_limits<std::int64_t>::max()}),
                  ShapeError);
}

TEST_CASE("gradients of rows gathered by small integers", "[index]") {
  const Tensor x = random::normal({5, 3}, {.seed = 1}, DType::f64);
  const auto gradient = [&](DType t) {
    return grad([&](const Tensor& z) { return sum(square(gather(z, tensor({4, 1, 4}, t)))); }, x).dense();
  };
  for (const DType t : {DType::i8, DType::u8, DType::i16, DType::u16, DType::i32, DType::u32, DType::u64})
    CHECK(gradient(t).to_vector() == gradient(DType::i64).to_vector());
}

}   // namespace index_test
