// Groups of rows in any order. In: a tensor, and the group number of each row. Out: one row for each group.
#include "ops/reduce/unsorted_segment.h"
#include "op/piecewise_constant.h"

#include "core/format.h"
#include "kernels/layout/gather_scatter.h"
#include "kernels/layout/index_check.h"
#include "ops/axes.h"
#include "ops/layout/any_dtype.h"
#include "ops/layout/positions.h"
#include "ops/reduce/scan.h"
#include "ops/reduce/segments.h"
#include "tapedeck/ops.h"

namespace tapedeck {
namespace {

void require_ids_below(const Call& c, const Tensor& ids, std::int64_t count) {
  if (const auto o = kernels::first_outside(ids, count, true))
    throw_error<ShapeError>("{}: id {} at position {} is out of range for {} groups", c.op.name, o->index,
                            o->position, count);
}

Spec infer_segment(const Call& c) {
  require_indices(c, 1);
  const Tensor &x = c.x[0], &ids = c.x[1];
  const SegmentAttrs& a = c.attrs<SegmentAttrs>();
  if (x.dtype() == DType::boolean) c.throw_dtype_error("takes numbers, use astype");
  if (a.count < 0) throw_error<ShapeError>("{}: a negative count: {}", c.op.name, a.count);
  require_axes(c, -a.axis);
  const int axis = x.ndim() + a.axis;
  if (ids.ndim() != 1 || ids.shape()[0] != x.shape()[axis])
    c.throw_shape_error("there must be an id for each row");
  return {x.dtype(), replaced(x.shape(), axis, 1, {a.count})};
}

Spec infer_real_segment(const Call& c) {
  require_real(c);
  return infer_segment(c);
}

Spec infer_segment_share(const Call& c) {
  require_floating(c, 0);
  if (c.x[2].spec() != infer_segment(c)) c.throw_shape_error("best is not a reduction of x by group");
  return c.x[0].spec();
}

void run_segment(const Call& c, kernels::ScatterReduction fold, kernels::EmptyGroup empty, Tensor& y) {
  const SegmentAttrs& a = c.attrs<SegmentAttrs>();
  require_ids_below(c, c.x[1], a.count);
  if (y.size() == 0) return;
  const kernels::AxisView view(y.shape(), y.ndim() + a.axis);
  kernels::begin_groups(fold, empty, a.stored, c.x[1], view, y);
  kernels::scatter_reduce(fold, c.x[0], c.x[1], view, y);
}

Spec infer_divisors(const Call& c) {
  const DivisorsAttrs& a = c.attrs<DivisorsAttrs>();
  require_indices(c, 0);
  if (c.x[0].ndim() != 1) c.throw_shape_error("ids must be of rank 1");
  if (a.count < 0) throw_error<ShapeError>("{}: a negative count: {}", c.op.name, a.count);
  Shape shape{a.count};
  for (int d = a.axis + 1; d < 0; ++d)
    shape.push_back(1);
  return {a.dtype, shape};
}

Spec infer_rows_of_groups(const Call& c) {
  require_indices(c, 1);
  require_axes(c, -c.attrs<RowsAttrs>().axis);
  if (c.x[1].ndim() != 1) c.throw_shape_error("ids must be of rank 1");
  return {c.x[0].dtype(),
          replaced(c.x[0].shape(), c.x[0].ndim() + c.attrs<RowsAttrs>().axis, 1, c.x[1].shape())};
}

constexpr Op kUnsortedSegmentSum = {
    .name = "unsorted_segment_sum",
    .doc =
        "Sums of rows by group: y[j, …] = Σ x[i, …] over ids[i] = j; rows with a negative id are "
        "ignored.",
    .tensorflow = "UnsortedSegmentSum",
    .args = {"x", "ids"},
    .infer = infer_segment,
    .forward =
        [](const Call& c, std::span<Tensor> y) {
          run_segment(c, kernels::ScatterReduction::sum, kernels::EmptyGroup::zero, y[0]);
        },
    .rule = Rule::linear(
        [](const Call& c, const Tensor& dy) {
          return rows_of_groups(dy, c.x[1], c.attrs<SegmentAttrs>().axis);
        },
        {.x = 0b10}),
};

constexpr Op kRowsOfGroups = {
    .name = "rows_of_groups",
    .doc = "The adjoint of unsorted_segment_sum: y[i, …] = x[ids[i], …], or 0 for a negative id.",
    .args = {"x", "ids"},
    .infer = infer_rows_of_groups,
    .forward = moves([](const Call& c, std::span<Tensor> y) {
      const kernels::AxisView view(c.x[0].shape(), c.x[0].ndim() + c.attrs<RowsAttrs>().axis);
      require_ids_below(c, c.x[1], view.extent);
      kernels::gather(c.x[0], c.x[1], view, y[0]);
    }),
    .rule = Rule::linear(
        [](const Call& c, const Tensor& dy) {
          const int axis = c.attrs<RowsAttrs>().axis;
          return sum_of_groups(dy, c.x[1], c.x[0].shape()[c.x[0].ndim() + axis], axis);
        },
        {.x = 0b10}),
};

constexpr Op kGroupDivisors = {
    .name = "group_divisors",
    .doc =
        "The divisors that turn sums of rows by group into means: the number n of rows in each group, at "
        "least 1; or √n.",
    .args = {"ids"},
    .infer = infer_divisors,
    .forward = moves([](const Call& c, std::span<Tensor> y) {
      require_ids_below(c, c.x[0], y[0].size());
      kernels::group_divisors(c.x[0], c.attrs<DivisorsAttrs>().divisor, y[0]);
    }),
    .rule = Rule::none(),
};

constexpr Op kUnsortedSegmentProd = {
    .name = "unsorted_segment_prod",
    .doc =
        "Products of rows by group: y[j, …] = Π x[i, …] over ids[i] = j; rows with a negative id are "
        "ignored.",
    .tensorflow = "UnsortedSegmentProd",
    .args = {"x", "ids"},
    .infer = infer_segment,
    .forward =
        [](const Call& c, std::span<Tensor> y) {
          run_segment(c, kernels::ScatterReduction::product, kernels::EmptyGroup::one, y[0]);
        },
    .rule = kProductByGroup,
};

constexpr Op kUnsortedSegmentMax = {
    .name = "unsorted_segment_max",
    .doc =
        "Largest elements by group: y[j, …] = max x[i, …] over ids[i] = j. Rows with a negative id are "
        "ignored; equal elements share the gradient.",
    .tensorflow = "UnsortedSegmentMax",
    .args = {"x", "ids"},
    .infer = infer_real_segment,
    .forward =
        [](const Call& c, std::span<Tensor> y) {
          run_segment(c, kernels::ScatterReduction::max, kernels::EmptyGroup::lowest, y[0]);
        },
    .rule = kExtremeByGroup,
};

constexpr Op kUnsortedSegmentMin = {
    .name = "unsorted_segment_min",
    .doc =
        "Smallest elements by group: y[j, …] = min x[i, …] over ids[i] = j. Rows with a negative id are "
        "ignored; equal elements share the gradient.",
    .tensorflow = "UnsortedSegmentMin",
    .args = {"x", "ids"},
    .infer = infer_real_segment,
    .forward =
        [](const Call& c, std::span<Tensor> y) {
          run_segment(c, kernels::ScatterReduction::min, kernels::EmptyGroup::highest, y[0]);
        },
    .rule = kExtremeByGroup,
};

constexpr Op kShareOfGroupExtreme = {
    .name = "share_of_group_extreme",
    .doc =
        "The share of each element of x in the gradient of its group's maximum or minimum, best: 1 / n for "
        "each of n elements equal to best, else 0.",
    .args = {"x", "ids", "best"},
    .infer = infer_segment_share,
    .forward =
        [](const Call& c, std::span<Tensor> y) {
          require_ids_below(c, c.x[1], c.attrs<SegmentAttrs>().count);
          const kernels::AxisView view(c.x[2].shape(), c.x[2].ndim() + c.attrs<SegmentAttrs>().axis);
          kernels::share_of_group_extreme(c.x[0], c.x[1], c.x[2], view, y[0]);
        },
    .rule = Rule::none(),
};

constexpr const Op* unsorted_segment_table[] = {
    &kUnsortedSegmentSum, &kRowsOfGroups,       &kGroupDivisors,      &kUnsortedSegmentProd,
    &kUnsortedSegmentMax, &kUnsortedSegmentMin, &kShareOfGroupExtreme};

// rows_of_groups and sum_of_groups with the ids and the axis of the call.
Tensor rows_of(const Call& c, const Tensor& y) {
  return rows_of_groups(y, c.x[1], c.attrs<SegmentAttrs>().axis);
}
Tensor sum_of(const Call& c, const Tensor& x) {
  const int axis = c.attrs<SegmentAttrs>().axis;
  return sum_of_groups(x, c.x[1], c.y[0].shape()[c.y[0].ndim() + axis], axis);
}

// For each element, the product of the others in its group: the product before it times the product after it.
// There is no division, so elements may be 0.
Tensor others_of(const Call& c) {
  const Tensor &x = c.x[0], &ids = c.x[1];
  if (x.size() == 0) return x;
  const int axis = x.ndim() + c.attrs<SegmentAttrs>().axis;
  const Tensor order = argsort(ids), sorted = gather(ids, order);
  const Tensor rows = gather(with_axis_last(x, axis), order, -1);
  const Tensor is_same =
      astype(equal(strided_slice(sorted, {Slice(1, {})}), strided_slice(sorted, {Slice({}, -1)})), x.dtype());
  const Tensor end = zeros({1}, x.dtype());
  const Tensor before = product_before_in_run(rows, concat({end, is_same}, 0));
  const Tensor after =
      reverse(product_before_in_run(reverse(rows, -1), reverse(concat({is_same, end}, 0), 0)), -1);
  return with_last_axis_at(gather(before * after, argsort(order), -1), axis);
}

Tensor share_of_segment_extreme(const Call& c) {
  const int axis = c.attrs<SegmentAttrs>().axis;
  const SegmentAttrs attrs{c.y[0].shape()[c.y[0].ndim() + axis], axis};
  return piecewise(kShareOfGroupExtreme(c.x[0], c.x[1], c.y[0], attrs), c.x[0]);
}

void require_ids(std::string_view op, const Tensor& x, const Tensor& ids) {
  if (!holds_indices(ids))
    throw_error<DTypeError>("{}: ids must be integers, use astype: ids is {}", op, ids.spec());
  const int axes = ids.ndim();
  if (axes > x.ndim() || Shape(x.shape().dims().first(static_cast<std::size_t>(axes))) != ids.shape())
    throw_error<ShapeError>("{}: ids must have the shape of the first axes of x: x is {}, ids is {}", op,
                            x.spec(), ids.spec());
}

Tensor by_group(const Op& op, std::string_view name, const Tensor& x, const Tensor& ids, std::int64_t count) {
  require_ids(name, x, ids);
  Shape rows{ids.size()};
  for (int d = ids.ndim(); d < x.ndim(); ++d)
    rows.push_back(x.shape()[d]);
  return op(ids.ndim() == 1 ? x : reshape(x, rows), ids.ndim() == 1 ? ids : reshape(ids, {ids.size()}),
            SegmentAttrs{count, -rows.ndim(), x.dtype()});
}

// The sums of rows by group, divided.
Tensor divided(std::string_view name, const Tensor& x, const Tensor& ids, std::int64_t count,
               kernels::Divisor divisor) {
  if (!is_floating(x.dtype()))
    throw_error<DTypeError>("{}: takes f32, f64, f16 or bf16, use astype: x is {}", name, x.spec());
  const Tensor y = by_group(kUnsortedSegmentSum, name, x, ids, count);
  return y / divisors_of(ids, y.spec(), -y.ndim(), divisor);
}

}   // namespace

Tensor rows_of_groups(const Tensor& x, const Tensor& ids, int axis) {
  return kRowsOfGroups(x, ids, RowsAttrs{axis});
}
Tensor sum_of_groups(const Tensor& x, const Tensor& ids, std::int64_t count, int axis) {
  return kUnsortedSegmentSum(x, ids, SegmentAttrs{count, axis});
}

Tensor divisors_of(const Tensor& ids, const Spec& y, int axis, kernels::Divisor divisor) {
  if (y.shape.size() == 0) return ones({}, y.dtype);
  const Tensor list = ids.ndim() == 1 ? ids : reshape(ids, {ids.size()});
  return kGroupDivisors(list, DivisorsAttrs{y.shape[y.shape.ndim() + axis], axis, divisor, y.dtype});
}

namespace detail {

void product_vjp(const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
  dx[0] = rows_of(c, std::move(dy[0]).dense()) * others_of(c);
}
void product_jvp(const Call& c, Refs dx, std::span<Tensor> dy) { dy[0] = sum_of(c, others_of(c) * dx[0]); }
void extreme_vjp(const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
  dx[0] = rows_of(c, std::move(dy[0]).dense()) * share_of_segment_extreme(c);
}
void extreme_jvp(const Call& c, Refs dx, std::span<Tensor> dy) {
  dy[0] = sum_of(c, share_of_segment_extreme(c) * dx[0]);
}

}   // namespace detail

Tensor unsorted_segment_sum(const Tensor& x, const Tensor& ids, std::int64_t count) {
  return by_group(kUnsortedSegmentSum, "unsorted_segment_sum", x, ids, count);
}
Tensor unsorted_segment_prod(const Tensor& x, const Tensor& ids, std::int64_t count) {
  return by_group(kUnsortedSegmentProd, "unsorted_segment_prod", x, ids, count);
}
Tensor unsorted_segment_min(const Tensor& x, const Tensor& ids, std::int64_t count) {
  return by_group(kUnsortedSegmentMin, "unsorted_segment_min", x, ids, count);
}
Tensor unsorted_segment_max(const Tensor& x, const Tensor& ids, std::int64_t count) {
  return by_group(kUnsortedSegmentMax, "unsorted_segment_max", x, ids, count);
}
Tensor unsorted_segment_mean(const Tensor& x, const Tensor& ids, std::int64_t count) {
  return divided("unsorted_segment_mean", x, ids, count, kernels::Divisor::count);
}
Tensor unsorted_segment_sqrt_n(const Tensor& x, const Tensor& ids, std::int64_t count) {
  return divided("unsorted_segment_sqrt_n", x, ids, count, kernels::Divisor::root);
}

std::span<const Op* const> unsorted_segment_ops() { return unsorted_segment_table; }

}   // namespace tapedeck
