// Sorted segments. In: a tensor, or some of its rows, and ids that never decrease. Out: one row for each
// group.
#include "tapedeck/ops/segment.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/format.h"
#include "kernels/layout/index_lists.h"
#include "kernels/reduce/segment.h"
#include "ops/layout/positions.h"
#include "ops/reduce/segments.h"
#include "tapedeck/indexed_slices.h"
#include "tapedeck/ops.h"

namespace tapedeck {
namespace {

using kernels::Divisor;
using kernels::SegmentFold;

// The ids are the last input. Before them come x and, in some ops, indices of rows.
const Tensor& ids_of(const Call& c) { return c.x[c.x.size() - 1]; }

// The number of groups, from the attributes or from the last id. Checks the ids.
std::int64_t groups_of(const Call& c) {
  const std::int64_t count = c.attrs<SegmentAttrs>().count;
  const Tensor& ids = ids_of(c);
  if (const std::int64_t k = kernels::first_descent(ids); k >= 0)
    throw_error<ShapeError>(
        "{}: id {} at position {} is negative or less than the one before; use unsorted_segment ops",
        c.op.name, kernels::index_at(ids, k), k);
  const std::int64_t last = ids.size() ? kernels::index_at(ids, ids.size() - 1) : -1;
  if (count == kByLastId) return std::min(last, std::numeric_limits<std::int64_t>::max() - 1) + 1;
  if (last >= count)
    throw_error<ShapeError>("{}: id {} is out of range for {} groups", c.op.name, last, count);
  return count;
}

Spec infer_groups(const Call& c) {
  const Tensor &x = c.x[0], &ids = ids_of(c);
  const auto& [count, axis, stored] = c.attrs<SegmentAttrs>();
  require_indices(c, c.x.size() - 1);
  if (x.dtype() == DType::boolean) c.throw_dtype_error("takes numbers, use astype");
  require_axes(c, -axis);
  if (ids.ndim() != 1 || ids.shape()[0] != (c.x.size() == 2 ? x.shape()[x.ndim() + axis] : c.x[1].size()))
    c.throw_shape_error(c.x.size() == 2 ? "ids must have the shape of the first axis of x"
                                        : "ids must have the shape of indices");
  if (count < 0 && count != kByLastId) throw_error<ShapeError>("{}: a negative count: {}", c.op.name, count);
  return {x.dtype(), replaced(x.shape(), x.ndim() + axis, 1, {groups_of(c)})};
}
Spec infer_real_groups(const Call& c) {
  require_real(c);
  return infer_groups(c);
}
Spec infer_means(const Call& c) {
  require_trainable(c, 0);
  return infer_groups(c);
}
template <Infer::One infer> Spec infer_chosen(const Call& c) {
  require_indices(c, 1);
  if (c.x[1].ndim() != 1) c.throw_shape_error("indices must be of rank 1");
  const Spec spec = infer(c);
  require_in_range(c, c.x[0], "x", c.x[0].ndim() + c.attrs<SegmentAttrs>().axis);
  return spec;
}

template <SegmentFold fold, Divisor divisor = Divisor::one> void run(const Call& c, std::span<Tensor> y) {
  kernels::fold_segments(fold, divisor, c.x[0], c.x.size() == 3 ? &c.x[1] : nullptr, ids_of(c),
                         {y[0].shape(), y[0].ndim() + c.attrs<SegmentAttrs>().axis}, y[0]);
}

// For each row, the gradient of its group, divided as the op divides its sums.
template <Divisor divisor> Tensor rows_of(const Call& c, const Tensor& dy) {
  const int axis = c.attrs<SegmentAttrs>().axis;
  const Tensor& ids = ids_of(c);
  if (divisor == Divisor::one) return rows_of_groups(dy, ids, axis);
  return rows_of_groups(dy / divisors_of(ids, c.y[0].spec(), axis, divisor), ids, axis);
}

template <Divisor divisor> constexpr Rule kSumOfRows =
    Rule::linear([](const Call& c, const Tensor& dy) { return rows_of<divisor>(c, dy); }, {.x = 0b10});

// The gradient of selected rows is IndexedSlices. Stacked cotangents cannot have this form and are summed
// into a dense gradient.
template <Divisor divisor> constexpr Rule kSumOfChosen = Rule::linear(
    [](const Call& c, const Tensor& dy) -> Gradient {
      const Tensor &x = c.x[0], &indices = c.x[1], rows = rows_of<divisor>(c, dy);
      const int axis = c.attrs<SegmentAttrs>().axis;
      if (axis == -x.ndim() && dy.ndim() == x.ndim()) return IndexedSlices{rows, indices, x.shape()};
      return sum_of_groups(rows, indices, x.shape()[x.ndim() + axis], axis);
    },
    {.x = 0b110});

constexpr Op kSegmentSum = {
    .name = "segment_sum",
    .doc = "Sums of consecutive rows: y[j, …] = Σ x[i, …] over ids[i] = j.",
    .tensorflow = "SegmentSum SegmentSumV2",
    .args = {"x", "ids"},
    .infer = infer_groups,
    .forward = run<SegmentFold::sum>,
    .rule = kSumOfRows<Divisor::one>,
};

constexpr Op kSegmentMean = {
    .name = "segment_mean",
    .doc = "Means of consecutive rows: y[j, …] = Σ x[i, …] / n over the n rows with ids[i] = j.",
    .tensorflow = "SegmentMean",
    .args = {"x", "ids"},
    .infer = infer_means,
    .forward = run<SegmentFold::sum, Divisor::count>,
    .rule = kSumOfRows<Divisor::count>,
};

constexpr Op kSegmentProd = {
    .name = "segment_prod",
    .doc = "Products of consecutive rows: y[j, …] = Π x[i, …] over ids[i] = j.",
    .tensorflow = "SegmentProd SegmentProdV2",
    .args = {"x", "ids"},
    .infer = infer_groups,
    .forward = run<SegmentFold::product>,
    .rule = kProductByGroup,
};

constexpr Op kSegmentMax = {
    .name = "segment_max",
    .doc =
        "Largest elements of consecutive rows: y[j, …] = max x[i, …] over ids[i] = j; equal elements "
        "share the gradient.",
    .tensorflow = "SegmentMax SegmentMaxV2",
    .args = {"x", "ids"},
    .infer = infer_real_groups,
    .forward = run<SegmentFold::max>,
    .rule = kExtremeByGroup,
};

constexpr Op kSegmentMin = {
    .name = "segment_min",
    .doc =
        "Smallest elements of consecutive rows: y[j, …] = min x[i, …] over ids[i] = j; equal elements "
        "share the gradient.",
    .tensorflow = "SegmentMin SegmentMinV2",
    .args = {"x", "ids"},
    .infer = infer_real_groups,
    .forward = run<SegmentFold::min>,
    .rule = kExtremeByGroup,
};

constexpr Op kSparseSegmentSum = {
    .name = "sparse_segment_sum",
    .doc = "Sums of selected rows: y[j, …] = Σ x[indices[k], …] over ids[k] = j.",
    .tensorflow = "SparseSegmentSum SparseSegmentSumWithNumSegments",
    .args = {"x", "indices", "ids"},
    .infer = infer_chosen<infer_groups>,
    .forward = run<SegmentFold::sum>,
    .rule = kSumOfChosen<Divisor::one>,
};

constexpr Op kSparseSegmentMean = {
    .name = "sparse_segment_mean",
    .doc = "Means of selected rows: y[j, …] = Σ x[indices[k], …] / n over the n positions with ids[k] = j.",
    .tensorflow = "SparseSegmentMean SparseSegmentMeanWithNumSegments",
    .args = {"x", "indices", "ids"},
    .infer = infer_chosen<infer_means>,
    .forward = run<SegmentFold::sum, Divisor::count>,
    .rule = kSumOfChosen<Divisor::count>,
};

constexpr Op kSparseSegmentSqrtN = {
    .name = "sparse_segment_sqrt_n",
    .doc =
        "Sums of selected rows, divided by the square root of their number: y[j, …] = Σ x[indices[k], …] "
        "/ √n over the n positions with ids[k] = j.",
    .tensorflow = "SparseSegmentSqrtN SparseSegmentSqrtNWithNumSegments",
    .args = {"x", "indices", "ids"},
    .infer = infer_chosen<infer_means>,
    .forward = run<SegmentFold::sum, Divisor::root>,
    .rule = kSumOfChosen<Divisor::root>,
};

constexpr const Op* segment_table[] = {&kSegmentSum,        &kSegmentMean,       &kSegmentProd,
                                       &kSegmentMax,        &kSegmentMin,        &kSparseSegmentSum,
                                       &kSparseSegmentMean, &kSparseSegmentSqrtN};

SegmentAttrs along_first(const Tensor& x, std::int64_t count = kByLastId) {
  return {count, -std::max(x.ndim(), 1)};
}
Tensor chosen(const Op& op, const Tensor& x, const Tensor& indices, const Tensor& ids,
              std::optional<std::int64_t> count) {
  return op(x, indices, ids, along_first(x, count.value_or(kByLastId)));
}

}   // namespace

Tensor sum_of_ordered_groups(const Tensor& x, const Tensor& ids, std::int64_t count, int axis) {
  return kSegmentSum(x, ids, SegmentAttrs{count, axis});
}

Tensor segment_sum(const Tensor& x, const Tensor& ids) { return kSegmentSum(x, ids, along_first(x)); }
Tensor segment_mean(const Tensor& x, const Tensor& ids) { return kSegmentMean(x, ids, along_first(x)); }
Tensor segment_prod(const Tensor& x, const Tensor& ids) { return kSegmentProd(x, ids, along_first(x)); }
Tensor segment_max(const Tensor& x, const Tensor& ids) { return kSegmentMax(x, ids, along_first(x)); }
Tensor segment_min(const Tensor& x, const Tensor& ids) { return kSegmentMin(x, ids, along_first(x)); }

Tensor sparse_segment_sum(const Tensor& x, const Tensor& indices, const Tensor& ids,
                          std::optional<std::int64_t> count) {
  return chosen(kSparseSegmentSum, x, indices, ids, count);
}
Tensor sparse_segment_mean(const Tensor& x, const Tensor& indices, const Tensor& ids,
                           std::optional<std::int64_t> count) {
  return chosen(kSparseSegmentMean, x, indices, ids, count);
}
Tensor sparse_segment_sqrt_n(const Tensor& x, const Tensor& indices, const Tensor& ids,
                             std::optional<std::int64_t> count) {
  return chosen(kSparseSegmentSqrtN, x, indices, ids, count);
}

std::span<const Op* const> segment_ops() { return segment_table; }

}   // namespace tapedeck
