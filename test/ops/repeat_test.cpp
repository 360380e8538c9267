// Functions composed of other ops: sorting and statistics, selection, groups of rows, diagonals, layout and
// checks of values, compared with values from NumPy, torch and TensorFlow's documentation, or by hand; the
// cases of test/data/cases.json on them; and errors.
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <sstream>

#include "case.h"
#include "message_of.h"
#include "ops/op_samples.h"
#include "tapedeck/gradcheck.h"
#include "values.h"

namespace repeat_test {

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

const double kInf = std::numeric_limits<double>::infinity(), kNaN = std::numeric_limits<double>::quiet_NaN();

template <class F> Tensor gradient_of(const F& f, const Tensor& x, const Tensor& dy = {}) {
  GradientTape tape;
  tape.watch(x);
  const Tensor y = f(x);
  return tape.gradient(Targets(y), Sources(x), {.output_gradients = {dy}})[0].dense();
}
template <class F> void check_gradient(const char* id, const char* input, const F& f, const Tensor& dy = {}) {
  check_case(id, [&](Case& c) { c.check("grads", {gradient_of(f, c.input(input), dy)}); });
}

}   // namespace

TEST_CASE("cases: norms and groups of rows", "[cases][order]") {
  const auto norm_of = [](const Tensor& x) { return euclidean_norm(x); };
  check_gradient("op-euclidean-norm-basic", "x", norm_of);
  check_gradient("op-euclidean-norm-negative", "x", norm_of);
  check_gradient("op-euclidean-norm-two", "x", norm_of);
  check_gradient("op-euclidean-norm-3d-axis0", "x", [](const Tensor& x) { return euclidean_norm(x, 0); });
  check_gradient("op-euclidean-norm-negzero", "x", norm_of);
  CHECK(std::signbit(gradient_of(norm_of, tensor({1.0, -0.0})).at({1})));
  CHECK(std::isnan(gradient_of(norm_of, tensor({0.0})).item()));

  check_gradient("op-segment-min", "data", [](const Tensor& x) { return segment_min(x, tensor({0, 0, 1})); });
  check_gradient("op-segment-max", "data", [](const Tensor& x) { return segment_max(x, tensor({0, 0, 1})); });
  check_case("op-segment-min-ties", [&](Case& c) {
    const Tensor x = c.input("x");
    GradientTape tape;
    tape.watch(x);
    const Tensor both = concat({x, x}, 0);
    const auto [dx, d_both] = tape.gradient(segment_min(both, tensor({0, 0})), x, both);
    c.check("grads", {dx});
    c.check("grad_wrt_concat", d_both);
  });
  for (const char* id :
       {"op-segment-prod-no-overlap", "op-segment-prod", "op-segment-prod-zeros", "op-segment-prod-empty"})
    check_gradient(id, "data", [&](const Tensor& x) {
      const std::string name = id;
      return segment_prod(x, name == "op-segment-prod-no-overlap" ? tensor({0, 1, 2})
                             : name == "op-segment-prod-empty"    ? tensor({0, 0, 2})
                                                                  : tensor({0, 0, 1}));
    });
}

TEST_CASE("cases: gather in batches, updates and sequences", "[cases][order]") {
  check_gradient("op-gather-batch-dims", "x", [](const Tensor& x) {
    return gather(x, tensor({{1, 0}, {0, 0}}), 1, 1);
  });
  check_gradient("op-gather-2batch", "x", [](const Tensor& x) {
    return gather(x, tensor({{{1, 0}, {0, 0}}}), 2, 2);
  });
  check_gradient("op-gather-batch-with-axis", "x", [](const Tensor& x) {
    return gather(x, tensor({{0}, {0}}), 2, 1);
  });
  check_case("op-gather-zero-batch", [&](Case& c) {
    c.check("shape", gradient_of(
                         [](const Tensor& x) {
                           return gather(x, zeros({0, 1, 3}, DType::i32), 2, 2);
                         },
                         zeros({0, 1, 8, 16}))
                         .shape()
                         .dims());
  });
  check_case("op-tensor-scatter-update", [&](Case& c) {
    const Tensor t = c.input("t"), u = c.input("u");
    GradientTape tape;
    tape.watch(t), tape.watch(u);
    const Tensor y = tensor_scatter_update(t, tensor({{1}, {3}}), u);
    c.check("grads",
            tape.gradient(Targets(y), Sources({t, u}), {.output_gradients = {tensor({1.0, 2.0, 3.0, 4.0})}}));
  });
  check_gradient(
      "op-reverse-sequence", "x",
      [](const Tensor& x) {
        return reverse_sequence(x, tensor({2, 3}), 1);
      },
      tensor({{1.0, 2.0, 3.0}, {4.0, 5.0, 6.0}}));
}

TEST_CASE("variance, deviation, norms and median", "[order]") {
  const Tensor x = matrix({{1, 2, 4, 9}, {-3, 5, 0, 1}});
  CHECK(close(variance(x, 1), f64({9.5, 8.1875}), 1e-14));   // np.var(x, axis=1)
  CHECK(close(variance(x, 1, {.keepdims = true, .correction = 1}),
              reshape(f64({12.666666666666666, 10.916666666666666}), {2, 1}),
              1e-14));                                                      // np.var(x, axis=1, ddof=1)
  CHECK(close(stddev(x), tensor(3.3888604279314896, DType::f64), 1e-14));   // np.std(x)
  CHECK(close(norm(x, 1, 0), f64({4, 7, 4, 10}), 0));   // np.linalg.norm(x, 1, axis=0), and so on
  CHECK(close(norm(x, 2), tensor(11.704699910719626, DType::f64), 1e-14));   // np.linalg.norm(x, 'fro')
  CHECK(close(norm(x, kInf, 1), f64({9, 5}), 0));
  CHECK(close(norm(x, -kInf, 1), f64({1, 0}), 0));
  CHECK(close(norm(x, 0, 1, {.keepdims = true}), reshape(f64({4, 3}), {2, 1}), 0));
  CHECK(close(norm(x, 3, 1), f64({9.29090721090254, 5.348481241239363}), 1e-14));
  CHECK(close(count_nonzero(x, 0), f64({2, 2, 1, 2}), 0));
  CHECK(count_nonzero(tensor({0, 1, 1}, DType::boolean)).item() == 2);
  CHECK(close(median(x, 1), f64({3, 0.5}), 0));   // np.median(x, axis=1)
  CHECK(median(f64({5, 1, 3})).item() == 3);
  CHECK(std::isnan(median(f64({5, kNaN, 3})).item()));
  CHECK(close(median(x, Axes{0, 1}, {.keepdims = true}), reshape(f64({1.5}), {1, 1}), 0));
  for (const auto& f : std::vector<TensorFunction>{
           [](const std::vector<Tensor>& t) { return variance(t[0], 0, {.keepdims = true}); },
           [](const std::vector<Tensor>& t) { return stddev(t[0], 1); },
           [](const std::vector<Tensor>& t) { return norm(t[0], 3, 1); },
           [](const std::vector<Tensor>& t) { return median(t[0], 1); }})
    CHECK(check_gradients(f, {matrix({{1, 2, 4, 9}, {-3, 5, 0.5, 1.5}})}));
}

TEST_CASE("sorting: long rows, NaN, signs of zero, other axes", "[order]") {
  const Tensor nan = f64({2, kNaN, -kInf, kInf, -0.0, 0.0, -1});
  CHECK(close(sort(nan), f64({-kInf, -1, 0, 0, 2, kInf, kNaN}), 0));   // np.sort
  CHECK(close(argsort(nan), f64({2, 6, 4, 5, 0, 3, 1}), 0));           // np.argsort(kind='stable')
  CHECK(close(argsort(nan, 0, {.descending = true}), f64({1, 3, 0, 4, 5, 6, 2}), 0));   // NaN is the largest
  for (const DType dtype : {DType::f32, DType::f64, DType::i8, DType::i32, DType::i64, DType::u8})
    for (const std::int64_t n : {1, 2, 37, 399, 400, 5000})
      for (const bool descending : {false, true}) {
        INFO(name_of(dtype) << " " << n);
        const Tensor x = astype(floor(samples::uniform({3, n}, dtype == DType::u8 ? 0 : -90, 100)),
                                dtype);   // with many ties
        const std::vector<double> v = x.to_vector();
        std::vector<double> values(v.size());
        std::vector<std::int64_t> at(v.size());
        for (std::size_t row = 0; row < 3; ++row) {
          const auto width = static_cast<std::size_t>(n);
          const auto first = at.begin() + static_cast<std::ptrdiff_t>(row * width),
                     last = first + static_cast<std::ptrdiff_t>(width);
          std::iota(first, last, 0);
          const auto value = [&](std::int64_t i) { return v[row * width + static_cast<std::size_t>(i)]; };
          std::stable_sort(first, last, [&](std::int64_t a, std::int64_t b) {
            return descending ? value(a) > value(b) : value(a) < value(b);
          });
          for (std::size_t i = 0; i < width; ++i)
            values[row * width + i] = value(at[row * width + i]);
        }
        CHECK(close(sort(x, -1, {.descending = descending}), tensor(values, x.shape()), 0));
        CHECK(close(argsort(x, -1, {.descending = descending}), tensor(at, x.shape()), 0));
        if (!descending) {
          CHECK(close(nth_element(x, n / 3),
                      strided_slice(tensor(values, x.shape()), {Slice::ellipsis, n / 3}), 0));
          continue;
        }
        for (const std::int64_t k : {std::int64_t{1}, (n + 9) / 10, n / 2, n}) {
          const auto [top, where_from] = top_k(x, k);
          CHECK(close(top, strided_slice(tensor(values, x.shape()), {Slice::ellipsis, Slice({}, k)}), 0));
          CHECK(close(where_from, strided_slice(tensor(at, x.shape()), {Slice::ellipsis, Slice({}, k)}), 0));
        }
      }
  const Tensor x = matrix({{3, 1}, {1, 2}, {2, 0}});
  CHECK(close(sort(x, 0), matrix({{1, 0}, {2, 1}, {3, 2}}), 0));
  CHECK(close(top_k(x, 1, 0).indices, matrix({{0, 1}}), 0));
  CHECK(close(gradient_of([](const Tensor& t) { return sort(t, 0); }, x, matrix({{1, 2}, {3, 4}, {5, 6}})),
              matrix({{5, 4}, {1, 6}, {3, 2}}), 0));
  CHECK(close(gradient_of([](const Tensor& t) { return nth_element(t, 1); }, f64({2, 1, 2, 2})),
              f64({1.0 / 3, 0, 1.0 / 3, 1.0 / 3}), 1e-15));   // TensorFlow's rule
}

TEST_CASE("choosing: unique, searchsorted, nonzero, masks, take_along_axis", "[order]") {
  const auto [values, inverse, counts] = unique(f64({3, kNaN, -0.0, 3, 0, kNaN}));
  CHECK(close(values, f64({3, kNaN, 0}), 0));
  CHECK(close(inverse, f64({0, 1, 2, 0, 2, 1}), 0));
  CHECK(close(counts, f64({2, 2, 2}), 0));
  CHECK(close(searchsorted(f64({1, 2, kNaN}), f64({kNaN, 3})), f64({2, 2}), 0));   // np.searchsorted
  const Tensor x = matrix({{1, 2, 3}, {4, 5, 6}});
  CHECK(close(boolean_mask(x, x > 2), f64({3, 4, 5, 6}), 0));
  CHECK(close(boolean_mask(x, tensor({0, 1}, DType::boolean)), matrix({{4, 5, 6}}), 0));
  CHECK(close(gradient_of([](const Tensor& t) { return square(boolean_mask(t, t > 2)); }, x),
              matrix({{0, 0, 6}, {8, 10, 12}}), 0));
  CHECK(close(take_along_axis(x, tensor({{1, 0, 1}, {0, 0, 1}}), 0), matrix({{4, 2, 6}, {1, 2, 6}}),
              0));   // np.take_along_axis
  CHECK(check_gradients(
      [](const std::vector<Tensor>& t) {
        return take_along_axis(t[0], tensor({{1, 0, 1}, {0, 0, 1}}), 0) * t[0];
      },
      {x}));
}

TEST_CASE("updates, partitions and stitches", "[order]") {
  const Tensor x = f64({1, 2, 3, 4}), u = f64({10, 20, 30});
  const Tensor at = tensor({{3}, {0}, {3}});
  CHECK(close(tensor_scatter_add(x, at, u), f64({21, 2, 3, 44}), 0));
  CHECK(close(tensor_scatter_sub(x, at, u), f64({-19, 2, 3, -36}), 0));
  {
    GradientTape tape;   // ties share: TensorFlow's _TensorScatterMinOrMaxGrad
    const Tensor t = f64({1, 5}), v = f64({5, 5, 0});
    tape.watch(t), tape.watch(v);
    const std::vector<Gradient> g =
        tape.gradient(Targets(tensor_scatter_max(t, tensor({{1}, {1}, {0}}), v)), Sources({t, v}));
    CHECK(close(g[0].dense(), f64({1, 1.0 / 3}), 1e-15));
    CHECK(close(g[1].dense(), f64({1.0 / 3, 1.0 / 3, 0}), 1e-15));
  }
  const Tensor rows = matrix({{1, 2}, {3, 4}, {5, 6}, {7, 8}});
  const std::vector<Tensor> parts = dynamic_partition(rows, tensor({2, 0, 2, 0}), 3);
  CHECK(close(parts[0], matrix({{3, 4}, {7, 8}}), 0));
  CHECK(parts[1].shape() == Shape{0, 2});
  CHECK(close(parts[2], matrix({{1, 2}, {5, 6}}), 0));
  const std::vector<Tensor> places = {tensor({1, 3}), zeros({0}, DType::i32), tensor({0, 2})};
  CHECK(close(dynamic_stitch(places, parts), rows, 0));
  CHECK(close(gradient_of(
                  [](const Tensor& t) {
                    return square(dynamic_partition(t, tensor({{1, 0}, {0, 1}}), 2)[1]);
                  },
                  matrix({{1, 2}, {3, 4}})),
              matrix({{2, 0}, {0, 8}}), 0));
  const std::vector<Tensor> twice = {tensor({0, 1}), tensor({1})};
  CHECK(close(gradient_of(
                  [&](const Tensor& t) {
                    return dynamic_stitch(twice, std::vector<Tensor>{t, f64({9})});
                  },
                  f64({5, 6})),
              f64({1, 0}), 0));
}

// Expected values: those of prod, group by group.
TEST_CASE("derivatives of products by group are exact where elements are 0", "[order]") {
  const Tensor x = f64({2, 0, 5, 0, 3, 7}), ids = tensor({1, 0, 1, 0, 0, -1});
  const auto by_group = [&](const Tensor& v) { return sum(unsorted_segment_prod(v, ids, 2)); };
  const auto by_hand = [&](const Tensor& v) {
    return prod(gather(v, tensor({1, 3, 4}))) + prod(gather(v, tensor({0, 2})));
  };
  CHECK(close(grad(by_group, x).dense(), grad(by_hand, x).dense(), 0));
  CHECK(close(hessian(by_group, x), hessian(by_hand, x), 0));
  CHECK(hessian(by_group, x).at({1, 3}) == 3);
  const Tensor rows = matrix({{0, 2}, {0, 0}, {4, 0}, {0, 5}}), sorted = tensor({0, 0, 0, 1});
  const auto of_rows = [&](const Tensor& v) { return sum(segment_prod(v, sorted)); };
  const auto of_rows_by_hand = [&](const Tensor& v) {
    return sum(prod(strided_slice(v, {Slice({}, 3)}), 0)) + sum(strided_slice(v, {3}));
  };
  CHECK(close(hessian(of_rows, rows), hessian(of_rows_by_hand, rows), 0));
}

TEST_CASE("groups of rows", "[order]") {
  const Tensor x = matrix({{1, 2}, {3, 4}, {5, 6}, {7, 8}}), ids = tensor({0, 0, 2, 2});
  CHECK(close(segment_sum(x, ids), matrix({{4, 6}, {0, 0}, {12, 14}}), 0));
  CHECK(close(segment_mean(x, ids), matrix({{2, 3}, {0, 0}, {6, 7}}), 0));
  CHECK(close(segment_prod(x, ids), matrix({{3, 8}, {1, 1}, {35, 48}}), 0));
  CHECK(close(segment_max(x, ids), matrix({{3, 4}, {0, 0}, {7, 8}}), 0));
  CHECK(close(segment_min(x, ids), matrix({{1, 2}, {0, 0}, {5, 6}}), 0));
  CHECK(segment_sum(zeros({0, 3}), zeros({0}, DType::i64)).shape() == Shape{0, 3});
  const Tensor mixed = tensor({{2, -1}, {0, 2}});
  const Tensor y = matrix({{1, 2}, {3, 5}});
  CHECK(close(unsorted_segment_sum(y, mixed, 3), f64({3, 0, 6}), 0));
  CHECK(close(unsorted_segment_mean(y, mixed, 3), f64({3, 0, 3}), 0));
  CHECK(close(unsorted_segment_sqrt_n(y, mixed, 3), f64({3, 0, 6 / std::sqrt(2.0)}), 1e-15));
  CHECK(close(unsorted_segment_max(y, mixed, 3), f64({3, std::numeric_limits<double>::lowest(), 5}), 0));
  CHECK(close(unsorted_segment_max(f64({-kInf, kNaN}), tensor({0, 1}), 2), f64({-kInf, kNaN}), 0));
  struct Limits {
    DType dtype;
    double lowest, highest;
  };
  for (const auto& [dtype, lowest, highest] : {Limits{DType::f16, -65504, 65504},
                                               {DType::bf16, -0x1.fep127, 0x1.fep127},
                                               {DType::i8, -128, 127},
                                               {DType::i16, -32768, 32767},
                                               {DType::u16, 0, 65535},
                                               {DType::u32, 0, 4294967295},
                                               {DType::u64, 0, 0x1p64}}) {
    INFO("empty groups of " << dtype);
    const Tensor one = ones({2}, dtype);
    CHECK(unsorted_segment_max(one, tensor({1, 1}), 2).to_vector() == std::vector<double>{lowest, 1});
    CHECK(unsorted_segment_min(one, tensor({1, 1}), 2).to_vector() == std::vector<double>{highest, 1});
  }
  GradientTape of_max, of_min;   // an empty group gets no gradient
  of_max.watch(y), of_min.watch(y);
  CHECK(close(of_max.gradient(unsorted_segment_max(y, mixed, 3), y).dense(), matrix({{0, 0}, {1, 1}}), 0));
  CHECK(close(of_min.gradient(unsorted_segment_min(y, mixed, 3), y).dense(), matrix({{1, 0}, {1, 0}}), 0));
  CHECK(close(sparse_segment_sum(x, tensor({3, 0, 3}), tensor({0, 0, 2})), matrix({{8, 10}, {0, 0}, {7, 8}}),
              0));
  CHECK(close(sparse_segment_mean(x, tensor({3, 0, 3}), tensor({0, 0, 1}), 3),
              matrix({{4, 5}, {7, 8}, {0, 0}}), 0));
  CHECK(close(sparse_segment_sqrt_n(x, tensor({3, 0, 3}), tensor({0, 0, 1})),
              matrix({{8 / std::sqrt(2.0), 10 / std::sqrt(2.0)}, {7, 8}}), 1e-15));
  for (const auto& f : std::vector<TensorFunction>{
           [&](const std::vector<Tensor>& t) { return segment_mean(t[0], ids); },
           [&](const std::vector<Tensor>& t) {
             return unsorted_segment_sqrt_n(t[0], tensor({1, -1, 0, 1}), 2);
           },
           [&](const std::vector<Tensor>& t) {
             return square(sparse_segment_mean(t[0], tensor({3, 0, 3}), tensor({0, 0, 2})));
           }})
    CHECK(check_gradients(f, {x}));
}

TEST_CASE("diagonals and bands", "[order]") {
  const Tensor x = matrix({{1, 2, 3}, {4, 5, 6}, {7, 8, 9}});
  CHECK(close(diag(f64({1, 2})), matrix({{1, 0}, {0, 2}}), 0));
  CHECK(diag(x).shape() == Shape{3, 3, 3, 3});
  CHECK(close(diag_part(diag(x)), x, 0));
  CHECK(close(matrix_diag(f64({1, 2}), -1, {.rows = 3, .columns = 4, .padding = 9}),
              matrix({{9, 9, 9, 9}, {1, 9, 9, 9}, {9, 2, 9, 9}}), 0));   // TensorFlow's documentation
  CHECK(message_of<ArgumentError>([] {
          matrix_diag(f64({1, 2}), 0, {.rows = -2});
        }) == "matrix_diag: rows is -2, columns -1; they are extents, or -1 for the smallest ones");
  CHECK(message_of<ArgumentError>([] {
          matrix_diag(f64({1, 2}), 0, {.rows = 2, .columns = INT64_MIN});
        }) != "");
  // The alignments in TensorFlow's documentation of matrix_diag_part.
  const Tensor m = matrix({{1, 2, 3, 4}, {5, 6, 7, 8}, {9, 8, 7, 6}});
  CHECK(close(matrix_diag_part(m, {-1, 2}), matrix({{0, 3, 8}, {2, 7, 6}, {1, 6, 7}, {5, 8, 0}}), 0));
  CHECK(close(matrix_diag_part(m, {-1, 2}, 0, DiagonalAlign::left_right),
              matrix({{3, 8, 0}, {2, 7, 6}, {1, 6, 7}, {0, 5, 8}}), 0));
  CHECK(close(matrix_diag_part(m, {-2, -1}, 0, DiagonalAlign::left_left), matrix({{5, 8}, {9, 0}}), 0));
  CHECK(close(matrix_diag_part(m, {1, 3}, 9), matrix({{9, 9, 4}, {9, 3, 8}, {2, 7, 6}}), 0));
  CHECK(close(matrix_set_diag(x, f64({-1, -2}), 1), matrix({{1, -1, 3}, {4, 5, -2}, {7, 8, 9}}), 0));
  CHECK(close(matrix_set_diag(x, matrix({{0, -1, -2}, {-3, -4, -5}}), {0, 1}),
              matrix({{-3, -1, 3}, {4, -4, -2}, {7, 8, -5}}), 0));
  CHECK(check_gradients([](const std::vector<Tensor>& t) { return square(matrix_set_diag(t[0], t[1], 1)); },
                        {x, f64({-1, -2})}));
  CHECK(close(tril(x), matrix({{1, 0, 0}, {4, 5, 0}, {7, 8, 9}}), 0));
  CHECK(close(triu(x, 1), matrix({{0, 2, 3}, {0, 0, 6}, {0, 0, 0}}), 0));
  CHECK(close(band_part(x, 1, 0), matrix({{1, 0, 0}, {4, 5, 0}, {0, 8, 9}}), 0));
  CHECK(close(band_part(x, -1, 1), matrix({{1, 2, 0}, {4, 5, 6}, {7, 8, 9}}), 0));
}

TEST_CASE("arrangements", "[order]") {
  const Tensor x = matrix({{1, 2, 3}, {4, 5, 6}});
  CHECK(close(roll(x, 1, 1), matrix({{3, 1, 2}, {6, 4, 5}}), 0));   // np.roll
  CHECK(close(roll(x, -4, {0, 1}), matrix({{2, 3, 1}, {5, 6, 4}}), 0));
  CHECK(close(roll(x, {1, -1}, {0, 1}), matrix({{5, 6, 4}, {2, 3, 1}}), 0));
  CHECK(close(roll(x, {1, 4, 1}, {1, 0, -1}), matrix({{2, 3, 1}, {5, 6, 4}}), 0));
  CHECK(close(roll(x, 1, {1, 1}), matrix({{2, 3, 1}, {5, 6, 4}}), 0));
  CHECK(
      close(roll(x, {INT64_MAX, INT64_MAX}, {1, 1}), matrix({{2, 3, 1}, {5, 6, 4}}), 0));   // 2 (2⁶³ - 1) ≡ 2
  for (const Tensor& y : {roll(x, 0, 0), roll(x, {2, -1, -1}, {1, 1, 1}), roll(x, {}, std::vector<int>())}) {
    CHECK(close(y, x, 0));
    CHECK(y.id() != x.id());
  }
  CHECK(close(roll(x, {1, 1}, {}), roll(x, 1, {0, 1}), 0));
  CHECK(message_of<ShapeError>([&] { roll(x, {1, 2}, 0); }) == "roll: 2 shifts for 1 axes of x, f64[2,3]");
  CHECK(close(roll(x, {1}, {1}), roll(x, 1, 1), 0));
  CHECK(message_of<ShapeError>([&] { roll(x, {1}, {0, 1}); }) == "roll: 1 shifts for 2 axes of x, f64[2,3]");
  CHECK(close(repeat(x, 2, 1), matrix({{1, 1, 2, 2, 3, 3}, {4, 4, 5, 5, 6, 6}}), 0));   // np.repeat
  CHECK(close(repeat(x, {2, 0}, 0), matrix({{1, 2, 3}, {1, 2, 3}}), 0));
  CHECK(repeat(x, 0, 1).shape() == Shape{2, 0});
  // A list of one is no number.
  CHECK(close(repeat(matrix({{1, 2}}), {3}), matrix({{1, 2}, {1, 2}, {1, 2}}), 0));
  CHECK_THROWS_WITH(repeat(x, {3}),
                    "repeat: the list of counts has length 1, but axis 0 of x, f64[2,3], has 2 "
                    "entries; use repeat(x, n) for n copies of each");
  CHECK_THROWS_AS(repeat(x, {}), ShapeError);
  CHECK(repeat(x, 3).shape() == Shape{6, 3});
  CHECK(repeat(x, std::size_t{3}, 1).shape() == Shape{2, 9});
  CHECK(repeat(x, std::array<std::int64_t, 2>{1, 2}).shape() == Shape{3, 3});
  CHECK(close(reverse_sequence(transpose(x), tensor({2, 3}), 0, 1), matrix({{2, 6}, {1, 5}, {3, 4}}), 0));
  CHECK(close(mirror_pad(f64({1, 2, 3}), {2}, {1}), f64({3, 2, 1, 2, 3, 2}), 0));   // np.pad(mode='reflect')
  CHECK(close(mirror_pad(x, {1, 0}, {0, 2}, Mirror::symmetric),
              matrix({{1, 2, 3, 3, 2}, {1, 2, 3, 3, 2}, {4, 5, 6, 6, 5}}), 0));
  CHECK(close(gradient_of([](const Tensor& t) { return mirror_pad(t, {2}, {1}); }, f64({1, 2, 3})),
              f64({1, 3, 2}), 0));
  CHECK(close(pad(x, {0, 1}, {0, 0}, 7), matrix({{7, 1, 2, 3}, {7, 4, 5, 6}}), 0));
  CHECK(close(strided_slice_update(x, {1, Slice({}, {}, 2)}, f64({-1, -2})), matrix({{1, 2, 3}, {-1, 5, -2}}),
              0));
  CHECK(close(conjugate_transpose(x), transpose(x), 0));
  const std::vector<Tensor> xy = meshgrid({f64({1, 2, 3}), f64({4, 5})}),
                            ij = meshgrid({f64({1, 2, 3}), f64({4, 5})}, Indexing::ij);
  CHECK(close(xy[0], matrix({{1, 2, 3}, {1, 2, 3}}), 0));   // np.meshgrid
  CHECK(close(xy[1], matrix({{4, 4, 4}, {5, 5, 5}}), 0));
  CHECK(close(ij[0], matrix({{1, 1}, {2, 2}, {3, 3}}), 0));
  CHECK(close(gradient_of([](const Tensor& v) { return fill({2, 3}, v); }, tensor(2.0)), tensor(6.0), 0));
  CHECK(close(identity_n(xy)[1], xy[1], 0));
  for (const auto& f :
       std::vector<TensorFunction>{[](const std::vector<Tensor>& t) {
                                     return roll(t[0], 1, {0, 1}) * t[0];
                                   },
                                   [](const std::vector<Tensor>& t) {
                                     return square(repeat(t[0], {2, 1}, 0));
                                   },
                                   [](const std::vector<Tensor>& t) { return square(repeat(t[0], 3, 1)); },
                                   [](const std::vector<Tensor>& t) {
                                     return square(mirror_pad(t[0], {1, 2}, {0, 1}));
                                   }})
    CHECK(check_gradients(f, {x}));
}

TEST_CASE("guards let values pass", "[order]") {
  const Tensor x = f64({1, 2});
  std::ostringstream out;
  CHECK(
      close(gradient_of([&](const Tensor& t) { return square(print(t, "x = ", out)); }, x), f64({2, 4}), 0));
  CHECK(out.str() == "x = " + to_string(x) + "\n");
  CHECK(close(ensure_shape(x, {-1}), x, 0));
  CHECK(
      close(gradient_of([](const Tensor& t) { return square(check_numerics(t, "t")); }, x), f64({2, 4}), 0));
  CHECK(message_of([&] {
          check_numerics(f64({1, kInf}), "loss");
        }) == "check_numerics: loss: element 1 of f64[2] is inf");
  CHECK(message_of([&] {
          gradient_of([](const Tensor& t) { return sqrt(check_numerics(t, "t")); }, f64({0}));
        }) == "check_numerics: gradient of t: element 0 of f64[1] is inf");
  CHECK(message_of([&] { ensure_shape(x, {3}); }) ==
        "ensure_shape: x is not of that shape: x is f64[2], shape is [3]");
  assert_that(x > 0, "x is positive");
  CHECK(message_of([&] { assert_that(x > 1, "x is large"); }) == "assert_that: x is large");
  CHECK_THROWS_AS(gradient_of([](const Tensor& t) { return prevent_gradient(t); }, x), GradientError);
}

TEST_CASE("errors of sorting, selecting and grouping", "[order][errors]") {
  const Tensor x = ones({2, 3}), ids = tensor({0, 1});
  CHECK(message_of([&] { sort(x, 2); }) == "sort: axis 2 is out of range for x of rank 2; use -2..1");
  CHECK(message_of([&] { top_k(x, 4); }) == "top_k: the axis does not have 4 entries: x is f32[2,3]");
  CHECK(message_of([&] { nth_element(x, 3); }) == "nth_element: the axis has no entry 3: x is f32[2,3]");
  CHECK(message_of([&] { searchsorted(x, ones({3})); }) ==
        "searchsorted: shapes differ outside the last axis: sorted is f32[2,3], values is f32[3]");
  CHECK(message_of([] {
          invert_permutation(tensor({0, 2}));
        }) == "invert_permutation: entry 2 at position 1 is out of range for perm, i32[2]");
  CHECK(message_of([] {
          invert_permutation(tensor({0, 0}));
        }) == "invert_permutation: entry 0 is at positions 0 and 1");
  CHECK(message_of([&] { boolean_mask(x, ones({3}, DType::boolean)); }) ==
        "boolean_mask: mask must have the shape of the first axes of x: x is f32[2,3], mask is bool[3]");
  CHECK(message_of([&] {
          take_along_axis(x, zeros({3, 1}, DType::i32));
        }) == "take_along_axis: shapes must match except along axis 1: x is f32[2,3], indices is i32[3,1]");
  CHECK(message_of([&] {
          gather(x, tensor({{0}, {3}}), 1, 1);
        }) == "gather: index 3 at position 1 is out of range for axis 1 of x, f32[2,3]");
  CHECK(message_of([&] {
          gather(x, tensor({{0}, {0}, {0}}), 1, 1);
        }) == "gather: the first 1 axes differ: x is f32[2,3], indices is i32[3,1]");
  CHECK(message_of([&] {
          tensor_scatter_update(x, tensor({{2}}), ones({1, 3}));
        }) == "tensor_scatter_update: index [2] at position 0 is out of range for x, f32[2,3]");
  CHECK(message_of([&] {
          tensor_scatter_max(x, tensor({{0}}), ones({1, 2}));
        }).starts_with("tensor_scatter_max: updates must be [1,3]: "));
  CHECK(message_of([&] {
          dynamic_partition(x, tensor({0, 2}), 2);
        }) == "dynamic_partition: number 2 at position 1 is out of range for 2 parts");
  CHECK(message_of([&] {
          segment_sum(x, tensor({1, 0}));
        }) ==
        "segment_sum: id 0 at position 1 is negative or less than the one before; use unsorted_segment ops");
  CHECK(message_of([&] { segment_sum(x, tensor({0})); }) ==
        "segment_sum: ids must have the shape of the first axis of x: x is f32[2,3], ids is i32[1]");
  CHECK(message_of([&] { unsorted_segment_sum(x, ids, 1); }) ==
        "unsorted_segment_sum: id 1 at position 1 is out of range for 1 groups");
  CHECK(message_of([&] { matrix_diag_part(x, 3); }) == "matrix_diag_part: diagonal 3 is outside x, f32[2,3]");
  CHECK(message_of([&] {
          matrix_diag(x, {0, 2});
        }) == "matrix_diag: x needs a row for each diagonal from 0 to 2: x is f32[2,3]");
  CHECK(message_of([&] { band_part(ones({2}), 0, 0); }) == "band_part: takes matrices: x is f32[2]");
  CHECK(message_of([&] { median(zeros({0})); }) == "median: no elements to choose from: x is f32[0]");
  CHECK(message_of([&] { variance(x, 2); }) == "variance: axis 2 is out of range for x of rank 2; use -2..1");
  CHECK(message_of([&] {
          mirror_pad(x, {2, 0}, {0, 0});
        }) ==
        "mirror_pad: axis 0 can be padded by 0 to 1 entries: before is [2,0], after is [0,0], x is f32[2,3]");
  CHECK(message_of([&] {
          reverse_sequence(x, tensor({1, 4}), 1);
        }) == "reverse_sequence: length 4 is out of range for axis 1 of x, f32[2,3]");
  CHECK(message_of([&] { strided_slice_update(x, {2}, ones({3})); }) ==
        "strided_slice_update: index 2 is out of range for axis 0 of x, f32[2,3]");
}

}   // namespace repeat_test
