// Arrangement and indexing: all dtypes and all paths through the copying kernels against a plain loop, and golden errors.
// Values and derivatives of the single ops are in the op table test.
#include <catch2/catch.hpp>
#include <limits>

#include "tapedeck/tapedeck.h"

using namespace tapedeck;

namespace {

using Index = std::vector<std::int64_t>;

// Small enough for u8; different from its neighbours along every axis.
Tensor counted(const Shape& shape, DType dtype) {
  std::vector<std::int64_t> v(static_cast<std::size_t>(shape.size()));
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = static_cast<std::int64_t>(i * 7 % 251);
  return astype(tensor(v, shape), dtype);
}

// Calls f(index) for every position of a shape in row-major order.
template <class F> void for_each_index(const Shape& shape, F f) {
  for (std::int64_t i = 0; i < shape.size(); ++i) {
    Index index(static_cast<std::size_t>(shape.ndim()));
    std::int64_t rest = i;
    for (int d = shape.ndim(); d-- > 0; rest /= shape[d]) index[static_cast<std::size_t>(d)] = rest % shape[d];
    f(index);
  }
}

std::int64_t element(const Tensor& x, const Index& index) {
  std::int64_t offset = 0;
  for (int d = 0; d < x.ndim(); ++d) offset = offset * x.shape()[d] + index[static_cast<std::size_t>(d)];
  return reshape(x, {-1}).at<std::int64_t>({offset});
}

// Whether y[index] = x[position(index)] everywhere.
template <class F> bool maps(const Tensor& y, const Tensor& x, F position) {
  bool same = y.dtype() == x.dtype();
  for_each_index(y.shape(), [&](const Index& index) { same &= element(y, index) == element(x, position(index)); });
  return same;
}

constexpr DType kAll[] = {DType::f32, DType::f64, DType::i32, DType::i64, DType::u8, DType::boolean};

}  // namespace

TEST_CASE("transpose moves every element to its place", "[array]") {
  const std::pair<Shape, std::vector<int>> examples[] = {
      {{37, 53}, {1, 0}},          {{1, 5}, {1, 0}},       {{16, 16}, {1, 0}},      {{3, 100}, {1, 0}},       {{2, 33, 20}, {0, 2, 1}},
      {{5, 6, 7}, {2, 1, 0}},      {{5, 6, 7}, {1, 0, 2}}, {{5, 6, 7}, {1, 2, 0}},  {{17, 2, 3, 19}, {3, 1, 2, 0}},
      {{2, 3, 4, 5}, {1, 3, 0, 2}}, {{2, 1, 3}, {1, 2, 0}}, {{2, 3, 2, 2, 3}, {4, 2, 0, 3, 1}}};
  for (const DType dtype : kAll)
    for (const auto& example : examples) {
      const std::vector<int>& perm = example.second;
      INFO(to_string(Spec{dtype, example.first}));
      const Tensor x = counted(example.first, dtype);
      CHECK(maps(transpose(x, perm), x, [&](const Index& at) {
        Index from(at.size());
        for (std::size_t d = 0; d < at.size(); ++d) from[static_cast<std::size_t>(perm[d])] = at[d];
        return from;
      }));
    }
  CHECK(transpose(zeros({2, 3, 4})).shape() == Shape{4, 3, 2});
  CHECK(transpose(zeros({2, 3, 4}), {0, -1, -2}).shape() == Shape{2, 4, 3});
}

TEST_CASE("a large transposition is the same with several threads", "[array]") {
  const Tensor x = random::uniform({3, 301, 517}, {.seed = 1});
  const Tensor one = transpose(x, {0, 2, 1});
  set_num_threads(2);
  const Tensor two = transpose(x, {0, 2, 1});
  set_num_threads(1);
  CHECK(one.to_vector<float>() == two.to_vector<float>());
  CHECK(one.at<float>({2, 516, 300}) == x.at<float>({2, 300, 516}));
  CHECK(transpose(one, {0, 2, 1}).to_vector<float>() == x.to_vector<float>());
}

TEST_CASE("broadcast_to repeats along every axis", "[array]") {
  const std::pair<Shape, Shape> examples[] = {{{}, {3, 4}}, {{4}, {3, 4}}, {{3, 1}, {3, 4}}, {{1, 4}, {2, 3, 4}}, {{2, 1, 4}, {2, 3, 4}}, {{2, 1, 3, 1}, {2, 37, 3, 5}}};
  for (const DType dtype : kAll)
    for (const auto& example : examples) {
      const Tensor x = counted(example.first, dtype);
      INFO(to_string(x.spec()) << " to " << to_string(example.second));
      CHECK(maps(broadcast_to(x, example.second), x, [&](const Index& at) {
        Index from(at.end() - x.ndim(), at.end());
        for (int d = 0; d < x.ndim(); ++d) if (x.shape()[d] == 1) from[static_cast<std::size_t>(d)] = 0;
        return from;
      }));
    }
}

TEST_CASE("slice takes a part, pad puts it back among zeros", "[array]") {
  const std::tuple<Shape, Shape, Shape> examples[] = {
      {{10}, {3}, {4}}, {{5, 7}, {1, 2}, {3, 4}}, {{5, 7}, {0, 6}, {5, 1}}, {{4, 5, 6}, {1, 0, 2}, {2, 5, 3}}, {{4, 5, 6}, {2, 1, 0}, {1, 3, 6}}, {{3, 4}, {3, 0}, {0, 4}}};
  for (const DType dtype : kAll)
    for (const auto& example : examples) {
      const auto& begin = std::get<1>(example);
      const Tensor x = counted(std::get<0>(example), dtype);
      INFO(to_string(x.spec()) << " from " << to_string(begin));
      const Tensor part = slice(x, begin, std::get<2>(example));
      CHECK(part.shape() == std::get<2>(example));
      CHECK(maps(part, x, [&](Index at) {
        for (int d = 0; d < x.ndim(); ++d) at[static_cast<std::size_t>(d)] += begin[d];
        return at;
      }));
      Shape after;
      for (int d = 0; d < x.ndim(); ++d) after.push_back(x.shape()[d] - begin[d] - part.shape()[d]);
      const Tensor around = pad(part, begin, after);
      CHECK(around.shape() == x.shape());
      CHECK(slice(around, begin, part.shape()).to_vector() == part.to_vector());
      CHECK(sum(astype(around, DType::f64)).item() == sum(astype(part, DType::f64)).item());
    }
  CHECK(slice(zeros({3, 4}), {1, 1}, {-1, 2}).shape() == Shape{2, 2});
}

TEST_CASE("concat joins along any axis", "[array]") {
  for (const DType dtype : kAll)
    for (const int axis : {0, 1, 2, -1}) {
      const int at = axis < 0 ? axis + 3 : axis;
      std::vector<Tensor> parts;
      Shape begin{0, 0, 0};
      for (const std::int64_t n : {2, 0, 3, 1}) {
        Shape shape{2, 3, 4};
        shape.set(at, n);
        parts.push_back(counted(shape, dtype));
      }
      const Tensor joined = concat(parts, axis);
      for (const Tensor& part : parts) {
        CHECK(slice(joined, begin, part.shape()).to_vector() == part.to_vector());
        begin.set(at, begin[at] + part.shape()[at]);
      }
      CHECK(joined.shape()[at] == begin[at]);
    }
}

TEST_CASE("reshape, expand_dims and squeeze change the shape alone", "[array]") {
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
  CHECK(squeeze(zeros({1, 1})).shape() == Shape{});
}

TEST_CASE("one_hot marks indices that are inside", "[array]") {
  const Tensor y = one_hot(tensor<std::int64_t>({2, -1, 0, 3}), 3, DType::i32);
  CHECK(y.spec() == Spec{DType::i32, {4, 3}});
  CHECK(y.to_vector<int>() == std::vector<int>{0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0});
  CHECK(one_hot(tensor(1), 2, DType::boolean).to_vector<int>() == std::vector<int>{0, 1});
}

TEST_CASE("gather and scatter_add along every axis, in every dtype", "[array]") {
  for (const DType dtype : kAll)
    for (const DType index_dtype : {DType::i32, DType::i64})
      for (const int axis : {0, 1, -1}) {
        const Tensor x = counted({4, 5, 6}, dtype);
        const int at = axis < 0 ? axis + 3 : axis;
        const Tensor indices = astype(tensor({{3, 0}, {3, 1}}), index_dtype);
        const Tensor y = gather(x, indices, axis);
        CHECK(y.ndim() == 4);
        CHECK(maps(y, x, [&](const Index& index) {
          Index from = index;
          from.erase(from.begin() + at);
          from[static_cast<std::size_t>(at)] = element(indices, {index[static_cast<std::size_t>(at)], index[static_cast<std::size_t>(at) + 1]});
          return from;
        }));
        if (dtype == DType::boolean) continue;
        const Tensor back = scatter_add(ones(y.shape(), dtype), indices, x.shape(), axis);
        CHECK(back.shape() == x.shape());
        for_each_index(x.shape(), [&](const Index& index) {
          const std::int64_t i = index[static_cast<std::size_t>(at)];
          if (element(back, index) != (i == 3 ? 2 : i < 2)) FAIL_CHECK("wrong sum at " << i);
        });
      }
}

TEST_CASE("the gradient of gathered rows names the rows", "[array]") {
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

TEST_CASE("identity passes slices on", "[array]") {
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
  constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  constexpr std::int64_t lowest = std::numeric_limits<std::int64_t>::min(), highest = std::numeric_limits<std::int64_t>::max();
  const Tensor x = tensor({1.9, -1.9, 1e30, -1e30, nan, inf, -0.5, 255.9}, DType::f64);
  CHECK(astype(x, DType::i64).to_vector<std::int64_t>() == std::vector<std::int64_t>{1, -1, highest, lowest, 0, highest, 0, 255});
  CHECK(astype(x, DType::i32).to_vector<std::int64_t>() == std::vector<std::int64_t>{1, -1, 2147483647, -2147483648LL, 0, 2147483647, 0, 255});
  CHECK(astype(astype(x, DType::f32), DType::i32).to_vector<std::int64_t>() == std::vector<std::int64_t>{1, -1, 2147483647, -2147483648LL, 0, 2147483647, 0, 255});
  CHECK(astype(x, DType::u8).to_vector<int>() == std::vector<int>{1, 0, 255, 0, 0, 255, 0, 255});
  CHECK(astype(x, DType::boolean).to_vector<int>() == std::vector<int>{1, 1, 1, 1, 1, 1, 1, 1});
  CHECK(astype(tensor({0.0, -0.0, 2.0}), DType::boolean).to_vector<int>() == std::vector<int>{0, 0, 1});
  CHECK(astype(tensor({1, 0}, DType::boolean), DType::f32).to_vector() == std::vector<double>{1, 0});
}

TEST_CASE("what does not fit is named", "[array][errors]") {
  const Tensor x = zeros({2, 3});
  CHECK_THROWS_WITH(reshape(x, {4, 2}), "reshape: element counts differ: x is f32[2,3], shape is [4,2]");
  CHECK_THROWS_WITH(reshape(x, {-1, 4}), "reshape: no extent fits in the place of -1: x is f32[2,3], shape is [-1,4]");
  CHECK_THROWS_WITH(reshape(x, {-1, -1}), "reshape: more than one extent is -1: shape is [-1,-1]");
  CHECK_THROWS_WITH(expand_dims(x, 3), "expand_dims: axis 3 is out of range for x, f32[2,3]; use -3..2");
  CHECK_THROWS_WITH(squeeze(x, {0}), "squeeze: axis 0 of x, f32[2,3], has more or less than one entry");
  CHECK_THROWS_WITH(transpose(x, {0, 0}), "transpose: perm does not name every axis of x once: perm is [0,0], x is f32[2,3]");
  CHECK_THROWS_WITH(transpose(x, {0}), "transpose: perm does not name every axis of x once: perm is [0], x is f32[2,3]");
  CHECK_THROWS_AS(transpose(x, {0, 1, 2}), ShapeError);
  CHECK_THROWS_WITH(broadcast_to(x, {3, 3}), "broadcast_to: x does not broadcast to shape: x is f32[2,3], shape is [3,3]");
  CHECK_THROWS_AS(broadcast_to(x, {3}), ShapeError);
  CHECK_THROWS_WITH(concat({x, zeros({3, 3})}, 1), "concat: shapes differ beside axis 1: a is f32[2,3], b is f32[3,3]");
  CHECK_THROWS_AS(concat({x, zeros({3})}, 0), ShapeError);
  CHECK_THROWS_AS(concat({tensor(1.0), tensor(2.0)}, 0), ShapeError);
  CHECK_THROWS_AS(concat({}, 0), ArgumentError);
  CHECK_THROWS_WITH(slice(x, {1, 1}, {2, 1}), "slice: the part reaches outside: begin is [1,1], size is [2,1], x is f32[2,3]");
  CHECK_THROWS_AS(slice(x, {-1, 0}, {1, 1}), ShapeError);
  CHECK_THROWS_WITH(slice(x, {1}, {1}), "slice: [1] and [1] are not of the rank of x, f32[2,3]");
  CHECK_THROWS_WITH(pad(x, {0, -1}, {0, 0}), "pad: a negative count: before is [0,-1], after is [0,0]");
  CHECK_THROWS_AS(pad(x, {0, std::numeric_limits<std::int64_t>::max()}, {0, 1}), ShapeError);
  CHECK_THROWS_AS(slice(x, {std::numeric_limits<std::int64_t>::min(), 0}, {1, 1}), ShapeError);
  CHECK_THROWS_AS(one_hot(x, 3), DTypeError);
  CHECK_THROWS_AS(one_hot(tensor(1), -1), ShapeError);
  CHECK_THROWS_WITH(gather(zeros({3, 4}), tensor({0, 1, 7})), "gather: index 7 at position 2 is out of range for axis 0 of x, f32[3,4]");
  CHECK_THROWS_WITH(gather(zeros({3, 4}), tensor({-1}), 1), "gather: index -1 at position 0 is out of range for axis 1 of x, f32[3,4]");
  CHECK_THROWS_AS(gather(x, x), DTypeError);
  CHECK_THROWS_AS(gather(x, tensor(0), 2), ShapeError);
  CHECK_THROWS_AS(gather(tensor(1.0), tensor(0)), ShapeError);
  CHECK_THROWS_WITH(scatter_add(zeros({1, 3}), tensor({2}), {2, 3}), "scatter_add: index 2 at position 0 is out of range for axis 0 of the result, f32[2,3]");
  CHECK_THROWS_AS(scatter_add(zeros({2, 3}), tensor({1}), {2, 3}), ShapeError);
  CHECK_THROWS_AS(scatter_add(zeros({1, 4}), tensor({1}), {2, 3}), ShapeError);
  CHECK_THROWS_AS(scatter_add(zeros({3}), tensor({1}), {2, 3}), ShapeError);
}
