// Sorting, selecting, grouping and merging, at the sizes and inputs where their kernels change algorithm,
// compared with plain loops.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <sstream>

#include "message_of.h"
#include "ops/op_samples.h"
#include "ops/sample_inputs.h"
#include "tapedeck/gradcheck.h"
#include "tapedeck/tapedeck.h"

namespace sort_test {

using namespace tapedeck;
using namespace tapedeck::test;
using samples::f64;
using samples::uniform;

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// The positions of the first k elements of a row in a stable sort, largest first, and NaN before all others.
std::vector<std::int64_t> largest(const std::vector<double>& x, std::int64_t k) {
  std::vector<std::int64_t> order(x.size());
  std::iota(order.begin(), order.end(), 0);
  const auto at = [&](std::int64_t i) { return x[static_cast<std::size_t>(i)]; };
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    return std::isnan(at(a)) ? !std::isnan(at(b)) : at(a) > at(b);
  });
  order.resize(static_cast<std::size_t>(k));
  return order;
}

}   // namespace

TEST_CASE("top_k is the start of a stable sort, whatever the row looks like", "[order]") {
  for (const std::int64_t n : {41, 127, 128, 1000, 4096, 4097, 9000, 20000})
    for (const std::int64_t k : {1, 7, 10, 100, 1500}) {
      if (4 * k >= n) continue;
      std::vector<std::pair<const char*, std::vector<double>>> rows;
      const std::vector<double> random = uniform({n}, -1, 1).to_vector();
      rows.push_back({"random", random});
      rows.push_back({"ascending", arange(n, DType::f64).to_vector()});
      rows.push_back({"descending", (-arange(n, DType::f64)).to_vector()});
      rows.push_back({"equal", std::vector<double>(static_cast<std::size_t>(n), 3.0)});
      rows.push_back({"few values", round(uniform({n}, -1, 1) * 2.0).to_vector()});
      rows.push_back({"nan", random});
      for (std::size_t i = 3; i < rows.back().second.size(); i += 11)
        rows.back().second[i] = kNaN;
      rows.push_back({"the largest last", std::vector<double>(static_cast<std::size_t>(n), 0.0)});
      rows.back().second.back() = 1;
      rows.push_back({"infinite", std::vector<double>(static_cast<std::size_t>(n),
                                                      -std::numeric_limits<double>::infinity())});
      for (const auto& [name, row] : rows)
        for (const DType dtype : {DType::f64, DType::f32}) {
          INFO(name << ", " << k << " of " << n);
          const Tensor x = astype(tensor(row, {n}), dtype);
          const TopK top = top_k(x, k);
          CHECK(top.indices.to_vector<std::int64_t>() == largest(x.to_vector(), k));
          CHECK(close(top.values, take_along_axis(x, top.indices), 0));
        }
    }
  const Tensor bytes = astype(arange(5000, DType::i64), DType::u8);   // 255 is at positions 255, 511, …
  CHECK(top_k(bytes, 3).indices.to_vector<std::int64_t>() == std::vector<std::int64_t>{255, 511, 767});
}

TEST_CASE("argsort and sort agree, along every axis", "[order]") {
  for (const Shape& shape : {Shape{37}, Shape{500, 3}, Shape{2, 3, 401}})
    for (int axis = 0; axis < shape.ndim(); ++axis)
      for (const bool descending : {false, true}) {
        const Tensor x = uniform(shape, -1, 1);
        CHECK(close(take_along_axis(x, argsort(x, axis, {.descending = descending}), axis),
                    sort(x, axis, {.descending = descending}), 0));
      }
}

TEST_CASE("groups of rows in order agree with sums row by row", "[order][segment]") {
  for (const std::int64_t width : {1, 3, 8, 15, 16, 17, 37, 128, 131, 300})
    for (const DType dtype : {DType::f64, DType::f32, DType::i32}) {
      INFO(width << " columns of " << to_string(Spec{dtype, {}}));
      const std::vector<std::int64_t> ids = {0, 0, 0, 2, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3,
                                             3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 5};
      const Tensor x = astype(round(uniform({37, width}, -9, 9)), dtype);
      std::vector<double> sum(static_cast<std::size_t>(6 * width)), most(sum.size(), -100),
          least(sum.size(), 100), count(6);
      const std::vector<double> v = x.to_vector();
      for (std::size_t i = 0; i < 37; ++i) {
        const auto j = static_cast<std::size_t>(ids[i]), w = static_cast<std::size_t>(width);
        ++count[j];
        for (std::size_t a = 0; a < w; ++a) {
          sum[j * w + a] += v[i * w + a];
          most[j * w + a] = std::max(most[j * w + a], v[i * w + a]);
          least[j * w + a] = std::min(least[j * w + a], v[i * w + a]);
        }
      }
      for (double& e : most)
        e = e == -100 ? 0 : e;
      for (double& e : least)
        e = e == 100 ? 0 : e;
      for (const Tensor& list : {tensor(ids), astype(tensor(ids), DType::i32)}) {
        CHECK(segment_sum(x, list).to_vector() == sum);
        CHECK(segment_max(x, list).to_vector() == most);
        CHECK(segment_min(x, list).to_vector() == least);
        CHECK(sparse_segment_sum(reverse(x, {0}), arange(36, -1, -1, DType::i64), list).to_vector() == sum);
      }
      if (dtype == DType::i32) continue;
      const Tensor divisors = reshape(maximum(tensor(count), 1), {6, 1});
      CHECK(close(segment_mean(x, tensor(ids)), astype(tensor(sum, {6, width}) / divisors, dtype), 1e-6));
    }
  CHECK(segment_max(f64({1, kNaN, 3, 4}), tensor({0, 0, 1, 1})).to_vector()[1] == 4);
  CHECK(std::isnan(segment_max(f64({1, kNaN, 3, 4}), tensor({0, 0, 1, 1})).to_vector()[0]));
}

TEST_CASE("selected rows have slices as their gradient, which are summed only on request",
          "[order][segment]") {
  const Tensor x = uniform({100, 3}, -1, 1);
  GradientTape tape;
  tape.watch(x);
  const Gradient g = tape.gradient(sparse_segment_mean(x, tensor({7, 3, 7}), tensor({0, 0, 1})), x);
  REQUIRE(g.slices());
  CHECK(g.slices()->values.shape() == Shape{3, 3});
  CHECK(close(g.slices()->values, f64({{0.5, 0.5, 0.5}, {0.5, 0.5, 0.5}, {1, 1, 1}}), 0));
  CHECK(close(slice(g.dense(), {7, 0}, {1, 3}), f64({{1.5, 1.5, 1.5}}), 0));
}

TEST_CASE("a stitch undoes a partition", "[order]") {
  const Tensor x = uniform({4, 5, 3}, -1, 1),
               numbers = reshape(astype(random::uniform({20}, {3}, 0, 3), DType::i32), {4, 5});
  const Tensor places = reshape(arange(20), {4, 5});
  CHECK(close(dynamic_stitch(dynamic_partition(places, numbers, 3), dynamic_partition(x, numbers, 3)),
              reshape(x, {20, 3}), 0));
  std::vector<Tensor> many, their_places;   // more inputs than an op keeps bits for
  for (std::int64_t m = 0; m < 40; ++m)
    many.push_back(uniform({2}, -1, 1, static_cast<int>(m))),
        their_places.push_back(tensor({39 - m, 79 - m}));
  const Tensor y = dynamic_stitch(their_places, many);
  CHECK(close(slice(y, {0}, {1}), slice(many[39], {0}, {1}), 0));
  CHECK(close(slice(y, {79}, {1}), slice(many[0], {1}, {1}), 0));
  CHECK(check_gradients([&](const std::vector<Tensor>& t) { return square(dynamic_stitch(their_places, t)); },
                        many));
}

TEST_CASE("masks of single elements and of rows", "[order]") {
  for (const std::int64_t n : {1, 7, 64, 1000}) {
    const Tensor x = uniform({n, 3}, -1, 1), mask = greater(x, 0.25),
                 rows = greater(squeeze(slice(x, {0, 0}, {n, 1}), {1}), 0.0);
    std::vector<double> kept;
    for (const double e : x.to_vector())
      if (e > 0.25) kept.push_back(e);
    CHECK(boolean_mask(x, mask).to_vector() == kept);
    CHECK(boolean_mask(x, rows).shape() == Shape{count_nonzero(rows).to_vector<std::int64_t>()[0], 3});
    GradientTape tape;
    tape.watch(x);
    CHECK(close(tape.gradient(boolean_mask(x, mask), x).dense(), astype(mask, DType::f64), 0));
  }
}

TEST_CASE("einsum keeps gradients of sums, repeated axes and three operands", "[order][einsum]") {
  const Tensor a = uniform({2, 3}, -1, 1), b = uniform({3, 4}, -1, 1, 1), c = uniform({4, 2}, -1, 1, 2),
               square_one = uniform({3, 3}, -1, 1, 3), row = uniform({1, 4}, -1, 1, 4);
  CHECK(check_gradients([](const std::vector<Tensor>& t) { return einsum("ij,jk,kl->li", t); }, {a, b, c}));
  CHECK(check_gradients([](const std::vector<Tensor>& t) { return einsum("ii,ij->j", t); }, {square_one, b}));
  CHECK(check_gradients([](const std::vector<Tensor>& t) { return einsum("ij,kl->k", t); }, {a, b}));
  CHECK(check_gradients([](const std::vector<Tensor>& t) { return einsum("...j,...j->...", t); }, {b, row}));
  CHECK(check_gradients([](const std::vector<Tensor>& t) { return einsum("ij,ij->", {t[0], t[0]}); }, {a}));
  CHECK(einsum("ij,jk->ik", {astype(a, DType::f32), b}).dtype() == DType::f64);
}

TEST_CASE("errors of groups, masks, parts, copies and diagonals", "[order]") {
  const Tensor x = zeros({2, 3});
  CHECK(message_of([&] {
          segment_sum(x, tensor({0, -1}));
        }) ==
        "segment_sum: id -1 at position 1 is negative or less than the one before; use unsorted_segment ops");
  CHECK(message_of([&] {
          segment_mean(astype(x, DType::i32), tensor({0, 1}));
        }) ==
        "segment_mean: takes f32, f64, f16, bf16, c64 or c128, use astype: x is i32[2,3], ids is i32[2]");
  CHECK(message_of([&] {
          sparse_segment_sum(x, tensor({0, 2}), tensor({0, 1}));
        }) == "sparse_segment_sum: index 2 at position 1 is out of range for axis 0 of x, f32[2,3]");
  CHECK(message_of([&] {
          sparse_segment_sum(x, tensor({0, 1}), tensor({0, 3}), 2);
        }) == "sparse_segment_sum: id 3 is out of range for 2 groups");
  CHECK(message_of([&] {
          sparse_segment_mean(x, tensor({0, 1}), tensor({0}));
        }) ==
        "sparse_segment_mean: ids must have the shape of indices: x is f32[2,3], indices is i32[2], ids is "
        "i32[1]");
  CHECK(message_of([&] {
          take_along_axis(x, tensor({{0}, {3}}));
        }) == "take_along_axis: index 3 at position 1 is out of range for axis 1 of x, f32[2,3]");
  CHECK(message_of([&] {
          tensor_scatter_sub(x, tensor({{2}}), zeros({1, 3}));
        }) == "tensor_scatter_sub: index [2] at position 0 is out of range for x, f32[2,3]");
  CHECK(message_of([&] { boolean_mask(x, zeros({2})); }) ==
        "boolean_mask: mask must be bool: x is f32[2,3], mask is f32[2]");
  CHECK(message_of([&] {
          dynamic_stitch(std::vector<Tensor>{tensor({0, 2})}, std::vector<Tensor>{x});
        }) == "dynamic_stitch: no index is 1, but the largest is 2");
  CHECK(message_of([&] {
          dynamic_partition(x, tensor({0, 1}), 0);
        }) == "dynamic_partition: 0 parts; use 1 or more");
  CHECK(message_of([&] { repeat(x, -1); }) == "repeat: the count is -1; use 0 or more");
  CHECK(message_of([&] { repeat(x, std::vector<std::int64_t>{1}, 1); }) ==
        "repeat: the list of counts has length 1, but axis 1 of x, f32[2,3], has 3 entries; use repeat(x, n) "
        "for "
        "n copies of each");
  CHECK(message_of([&] { fill({2}, x); }) == "fill: the value must be of rank 0: value is f32[2,3]");
  CHECK(message_of([&] { matrix_set_diag(x, zeros({3})); }) ==
        "matrix_set_diag: diagonal must be [2]: x is f32[2,3], diagonal is f32[3]");
  CHECK(message_of([&] { diag_part(x); }) ==
        "diag_part: the two halves of the axes must have equal extents: x is f32[2,3]");
  CHECK(message_of([&] { assert_that(x, "text"); }) ==
        "assert_that: takes bool, compare first: condition is f32[2,3]");
  CHECK(message_of([&] {
          einsum("ij,jk->ik", {astype(x, DType::boolean), ones({3, 2}, DType::boolean)});
        }).find("bool has no arithmetic") != std::string::npos);
}

TEST_CASE("ops of order name themselves where numbers are complex", "[sort]") {
  const Tensor x = astype(ones({2}), DType::c64);
  const std::string why = ": complex numbers are not supported, take real, imag or abs: x is c64[2]";
  CHECK(message_of<DTypeError>([&] { sort(x); }) == "sort" + why);
  CHECK(message_of<DTypeError>([&] { unique(x); }) == "unique" + why);
  CHECK(message_of<DTypeError>([&] { nonzero(x); }) == "nonzero" + why);
  CHECK(message_of<DTypeError>([&] { count_nonzero(x); }) == "count_nonzero" + why);
}

TEST_CASE("functions made of ops name themselves in their errors", "[sort]") {
  const Tensor n = tensor({1, 2});
  CHECK(message_of<DTypeError>([&] { mean_squared_error(n, n); }) ==
        "mean_squared_error: takes f32, f64, f16 or bf16, use astype: labels and predictions are i32");
  CHECK(message_of<DTypeError>([&] { huber_loss(n, n); }) ==
        "huber_loss: takes f32, f64, f16 or bf16, use astype: labels and predictions are i32");
  const Tensor flags = ones({2}, DType::boolean), z = ones({2}, DType::c64);
  CHECK(message_of<DTypeError>([&] { unsorted_segment_mean(flags, n, 3); }) ==
        "unsorted_segment_mean: takes f32, f64, f16 or bf16, use astype: x is bool[2]");
  for (const Tensor& x : {flags, z}) {
    CHECK_THROWS_AS(mean_squared_error(x, x), DTypeError);
    CHECK_THROWS_AS(huber_loss(x, x), DTypeError);
  }
  CHECK_THROWS_AS(huber_loss(n, 1), DTypeError);
  CHECK(huber_loss(n, 1.0).item() == Approx(0.25));
  CHECK(message_of<ShapeError>([] { norm(zeros({0}), std::numeric_limits<double>::infinity()); }) ==
        "norm: no elements to choose from: x is f32[0]");
}

}   // namespace sort_test
