// Slicing and joining: all dtypes against a plain loop, NumPy's rules for slices, shared memory, gradients of
// unused parts, and exact error texts. The op table test covers values and derivatives of the single ops.
#include <catch2/catch.hpp>
#include <limits>

#include "closeness.h"
#include "core/bytes.h"
#include "elements.h"
#include "tapedeck/gradcheck.h"
#include "tapedeck/memory.h"

namespace slice_test {

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

constexpr std::int64_t kLowest = std::numeric_limits<std::int64_t>::min(),
                       kHighest = std::numeric_limits<std::int64_t>::max();

// The positions of begin:end:stride among n.
Index positions(const Slice& s, std::int64_t n) {
  const auto from_start = [&](std::int64_t i) { return i < 0 ? i + n : i; };
  Index found;
  if (s.stride > 0) {
    const std::int64_t end = s.end ? from_start(*s.end) : n;
    std::int64_t i = s.begin ? from_start(*s.begin) : 0;
    if (i < 0) i = 0;
    for (; i < end && i < n; i += s.stride)
      found.push_back(i);
  } else {
    const std::int64_t end = s.end ? from_start(*s.end) : -1;
    std::int64_t i = s.begin ? from_start(*s.begin) : n - 1;
    if (i >= n) i = n - 1;
    for (; i > end && i >= 0; i += s.stride)
      found.push_back(i);
  }
  return found;
}

std::vector<int> ints(const Tensor& x) { return x.to_vector<int>(); }

}   // namespace

TEST_CASE("slice extracts a part, pad puts it back among zeros", "[parts]") {
  const std::tuple<Shape, Shape, Shape> examples[] = {{{10}, {3}, {4}},
                                                      {{5, 7}, {1, 2}, {3, 4}},
                                                      {{5, 7}, {0, 6}, {5, 1}},
                                                      {{4, 5, 6}, {1, 0, 2}, {2, 5, 3}},
                                                      {{4, 5, 6}, {2, 1, 0}, {1, 3, 6}},
                                                      {{3, 4}, {3, 0}, {0, 4}}};
  for (const DType dtype : kAll)
    for (const auto& example : examples) {
      const auto& begin = std::get<1>(example);
      const Tensor x = counted(std::get<0>(example), dtype);
      INFO(to_string(x.spec()) << " from " << to_string(begin));
      const Tensor part = slice(x, begin, std::get<2>(example));
      CHECK(part.shape() == std::get<2>(example));
      CHECK(maps(part, x, [&](Index at) {
        for (int d = 0; d < x.ndim(); ++d)
          at[static_cast<std::size_t>(d)] += begin[d];
        return at;
      }));
      Shape after;
      for (int d = 0; d < x.ndim(); ++d)
        after.push_back(x.shape()[d] - begin[d] - part.shape()[d]);
      const Tensor around = pad(part, begin, after);
      CHECK(around.shape() == x.shape());
      CHECK(slice(around, begin, part.shape()).to_vector() == part.to_vector());
      CHECK(sum(astype(around, DType::f64)).item() == sum(astype(part, DType::f64)).item());
    }
  CHECK(slice(zeros({3, 4}), {1, 1}, {-1, 2}).shape() == Shape{2, 2});
}

TEST_CASE("concat joins along any axis", "[parts]") {
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

TEST_CASE("strided_slice selects by begin, end and stride", "[parts]") {
  std::vector<std::optional<std::int64_t>> ends = {{}, kLowest, kHighest};
  for (std::int64_t i = -7; i <= 7; ++i)
    ends.push_back(i);
  int wrong = 0;
  for (std::int64_t n = 0; n <= 5; ++n) {
    const Tensor x = arange(n);
    for (const auto& begin : ends)
      for (const auto& end : ends)
        for (const std::int64_t stride : {-6, -3, -2, -1, 1, 2, 3, 6}) {
          const Slice s(begin, end, stride);
          wrong += strided_slice(x, {s}).to_vector<std::int64_t>() != positions(s, n);
        }
  }
  CHECK(wrong == 0);
  CHECK(ints(strided_slice(arange(5), {{{}, {}, kHighest}})) == std::vector<int>{0});
  CHECK(ints(strided_slice(arange(5), {{{}, {}, kLowest}})) == std::vector<int>{4});
}

TEST_CASE("strided_slice along several axes", "[parts]") {
  for (const DType dtype : kAll) {
    const Tensor x = counted({5, 6, 7, 40}, dtype);
    const auto at = [&](const Tensor& y, const std::vector<Index>& along) {
      return maps(y, x, [&](const Index& index) {
        Index from;
        std::size_t next = 0;
        for (const Index& p : along)
          from.push_back(p.size() == 1 ? p[0] : p[static_cast<std::size_t>(index[next++])]);
        return from;
      });
    };
    const Index all5{0, 1, 2, 3, 4}, all6{0, 1, 2, 3, 4, 5}, all7{0, 1, 2, 3, 4, 5, 6};
    Index all40(40), odd, back(40);
    for (std::int64_t i = 0; i < 40; ++i)
      all40[static_cast<std::size_t>(i)] = i, back[static_cast<std::size_t>(i)] = 39 - i;
    for (std::int64_t i = 1; i < 40; i += 2)
      odd.push_back(i);
    CHECK(at(strided_slice(x, {}), {all5, all6, all7, all40}));
    CHECK(at(strided_slice(x, {2}), {{2}, all6, all7, all40}));
    CHECK(at(strided_slice(x, {-1, {1, 3}}), {{4}, {1, 2}, all7, all40}));
    CHECK(at(strided_slice(x, {{}, {}, {}, {1, {}, 2}}), {all5, all6, all7, odd}));
    CHECK(at(strided_slice(x, {{{}, {}, -2}, {}, 3}), {{4, 2, 0}, all6, {3}, all40}));
    CHECK(at(strided_slice(x, {Slice::ellipsis, {{}, {}, -1}}), {all5, all6, all7, back}));
    CHECK(at(strided_slice(x, {0, Slice::ellipsis, -2}), {{0}, all6, all7, {38}}));
    CHECK(at(strided_slice(x, {{1, 5, 3}, {{}, 2}, {5, {}, -4}, {3, 39, 5}}),
             {{1, 4}, {0, 1}, {5, 1}, {3, 8, 13, 18, 23, 28, 33, 38}}));
    CHECK(at(strided_slice(x, {1, 2, 3, 4}), {{1}, {2}, {3}, {4}}));
    CHECK(strided_slice(x, {1, 2, 3, 4}).shape() == Shape{});
  }
}

TEST_CASE("new axes and ellipses of strided_slice", "[parts]") {
  const Tensor x = counted({3, 4, 5}, DType::i32);
  const Slice ellipsis = Slice::ellipsis, new_axis = Slice::new_axis;
  CHECK(strided_slice(x, {new_axis}).shape() == Shape{1, 3, 4, 5});
  CHECK(strided_slice(x, {{}, new_axis, 2}).shape() == Shape{3, 1, 5});
  CHECK(strided_slice(x, {ellipsis, new_axis}).shape() == Shape{3, 4, 5, 1});
  CHECK(strided_slice(x, {new_axis, ellipsis, 0, new_axis, {1, 2}}).shape() == Shape{1, 3, 1, 1});
  CHECK(strided_slice(x, {0, 0, 0, ellipsis, new_axis}).shape() == Shape{1});
  CHECK(ints(strided_slice(x, {ellipsis, new_axis, 1})) == ints(strided_slice(x, {{}, {}, 1})));
  CHECK(strided_slice(tensor(7), {ellipsis}).item<int>() == 7);
  CHECK(strided_slice(tensor(7), {new_axis, new_axis}).shape() == Shape{1, 1});
  CHECK(strided_slice(x, {{2, 2}, 1}).shape() == Shape{0, 5});
}

TEST_CASE("contiguous parts share memory, small ones do not hold a large tensor", "[parts]") {
  const Tensor x = random::uniform({8, 50, 20}, {.seed = 1});
  const auto offset = [&](const Tensor& y) { return (y.raw() - x.raw()) / 4; };
  CHECK(offset(slice(x, {2, 0, 0}, {3, 50, 20})) == 2000);
  CHECK(offset(slice(x, {2, 5, 0}, {1, 2, 20})) == 2100);
  CHECK(offset(strided_slice(x, {3})) == 3000);
  CHECK(offset(strided_slice(x, {3, {1, 9}, Slice::new_axis})) == 3020);
  CHECK(offset(strided_slice(x, {{{}, {}, 9}})) == 0);
  const std::vector<Tensor> parts = split(x, 4), rows = unstack(x);
  for (std::size_t k = 0; k < 4; ++k)
    CHECK(offset(parts[k]) == static_cast<std::ptrdiff_t>(2000 * k));
  for (std::size_t k = 0; k < 8; ++k)
    CHECK(offset(rows[k]) == static_cast<std::ptrdiff_t>(1000 * k));
  CHECK(offset(split(rows[1], {10, 40})[1]) == 1200);
  std::int64_t before = live_bytes();
  const Tensor few = split(random::uniform({1000, 2}, {.seed = 1}), {999, 1})[1];
  CHECK(live_bytes() == before);
}

TEST_CASE("concat and stack join many short rows", "[parts]") {
  const std::int64_t rows = 70'001;   // more than stay in a cache at a time, and not a multiple
  const Tensor a = arange(rows, DType::f64), b = reshape(arange(2 * rows, DType::f64), {rows, 2}) + 0.5;
  const std::vector<double> joined = concat({expand_dims(a, 1), b}, 1).to_vector(),
                            stacked = stack({a, -a, 2 * a}, 1).to_vector();
  REQUIRE((joined.size() == 3 * 70'001 && stacked.size() == joined.size()));
  int wrong = 0;
  for (std::size_t i = 0; i < joined.size(); i += 3) {
    const auto row = static_cast<double>(i / 3);
    wrong += joined[i] != row || joined[i + 1] != 2 * row + 0.5 || joined[i + 2] != 2 * row + 1.5;
    wrong += stacked[i] != row || stacked[i + 1] != -row || stacked[i + 2] != 2 * row;
  }
  CHECK(wrong == 0);
}

TEST_CASE("split cuts, concat joins again", "[parts]") {
  for (const DType dtype : kAll)
    for (const Shape& shape :
         {Shape{6}, Shape{6, 5}, Shape{2, 6, 3}, Shape{3, 2, 6}, Shape{0, 6}, Shape{6, 0}, Shape{2, 6, 1}}) {
      const Tensor x = counted(shape, dtype);
      int axis = 0;
      while (shape[axis] != 6)
        ++axis;
      INFO(to_string(x.spec()));
      for (const std::vector<std::int64_t>& sizes :
           {std::vector<std::int64_t>{1, 2, 3}, {6}, {0, 6, 0}, {5, 1}, {1, 1, 1, 1, 1, 1}}) {
        const std::vector<Tensor> parts = split(x, sizes, axis);
        REQUIRE(parts.size() == sizes.size());
        std::int64_t begin = 0;
        for (std::size_t k = 0; k < parts.size(); ++k) {
          CHECK(parts[k].shape()[axis] == sizes[k]);
          CHECK(maps(parts[k], x, [&](Index at) {
            at[static_cast<std::size_t>(axis)] += begin;
            return at;
          }));
          begin += sizes[k];
        }
        const Tensor whole = concat(parts, axis);
        CHECK(whole.shape() == shape);
        CHECK(whole.to_vector() == x.to_vector());
      }
      for (const int count : {1, 2, 3, 6}) {
        const std::vector<Tensor> parts = split(x, count, axis - x.ndim());
        REQUIRE(parts.size() == static_cast<std::size_t>(count));
        for (const Tensor& part : parts)
          CHECK(part.shape()[axis] == 6 / count);
        CHECK(concat(parts, axis).to_vector() == x.to_vector());
      }
    }
  CHECK(split(arange(6), {2, -1})[1].size() == 4);
  CHECK(split(arange(6), {2, -1, 4})[1].size() == 0);
  CHECK(split(arange(6), {6}).size() == 1);   // one part of six, not six parts
}

TEST_CASE("unstack takes the entries, stack puts them together", "[parts]") {
  for (const DType dtype : kAll)
    for (const Shape& shape :
         {Shape{4}, Shape{4, 5}, Shape{2, 4, 3}, Shape{4, 0}, Shape{1, 4, 1}, Shape{3, 2, 4}})
      for (int axis = -shape.ndim(); axis < shape.ndim(); ++axis) {
        const Tensor x = counted(shape, dtype);
        const int at = axis < 0 ? axis + x.ndim() : axis;
        INFO(to_string(x.spec()) << " along " << axis);
        const std::vector<Tensor> entries = unstack(x, axis);
        REQUIRE(entries.size() == static_cast<std::size_t>(shape[at]));
        for (std::size_t k = 0; k < entries.size(); ++k)
          CHECK(maps(entries[k], x, [&](Index index) {
            index.insert(index.begin() + at, static_cast<std::int64_t>(k));
            return index;
          }));
        if (entries.empty()) continue;
        CHECK(stack(entries, axis).shape() == shape);
        CHECK(stack(entries, axis).to_vector() == x.to_vector());
      }
  CHECK(unstack(zeros({3, 0}), 1).empty());
  CHECK(stack({tensor(1), tensor(2.5)}).spec() == Spec{DType::f64, {2}});
  CHECK(concat({tensor({1}), tensor({1}, DType::boolean)}, 0).dtype() == DType::i32);
}

// Copies of columns go through blocks of up to 64 columns.
TEST_CASE("columns and short parts of many rows", "[parts]") {
  for (const DType dtype : kAll)
    for (const Shape& shape : {Shape{8, 2}, Shape{7, 3}, Shape{2000, 3}, Shape{301, 15}, Shape{70, 130}}) {
      const Tensor x = counted(shape, dtype), turned = transpose(x);
      INFO(to_string(x.spec()));
      const std::vector<Tensor> columns = unstack(x, 1), rows = unstack(turned);
      for (std::size_t k = 0; k < columns.size(); ++k)
        CHECK(same_bits(columns[k], rows[k]));
      CHECK(same_bits(stack(columns, 1), x));
      const std::vector<Tensor> narrow = split(x, static_cast<int>(shape[1]), 1);
      CHECK(same_bits(narrow.back(), expand_dims(rows.back(), 1)));
      CHECK(same_bits(concat(narrow, 1), x));
      const std::vector<Tensor> parts = split(x, {0, shape[1] - 1, 1}, 1);
      CHECK(same_bits(transpose(parts[1]), slice(turned, {0, 0}, {shape[1] - 1, shape[0]})));
      CHECK(same_bits(parts[2], narrow.back()));
      CHECK(same_bits(concat(parts, 1), x));
    }
}

TEST_CASE("unused parts have gradients of zero", "[parts]") {
  const Tensor x = random::normal({3, 8}, {.seed = 1}), weights = random::normal({3, 8}, {.seed = 2});
  const std::vector<std::int64_t> sizes{1, 2, 0, 3, 2};
  for (unsigned used = 1; used < 32; ++used) {
    if (used == 4) continue;   // an empty part has no gradient to check
    INFO("parts " << used);
    GradientTape tape({.persistent = true});
    tape.watch(x);
    const std::vector<Tensor> parts = split(x, sizes, 1), w = split(weights, sizes, 1);
    std::vector<Tensor> targets, expected;
    for (std::size_t k = 0; k < sizes.size(); ++k) {
      if (used >> k & 1) targets.push_back(parts[k] * w[k]);
      expected.push_back(used >> k & 1 ? w[k] : zeros_like(w[k]));
    }
    CHECK(same_bits(tape.gradient(Targets(targets), Sources(x))[0].dense(), concat(expected, 1)));
  }
  for (unsigned used = 1; used < 8; ++used) {
    GradientTape tape;
    tape.watch(x);
    const std::vector<Tensor> rows = unstack(x), w = unstack(weights);
    std::vector<Tensor> targets, expected;
    for (std::size_t k = 0; k < 3; ++k) {
      if (used >> k & 1) targets.push_back(rows[k] * w[k]);
      expected.push_back(used >> k & 1 ? w[k] : zeros_like(w[k]));
    }
    CHECK(same_bits(tape.gradient(Targets(targets), Sources(x))[0].dense(), stack(expected)));
  }
  GradientTape tape;
  tape.watch(x);
  (void)split(x, 2, 1);
  CHECK_FALSE(tape.gradient(weights, x).defined());
}

TEST_CASE("some of the parts, to second order", "[parts]") {
  const Tensor x = astype(random::uniform({3, 8}, {.seed = 1}), DType::f64);
  const Tensor y = astype(random::uniform({3, 2}, {.seed = 2}), DType::f64),
               other = astype(random::uniform({3, 2}, {.seed = 3}), DType::f64);
  CHECK(check_gradients(
      [](const std::vector<Tensor>& in) {
        return split(in[0], {1, 2, 3, 2}, 1)[1] * square(in[1]);
      },
      {x, y}));
  CHECK(check_gradients(
      [](const std::vector<Tensor>& in) {
        const std::vector<Tensor> parts = split(in[0] * in[0], 4, -1);
        return parts[0] * parts[2] + in[1];
      },
      {x, y}));
  CHECK(check_gradients(
      [](const std::vector<Tensor>& in) {
        const std::vector<Tensor> columns = unstack(in[0], 1);
        return columns[1] * square(columns[6]);
      },
      {x}));
  // The gradient of only one joined input is wanted, or of several.
  CHECK(check_gradients(
      [&](const std::vector<Tensor>& in) {
        return square(concat({other, in[0] * in[0], other}, 1));
      },
      {x}));
  CHECK(check_gradients(
      [&](const std::vector<Tensor>& in) {
        return square(stack({other, in[0] * in[0], other}, 1));
      },
      {y}));
  CHECK(check_gradients(
      [&](const std::vector<Tensor>& in) {
        return square(stack({in[1], in[0], other, in[0]}, -1));
      },
      {y, 2 * y}));
}

TEST_CASE("parts of no elements with huge extents", "[parts]") {
  const std::int64_t n = std::int64_t{1} << 40;
  const Tensor x = huge_and_empty();   // [n, 0, n]
  CHECK(slice(x, {1, 0, n - 1}, {2, 0, 1}).shape() == Shape{2, 0, 1});
  CHECK(strided_slice(x, {{5, {}, -2}, {}, n - 1}).shape() == Shape{3, 0});
  CHECK(concat({x, x}, 1).shape() == x.shape());
  CHECK(concat({x, x}, 0).shape() == Shape{2 * n, 0, n});
  CHECK(stack({x, x}, 1).shape() == Shape{n, 2, 0, n});
  CHECK(split(x, 4, 2)[3].shape() == Shape{n, 0, n / 4});
  CHECK(unstack(x, 1).empty());
  CHECK(pad(x, {1, 0, 0}, {0, 0, 3}).shape() == Shape{n + 1, 0, n + 3});
  CHECK_THROWS_WITH(unstack(x),
                    "unstack: axis 0 of x, f32[1099511627776,0,1099511627776], has too many entries");
  CHECK_THROWS_AS(pad(x, {0, 1, 0}, {0, 0, 0}), ShapeError);
  const Tensor half = zeros({kHighest, 0});
  CHECK_THROWS_AS(concat({half, half}, 0), ShapeError);
  GradientTape tape;
  tape.watch(x);
  const Tensor y = strided_slice(x, {{1, 3}}), z = concat(split(x, 2, 2), 2), w = stack({x, x}, 1);
  CHECK(tape.gradient({y, z, w}, x).dense().shape() == x.shape());
}

TEST_CASE("errors name the part that does not fit", "[parts][errors]") {
  const Tensor x = zeros({2, 3});
  CHECK_THROWS_WITH(concat({x, zeros({3, 3})}, 1),
                    "concat: shapes must match except along axis 1: a is f32[2,3], b is f32[3,3]");
  CHECK_THROWS_AS(concat({x, zeros({3})}, 0), ShapeError);
  CHECK_THROWS_AS(concat({tensor(1.0), tensor(2.0)}, 0), ShapeError);
  CHECK_THROWS_AS(concat({}, 0), ArgumentError);
  CHECK_THROWS_WITH(slice(x, {1, 1}, {2, 1}),
                    "slice: the slice is out of range: begin is [1,1], size is [2,1], x is f32[2,3]");
  CHECK_THROWS_AS(slice(x, {-1, 0}, {1, 1}), ShapeError);
  CHECK_THROWS_WITH(slice(x, {1}, {1}), "slice: [1] and [1] need one entry for each axis of x, f32[2,3]");
  CHECK_THROWS_WITH(pad(x, {0, -1}, {0, 0}), "pad: a negative count: before is [0,-1], after is [0,0]");
  CHECK_THROWS_AS(pad(x, {0, std::numeric_limits<std::int64_t>::max()}, {0, 1}), ShapeError);
  CHECK_THROWS_AS(slice(x, {std::numeric_limits<std::int64_t>::min(), 0}, {1, 1}), ShapeError);
  CHECK_THROWS_WITH(strided_slice(x, {1, 3}),
                    "strided_slice: index 3 is out of range for axis 1 of x, f32[2,3]");
  CHECK_THROWS_WITH(strided_slice(x, {-3}),
                    "strided_slice: index -3 is out of range for axis 0 of x, f32[2,3]");
  CHECK_THROWS_AS(strided_slice(x, {kLowest}), ShapeError);
  CHECK_THROWS_WITH(strided_slice(x, {{}, {0, 2, 0}}), "strided_slice: the stride along axis 1 is 0");
  CHECK_THROWS_AS(strided_slice(x, {{}, {0, 2, 0}}), ArgumentError);
  CHECK_THROWS_WITH(strided_slice(x, {0, 0, {}}), "strided_slice: 3 slices for x of rank 2");
  CHECK_THROWS_WITH(strided_slice(x, {Slice::ellipsis, Slice::ellipsis}),
                    "strided_slice: more than one ellipsis");
  CHECK_THROWS_AS(strided_slice(tensor(1.0), {0}), ShapeError);
  CHECK_THROWS_AS(strided_slice(zeros({1, 1, 1, 1, 1, 1, 1, 1}), {Slice::new_axis}), ShapeError);
  CHECK_THROWS_WITH(stack({x, zeros({2})}), "stack: shapes differ: a is f32[2,3], b is f32[2]");
  CHECK_THROWS_WITH(stack({x, x}, 3), "stack: axis 3 is out of range for x, f32[2,3]; use -3..2");
  CHECK_THROWS_AS(stack({}), ArgumentError);
  CHECK_THROWS_WITH(stack({zeros({1, 1, 1, 1, 1, 1, 1, 1})}),
                    "stack: more than 8 axes: a is f32[1,1,1,1,1,1,1,1]");
  CHECK_THROWS_WITH(split(x, 2, 1), "split: axis 1 of x, f32[2,3], cannot be split into 2 equal parts");
  CHECK_THROWS_WITH(split(x, 0), "split: 0 parts; use 1 or more");
  CHECK_THROWS_AS(split(x, 2, 2), ShapeError);
  CHECK_THROWS_AS(split(tensor(1.0), 1), ShapeError);
  CHECK_THROWS_WITH(split(x, {1, 1}, 1),
                    "split: the sizes do not add up to axis 1 of x: sizes are [1,1], x is f32[2,3]");
  CHECK_THROWS_AS(split(x, {1, 3}, 1), ShapeError);
  CHECK_THROWS_AS(split(x, {-1, -1}, 1), ShapeError);
  CHECK_THROWS_AS(split(x, {-2, 5}, 1), ShapeError);
  CHECK_THROWS_AS(split(x, {kHighest, kHighest, 5}, 1), ShapeError);
  CHECK_THROWS_AS(split(x, std::span<const std::int64_t>()), ArgumentError);
  CHECK_THROWS_AS(unstack(x, -3), ShapeError);
  CHECK_THROWS_AS(unstack(Tensor()), ArgumentError);
  CHECK_THROWS_AS(concat({x, Tensor()}, 0), ArgumentError);
}

}   // namespace slice_test
