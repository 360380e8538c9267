// Rows selected, partitioned and stitched together. In: a tensor, with a mask or a partition number for each
// row; or several tensors, with the positions of their rows. Out: some rows, several tensors, or one.
#include "ops/layout/partition.h"

#include <algorithm>
#include <limits>

#include "core/format.h"
#include "core/storage.h"
#include "kernels/layout/gather_scatter.h"
#include "kernels/layout/index_check.h"
#include "kernels/layout/index_lists.h"
#include "kernels/sort/unique.h"
#include "ops/axes.h"
#include "ops/layout/any_dtype.h"
#include "ops/layout/positions.h"
#include "ops/reduce/segments.h"
#include "tapedeck/ops.h"

namespace tapedeck {
namespace {

int rest_of(const Call& c) { return c.attrs<RowAttrs>().rest; }

// The axis of x, counted from 0, at which the axes of `marks` (a mask or numbers) begin: they must be the
// axes just before the last `rest`.
int marked_axes(const Call& c, const Tensor& x, const Tensor& marks, int rest, std::string_view name) {
  const int axes = marks.ndim(), front = x.ndim() - rest - axes;
  if (rest < 0 || front < 0 ||
      Shape(x.shape().dims().subspan(static_cast<std::size_t>(front), static_cast<std::size_t>(axes))) !=
          marks.shape())
    c.throw_shape_error(fmt::format("{} must have the shape of the first axes of x", name));
  return front;
}

// dy rearranged to the shape of x: row k is row numbers[k] of dy, or zeros if numbers[k] is negative.
Tensor in_their_places(const Tensor& dy, const Tensor& numbers, int rest, int axes, const Shape& x) {
  const Tensor rows = rows_of_groups(dy, numbers, -rest - 1);
  return axes == 1 ? rows
                   : reshape(rows, behind_extra(dy, rest + 1,
                                                Shape(x.dims().last(static_cast<std::size_t>(rest + axes)))));
}

void require_mask(const Call& c) {
  const Tensor& mask = c.x[1];
  if (mask.dtype() != DType::boolean) c.throw_dtype_error("mask must be bool");
}

Spec infer_mask(const Call& c) {
  const Tensor &x = c.x[0], &mask = c.x[1];
  require_mask(c);
  if (mask.ndim() == 0) c.throw_shape_error("mask must have the shape of the first axes of x");
  const int front = marked_axes(c, x, mask, rest_of(c), "mask");
  return {x.dtype(), replaced(x.shape(), front, mask.ndim(), {kernels::count_nonzero(mask)})};
}

Spec infer_put(const Call& c) {
  const Tensor &x = c.x[0], &mask = c.x[1];
  require_mask(c);
  require_axes(c, rest_of(c) + 1);
  const int front = x.ndim() - rest_of(c) - 1;
  if (x.shape()[front] != kernels::count_nonzero(mask))
    c.throw_shape_error("x must have a row for each true element of mask");
  return {x.dtype(), replaced(x.shape(), front, 1, mask.shape())};
}

kernels::AxisView around_mask(const Call& c, const Tensor& masked) {
  const int axes = c.x[1].ndim();
  return {masked.shape(), masked.ndim() - rest_of(c) - axes, axes};
}

Tensor masked(const Tensor& x, const Tensor& mask, int rest);
Tensor put(const Tensor& x, const Tensor& mask, int rest);

void require_numbers(const Call& c, const Tensor& partitions, int count) {
  if (const auto o = kernels::first_outside(partitions, count))
    throw_error<ShapeError>("{}: number {} at position {} is out of range for {} parts", c.op.name, o->index,
                            o->position, count);
}

// The number of rows of each part.
std::vector<std::int64_t> sizes_of(const Call& c) {
  const int count = c.attrs<PartAttrs>().count;
  require_numbers(c, c.x[1], count);
  return kernels::count_each(c.x[1], count);
}

std::vector<Spec> infer_partition(const Call& c) {
  const auto& [rest, count] = c.attrs<PartAttrs>();
  const Tensor &x = c.x[0], &partitions = c.x[1];
  require_indices(c, 1);
  const int front = marked_axes(c, x, partitions, rest, "partitions");
  if (count < 1) throw_error<ArgumentError>("{}: {} parts; use 1 or more", c.op.name, count);
  std::vector<Spec> specs;
  for (const std::int64_t n : sizes_of(c))
    specs.push_back({x.dtype(), replaced(x.shape(), front, partitions.ndim(), {n})});
  return specs;
}

void run_partition(const Call& c, std::span<Tensor> y) {
  const Tensor &x = c.x[0], &partitions = c.x[1];
  const std::vector<std::int64_t> sizes = sizes_of(c);
  Tensor order = allocate({DType::i64, {partitions.size()}});
  kernels::order_by_number(partitions, c.attrs<PartAttrs>().count, order);
  const kernels::AxisView view(x.shape(), x.ndim() - c.attrs<PartAttrs>().rest - partitions.ndim(),
                               partitions.ndim());
  std::int64_t begin = 0;
  for (std::size_t k = 0; k < y.size(); begin += sizes[k++])
    kernels::gather(x, share(order, {sizes[k]}, begin), view, y[k]);
}

Spec infer_places(const Call& c) {
  require_indices(c, 0);
  return {DType::i64, {c.x[0].size()}};
}
void run_partition_places(const Call& c, std::span<Tensor> y) {
  const int count = c.attrs<CountOfPartsAttrs>().count;
  require_numbers(c, c.x[0], count);
  kernels::place_by_number(c.x[0], count, y[0]);
}
Tensor partition_places(const Tensor& partitions, int count);

void partition_vjp(const Call& c, std::span<Gradient> dys, std::span<Gradient> dx) {
  const auto& [rest, count] = c.attrs<PartAttrs>();
  std::vector<Tensor> parts;
  for (Gradient& dy : dys)
    parts.push_back(std::move(dy).dense());
  dx[0] = in_their_places(concat(parts, -rest - 1), partition_places(c.x[1], count), rest, c.x[1].ndim(),
                          c.x[0].shape());
}

// The inputs of a stitch alternate: indices, rows, indices, rows, …
constexpr std::uint32_t kEverySecond = 0xd5555555;   // the even inputs, and all from 31 on
int pairs_of(const Call& c) { return c.x.size() / 2; }
const Tensor& indices_of(const Call& c, int m) { return c.x[2 * m]; }
const Tensor& rows_of(const Call& c, int m) { return c.x[2 * m + 1]; }

// The extent of the result. Throws ShapeError unless every position up to the largest is given.
std::int64_t places_named(const Call& c) {
  std::int64_t largest = -1, rows = 0;
  for (int m = 0; m < pairs_of(c); ++m) {
    const Tensor& indices = indices_of(c, m);
    rows += indices.size();
    if (const auto o = kernels::first_outside(indices, std::numeric_limits<std::int64_t>::max()))
      throw_error<ShapeError>("{}: index {} of tensor {} is negative", c.op.name, o->index, m);
    largest = std::max(largest, kernels::largest_index(indices));
  }
  std::vector<bool> named(static_cast<std::size_t>(std::min(largest, rows) + 1));   // contains any gap
  for (int m = 0; m < pairs_of(c); ++m)
    kernels::mark(indices_of(c, m), named);
  if (const auto missing = std::find(named.begin(), named.end(), false); missing != named.end())
    throw_error<ShapeError>("{}: no index is {}, but the largest is {}", c.op.name, missing - named.begin(),
                            largest);
  return largest + 1;
}

Spec infer_stitch(const Call& c) {
  const int rest = rest_of(c);
  const Tensor& first = rows_of(c, 0);
  Shape last;
  int front = 0;
  for (int m = 0; m < pairs_of(c); ++m) {
    const Tensor &indices = indices_of(c, m), &x = rows_of(c, m);
    if (!holds_indices(indices))
      throw_error<DTypeError>("{}: indices must be integers, use astype: indices is {}", c.op.name,
                              indices.spec());
    if (x.dtype() != first.dtype()) c.throw_dtype_error("dtypes differ");
    front = marked_axes(c, x, indices, rest, "indices");
    const Shape others = replaced(x.shape(), front, indices.ndim(), {0});
    if (m == 0) last = others;
    if (others != last) c.throw_shape_error("rows differ");
  }
  return {first.dtype(), replaced(last, front, 1, {places_named(c)})};
}

void run_stitch(const Call& c, std::span<Tensor> y) {
  const kernels::AxisView view(y[0].shape(), y[0].ndim() - 1 - rest_of(c));
  for (int m = 0; m < pairs_of(c); ++m)
    kernels::scatter_reduce(kernels::ScatterReduction::last, rows_of(c, m), indices_of(c, m), view, y[0]);
}

std::vector<Spec> infer_stitch_places(const Call& c) {
  std::vector<Spec> specs;
  for (int m = 0; m < c.x.size(); ++m) {
    require_indices(c, m);
    specs.push_back({DType::i64, {c.x[m].size()}});
  }
  return specs;
}
void run_stitch_places(const Call& c, std::span<Tensor> y) {
  const std::int64_t places = c.attrs<PlacesAttrs>().places;
  std::vector<bool> taken(static_cast<std::size_t>(places));
  for (int m = c.x.size(); m-- > 0;) {
    if (const auto o = kernels::first_outside(c.x[m], places))
      throw_error<ShapeError>("{}: index {} at position {} of tensor {} is out of range for {} places",
                              c.op.name, o->index, o->position, m, places);
    kernels::last_of_each(c.x[m], taken, y[static_cast<std::size_t>(m)]);
  }
}
std::vector<Tensor> stitch_places(std::span<const Tensor> indices, std::int64_t places);

// If several rows have the same position, the last one gets the gradient.
void stitch_vjp(const Call& c, std::span<Gradient> dys, std::span<Gradient> dx) {
  const Tensor dy = std::move(dys[0]).dense();
  const int rest = rest_of(c);
  std::vector<Tensor> indices;
  for (int m = 0; m < pairs_of(c); ++m)
    indices.push_back(indices_of(c, m));
  const std::vector<Tensor> places = stitch_places(indices, c.y[0].shape()[c.y[0].ndim() - 1 - rest]);
  for (int m = 0; m < pairs_of(c); ++m)
    if (c.needs_gradient(2 * m + 1))
      dx[static_cast<std::size_t>(2 * m + 1)] = in_their_places(
          dy, places[static_cast<std::size_t>(m)], rest, indices_of(c, m).ndim(), rows_of(c, m).shape());
}

void stitch_jvp(const Call& c, Refs dx, std::span<Tensor> dy) {
  std::vector<Tensor> x;
  for (int m = 0; m < pairs_of(c); ++m) {
    x.push_back(indices_of(c, m));
    x.push_back(dx[2 * m + 1].defined() ? dx[2 * m + 1]
                                        : zeros(rows_of(c, m).shape(), rows_of(c, m).dtype()));
  }
  dy[0] = c.op(x, c.raw_attrs);
}

constexpr Op kBooleanMask = {
    .name = "boolean_mask",
    .doc = "The entries of x where mask is true, in order; mask has the shape of the first axes of x.",
    .args = {"x", "mask"},
    .infer = infer_mask,
    .forward = moves([](const Call& c, std::span<Tensor> y) {
      kernels::boolean_mask(c.x[0], c.x[1], around_mask(c, c.x[0]), y[0]);
    }),
    .rule = Rule::linear([](const Call& c, const Tensor& dy) { return put(dy, c.x[1], rest_of(c)); },
                         {.x = 0b10}),
};

constexpr Op kBooleanPut = {
    .name = "boolean_put",
    .doc = "The adjoint of boolean_mask: the rows of x, in order, where mask is true, and zeros elsewhere.",
    .args = {"x", "mask"},
    .infer = infer_put,
    .forward = moves([](const Call& c, std::span<Tensor> y) {
      kernels::boolean_mask_adjoint(c.x[0], c.x[1], around_mask(c, y[0]), y[0]);
    }),
    .rule = Rule::linear([](const Call& c, const Tensor& dy) { return masked(dy, c.x[1], rest_of(c)); },
                         {.x = 0b10}),
};

constexpr Op kDynamicPartition = {
    .name = "dynamic_partition",
    .doc =
        "The rows of x partitioned by number: part j has the rows x[i, …] with partitions[i] = j, in "
        "order.",
    .tensorflow = "DynamicPartition",
    .args = {"x", "partitions"},
    .infer = infer_partition,
    .forward = moves(run_partition),
    .rule = Rule::custom(
        {.x = 0b10}, partition_vjp,
        [](const Call& c, Refs dx, std::span<Tensor> dy) {
          std::ranges::move(c.op.run(std::vector<Tensor>{dx[0], c.x[1]}, c.raw_attrs), dy.begin());
        }),
};

constexpr Op kPartitionPlaces = {
    .name = "partition_places",
    .doc = "The position of each row in the concatenation of the parts that dynamic_partition returns.",
    .args = {"partitions"},
    .infer = infer_places,
    .forward = run_partition_places,
    .rule = Rule::none(),
};

constexpr Op kStitchPlaces = {
    .name = "stitch_places",
    .doc = "The index at which dynamic_stitch places each row, or -1 if a later row has the same index.",
    .args = {"indices"},
    .infer = infer_stitch_places,
    .forward = run_stitch_places,
    .rule = Rule::none(),
};

constexpr Op kDynamicStitch = {
    .name = "dynamic_stitch",
    .doc =
        "Rows placed by index: y[indices[m][i], …] = x[m][i, …]. The last row is kept if an index occurs "
        "several times.",
    .tensorflow = "DynamicStitch ParallelDynamicStitch",
    .args = {"indices", "x"},
    .infer = infer_stitch,
    .forward = moves(run_stitch),
    .rule = Rule::custom({.x = kEverySecond}, stitch_vjp, stitch_jvp),
};

constexpr const Op* partition_table[] = {&kBooleanMask,     &kBooleanPut,   &kDynamicPartition,
                                         &kPartitionPlaces, &kStitchPlaces, &kDynamicStitch};

Tensor partition_places(const Tensor& partitions, int count) {
  return kPartitionPlaces(partitions, CountOfPartsAttrs{count});
}
std::vector<Tensor> stitch_places(std::span<const Tensor> indices, std::int64_t places) {
  return kStitchPlaces.run(indices, PlacesAttrs{places});
}
Tensor masked(const Tensor& x, const Tensor& mask, int rest) { return kBooleanMask(x, mask, RowAttrs{rest}); }
Tensor put(const Tensor& x, const Tensor& mask, int rest) { return kBooleanPut(x, mask, RowAttrs{rest}); }

}   // namespace

Tensor boolean_mask(const Tensor& x, const Tensor& mask) { return masked(x, mask, x.ndim() - mask.ndim()); }

std::vector<Tensor> dynamic_partition(const Tensor& x, const Tensor& partitions, int count) {
  return kDynamicPartition.run(std::vector<Tensor>{x, partitions},
                               PartAttrs{x.ndim() - partitions.ndim(), count});
}

Tensor dynamic_stitch(std::span<const Tensor> indices, std::span<const Tensor> x) {
  if (x.empty() || indices.size() != x.size())
    throw_error<ArgumentError>("dynamic_stitch: {} lists of indices for {} tensors; use one for each",
                               indices.size(), x.size());
  std::vector<Tensor> pairs;
  for (std::size_t m = 0; m < x.size(); ++m)
    pairs.insert(pairs.end(), {indices[m], x[m]});
  return kDynamicStitch(pairs, RowAttrs{x[0].ndim() - indices[0].ndim()});
}

std::span<const Op* const> partition_ops() { return partition_table; }

}   // namespace tapedeck
