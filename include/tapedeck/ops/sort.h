// Sorting, searching and order statistics. NaN compares greater than every number, and sorting is stable.
// Floating-point and integer dtypes, unless stated otherwise. Indices are i64; an axis out of range throws
// ShapeError.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck {

/// Options of sort and argsort.
struct SortOptions {
  bool descending = false;
};
/// Sorts along `axis`, in ascending order by default. Each element's gradient goes to its position in x.
TAPEDECK_EXPORT Tensor sort(const Tensor& x, int axis = -1, SortOptions options = {});
/// The indices into x of the elements of sort(x). No gradient.
TAPEDECK_EXPORT Tensor argsort(const Tensor& x, int axis = -1, SortOptions options = {});

/// The result of top_k.
struct TopK {
  Tensor values, indices;
};
/// The k largest elements along `axis` in descending order, and their indices; of equal elements the one with
/// the lower index comes first. Values have a gradient. Throws ShapeError if k is negative or exceeds the
/// extent.
TAPEDECK_EXPORT TopK top_k(const Tensor& x, std::int64_t k, int axis = -1);
/// Options of nth_element.
struct NthElementOptions {
  bool reverse = false;   // true: n counts from the largest element
};
/// Element n of sort(x, axis); the axis is removed. Equal elements share the gradient. Throws ShapeError if n
/// is out of range.
TAPEDECK_EXPORT Tensor nth_element(const Tensor& x, std::int64_t n, int axis = -1,
                                   NthElementOptions options = {});

/// The result of unique.
struct Unique {
  Tensor values, inverse, counts;
};
/// The distinct elements of x (any shape) in order of first occurrence: values [m]; inverse, of x's shape, is
/// the index into values of each element; counts [m] are the numbers of occurrences. All NaNs count as one
/// value, as do 0 and -0. No gradient. Also for bool.
TAPEDECK_EXPORT Unique unique(const Tensor& x);

/// Where searchsorted inserts a value that equals elements: before or after them.
enum class Side : std::uint8_t { left, right };
/// Insertion positions of values [batch…, m] in sorted [batch…, n], which is ascending along its last axis:
/// the number of its elements that are less (left), or less or equal (right). Batch axes must be equal. The
/// result is i64 in the shape of values. No gradient. Throws ShapeError or DTypeError if sorted and values do
/// not match.
TAPEDECK_EXPORT Tensor searchsorted(const Tensor& sorted, const Tensor& values, Side side = Side::left);

/// The positions of the nonzero (or true) elements in row-major order: i64 [count, x.ndim()], as gather_nd
/// accepts them. NaN is not zero. Also for bool. No gradient.
TAPEDECK_EXPORT Tensor nonzero(const Tensor& x);
/// The inverse of a permutation of 0, …, n - 1: y[perm[i]] = i. Integers of rank 1. Throws ShapeError if an
/// entry is out of range or occurs twice. No gradient.
TAPEDECK_EXPORT Tensor invert_permutation(const Tensor& perm);

}   // namespace tapedeck
