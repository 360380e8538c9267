// Sorting and searching along an axis. In: tensors of any ordered dtype. Out: elements in order, or their
// positions.
#include "tapedeck/ops/sort.h"

#include "core/cast.h"
#include "core/format.h"
#include "core/storage.h"
#include "kernels/layout/index_lists.h"
#include "kernels/sort/sort.h"
#include "kernels/sort/unique.h"
#include "ops/axes.h"
#include "ops/layout/take_along_axis.h"
#include "ops/sort/sort.h"
#include "tapedeck/ops.h"

namespace tapedeck {
namespace {

void require_order(const Call& c) {
  if (c.x[0].dtype() == DType::boolean) c.throw_dtype_error("bool has no order, use astype");
  require_real(c);
  if (c.x[0].ndim() == 0) c.throw_shape_error("takes rank 1 or more");
}
std::int64_t extent_of(const Tensor& x) { return x.shape()[x.ndim() - 1]; }

std::vector<Spec> infer_sort(const Call& c) {
  require_order(c);
  require_axes(c, -c.attrs<SortAttrs>().axis);
  return {c.x[0].spec(), {DType::i64, c.x[0].shape()}};
}

std::vector<Spec> infer_top_k(const Call& c) {
  const auto& [descending, axis, k] = c.attrs<SortAttrs>();
  std::vector<Spec> specs = infer_sort(c);
  const int at = c.x[0].ndim() + axis;
  if (k < 0 || k > c.x[0].shape()[at])
    c.throw_shape_error(fmt::format("the axis does not have {} entries", k));
  for (Spec& s : specs)
    s.shape.set(at, k);
  return specs;
}

// The last output is the positions; the values, if they are an output, come before it. The axis is moved to
// the end and back.
void run_sort(const Call& c, std::span<Tensor> y) {
  const auto& [descending, axis, k] = c.attrs<SortAttrs>();
  const int at = c.x[0].ndim() + axis;
  const Tensor x = with_axis_last(c.x[0], at);
  std::vector<Tensor> sorted;
  for (const Tensor& t : y) {
    Shape shape = x.shape();
    shape.set(shape.ndim() - 1, t.shape()[at]);
    sorted.push_back(allocate({t.dtype(), shape}));
  }
  kernels::sort(x, extent_of(x), extent_of(sorted[0]), descending, sorted.size() == 2 ? &sorted[0] : nullptr,
                sorted.back());
  for (std::size_t i = 0; i < y.size(); ++i)
    y[i] = with_last_axis_at(sorted[i], at);
}

Spec infer_nth_element(const Call& c) {
  require_order(c);
  const auto& [n, reverse] = c.attrs<NthAttrs>();
  if (n < 0 || n >= extent_of(c.x[0])) c.throw_shape_error(fmt::format("the axis has no entry {}", n));
  return {c.x[0].dtype(), without(c.x[0].shape(), 1, false)};
}

void run_nth_element(const Call& c, std::span<Tensor> y) {
  const auto& [n, reverse] = c.attrs<NthAttrs>();
  const std::int64_t extent = extent_of(c.x[0]);
  kernels::nth_element(c.x[0], extent, reverse ? extent - 1 - n : n, y[0]);
}

// For ops that return values and their positions, to which dy is scattered.
constexpr Rule kChosenAlong = Rule::custom(
                                  {.y = true},
                                  [](const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
                                    if (dy[0].defined())
                                      dx[0] = add_along_axis(std::move(dy[0]).dense(), c.y[1], c.x[0].shape(),
                                                             c.attrs<SortAttrs>().axis);
                                  },
                                  [](const Call& c, Refs dx, std::span<Tensor> dy) {
                                    dy[0] = take_along_axis(dx[0], c.y[1], c.attrs<SortAttrs>().axis);
                                  })
                                  .accepting_none();

// The share of each element of a row in the gradient of its nth element; equal elements share it equally.
Tensor share_of_nth(const Call& c) {
  const Tensor chosen = astype(equal(c.x[0], expand_dims(c.y[0], -1)), c.x[0].dtype());
  return chosen / sum(chosen, -1, {.keepdims = true});
}

Spec infer_searchsorted(const Call& c) {
  require_order(c);
  const Tensor &sorted = c.x[0], &values = c.x[1];
  require_one_dtype(c);
  Shape expected = sorted.shape();
  if (values.ndim() == sorted.ndim()) expected.set(values.ndim() - 1, extent_of(values));
  if (values.shape() != expected) c.throw_shape_error("shapes differ outside the last axis");
  return {DType::i64, values.shape()};
}

void run_unique(const Call& c, std::span<Tensor> y) {
  const Tensor& x = c.x[0];
  const kernels::UniqueElements found = kernels::unique_elements(x);
  y[0] = gather(reshape(x, {-1}), tensor(found.first));
  y[1] = tensor(found.number, x.shape());
  std::vector<std::int64_t> counts(found.first.size());
  for (const std::int64_t k : found.number)
    ++counts[static_cast<std::size_t>(k)];
  y[2] = tensor(counts);
}

Spec infer_permutation(const Call& c) {
  require_indices(c, 0);
  if (c.x[0].ndim() != 1) c.throw_shape_error("takes rank 1");
  return c.x[0].spec();
}

void run_invert_permutation(const Call& c, std::span<Tensor> y) {
  const auto fault = kernels::invert_permutation(c.x[0], y[0]);
  if (!fault) return;
  if (fault->before >= 0)
    throw_error<ShapeError>("invert_permutation: entry {} is at positions {} and {}", fault->entry,
                            fault->before, fault->position);
  throw_error<ShapeError>("invert_permutation: entry {} at position {} is out of range for perm, {}",
                          fault->entry, fault->position, c.x[0].spec());
}

constexpr Op kSort = {
    .name = "sort",
    .doc =
        "The elements of x sorted along an axis, and their indices in x. Equal elements keep their "
        "order; NaN is the largest.",
    .args = {"x"},
    .infer = infer_sort,
    .forward = {run_sort, Outputs::by_kernel},
    .rule = kChosenAlong,
};

constexpr Op kArgsort = {
    .name = "argsort",
    .doc =
        "The indices in x of its elements sorted along an axis. Equal elements keep their order; NaN is "
        "the largest.",
    .args = {"x"},
    .infer = [](const Call& c) { return infer_sort(c)[1]; },
    .forward = {run_sort, Outputs::by_kernel},
    .rule = Rule::none(),
};

constexpr Op kTopK = {
    .name = "top_k",
    .doc =
        "The k largest elements of x along an axis in descending order, and their indices; of equal "
        "elements, the first in x comes first.",
    .tensorflow = "TopK TopKV2",
    .args = {"x"},
    .infer = infer_top_k,
    .forward = {run_sort, Outputs::by_kernel},
    .rule = kChosenAlong,
};

constexpr Op kNthElement = {
    .name = "nth_element",
    .doc =
        "The element at index n of x sorted along its last axis, optionally counted from the end; equal "
        "elements share the gradient.",
    .tensorflow = "NthElement",
    .args = {"x"},
    .infer = infer_nth_element,
    .forward = run_nth_element,
    .rule = Rule::custom(
        {.x = 1, .y = true},
        [](const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
          dx[0] = expand_dims(std::move(dy[0]).dense(), -1) * share_of_nth(c);
        },
        [](const Call& c, Refs dx, std::span<Tensor> dy) { dy[0] = sum(share_of_nth(c) * dx[0], -1); }),
};

constexpr Op kUnique = {
    .name = "unique",
    .doc =
        "The distinct elements of x in order of first occurrence, the index of each element of x among "
        "them, and the number of occurrences of each.",
    .tensorflow = "Unique UniqueV2 UniqueWithCounts UniqueWithCountsV2",
    .args = {"x"},
    .infer =
        [](const Call& c) {
          require_real(c);
          const auto count =
              static_cast<std::int64_t>(kernels::unique_elements(to_computed(c.x[0])).first.size());
          return std::vector<Spec>{
              {c.x[0].dtype(), {count}}, {DType::i64, c.x[0].shape()}, {DType::i64, {count}}};
        },
    .forward = {run_unique, Outputs::by_kernel},
    .rule = Rule::none(),
};

constexpr Op kSearchsorted = {
    .name = "searchsorted",
    .doc =
        "For each of values, the number of smaller elements, or optionally of smaller or equal ones, in its "
        "row of `sorted`, which is ascending.",
    .tensorflow = "LowerBound UpperBound",
    .args = {"sorted", "values"},
    .infer = infer_searchsorted,
    .forward =
        [](const Call& c, std::span<Tensor> y) {
          kernels::searchsorted(c.x[0], extent_of(c.x[0]), c.x[1], extent_of(c.x[1]),
                                c.attrs<SearchAttrs>().right, y[0]);
        },
    .rule = Rule::none(),
};

constexpr Op kNonzero = {
    .name = "nonzero",
    .doc = "The positions of the nonzero elements of x, in row-major order.",
    .tensorflow = "Where",
    .args = {"x"},
    .infer =
        [](const Call& c) {
          require_real(c);
          return Spec{DType::i64, {kernels::count_nonzero(to_computed(c.x[0])), c.x[0].ndim()}};
        },
    .forward = [](const Call& c, std::span<Tensor> y) { kernels::nonzero(c.x[0], y[0]); },
    .rule = Rule::none(),
};

constexpr Op kInvertPermutation = {
    .name = "invert_permutation",
    .doc = "The inverse of a permutation of 0, 1, …: y[perm[i]] = i.",
    .tensorflow = "InvertPermutation",
    .args = {"perm"},
    .infer = infer_permutation,
    .forward = run_invert_permutation,
    .rule = Rule::none(),
};

constexpr const Op* sort_table[] = {&kSort,   &kArgsort,      &kTopK,    &kNthElement,
                                    &kUnique, &kSearchsorted, &kNonzero, &kInvertPermutation};

}   // namespace

Tensor sort(const Tensor& x, int axis, SortOptions options) {
  return kSort.run({&x, 1}, SortAttrs{options.descending, checked_axis(kSort, axis, x.ndim()) - x.ndim()})[0];
}
Tensor argsort(const Tensor& x, int axis, SortOptions options) {
  return kArgsort(x, SortAttrs{options.descending, checked_axis(kArgsort, axis, x.ndim()) - x.ndim()});
}
TopK top_k(const Tensor& x, std::int64_t k, int axis) {
  const std::vector<Tensor> y =
      kTopK.run({&x, 1}, SortAttrs{true, checked_axis(kTopK, axis, x.ndim()) - x.ndim(), k});
  return {y[0], y[1]};
}

Tensor nth_element(const Tensor& x, std::int64_t n, int axis, NthElementOptions options) {
  return kNthElement(with_axis_last(x, checked_axis(kNthElement, axis, x.ndim())),
                     NthAttrs{n, options.reverse});
}

Unique unique(const Tensor& x) {
  std::vector<Tensor> y = kUnique.run({&x, 1});
  return {std::move(y[0]), std::move(y[1]), std::move(y[2])};
}

Tensor searchsorted(const Tensor& sorted, const Tensor& values, Side side) {
  return kSearchsorted(sorted, values, SearchAttrs{side == Side::right});
}
Tensor nonzero(const Tensor& x) { return kNonzero(x); }
Tensor invert_permutation(const Tensor& perm) { return kInvertPermutation(perm); }

std::span<const Op* const> sort_ops() { return sort_table; }

}   // namespace tapedeck
