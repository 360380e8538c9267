// Sorting, searching and selecting by order. NaN counts as larger than every number, and equal elements keep
// their order.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck {

// Every dtype but bool; an axis out of range throws ShapeError. Indices are i64.

/// The elements in ascending order along axis, or in descending order.
TAPEDECK_EXPORT Tensor sort(const Tensor& x, int axis = -1, bool descending = false);
/// Where the elements of sort(x) stand in x. No gradient.
TAPEDECK_EXPORT Tensor argsort(const Tensor& x, int axis = -1, bool descending = false);

struct TopK {
  Tensor values, indices;
};
/// The k largest elements along axis, the largest first, and where they stand; of equal ones the lower index
/// comes first. Throws ShapeError where the axis has fewer than k entries.
TAPEDECK_EXPORT TopK top_k(const Tensor& x, std::int64_t k, int axis = -1);
/// The element that stands at place n of sort(x, axis), or from the end if reverse, without that axis; equal
/// ones share the gradient. Throws ShapeError where n is out of range.
TAPEDECK_EXPORT Tensor nth_element(const Tensor& x, std::int64_t n, int axis = -1, bool reverse = false);

struct Unique {
  Tensor values, inverse, counts;
};
/// The different elements of x, of any shape, in the order in which they first appear: values [m]; inverse,
/// of x's shape, says which of them each element is; counts [m] how many there are of each. NaNs are one
/// value, and so are 0 and -0. No gradient.
TAPEDECK_EXPORT Unique unique(const Tensor& x);

enum class Side : std::uint8_t { left, right };
/// Where values [batch…, m] would go into sorted [batch…, n], which is in ascending order along its last
/// axis: how many elements are less (left), or less or equal (right). Batch axes are equal. i64 of the shape
/// of values. No gradient.
TAPEDECK_EXPORT Tensor searchsorted(const Tensor& sorted, const Tensor& values, Side side = Side::left);

/// The positions of the elements that are not 0 (or false), in row-major order: i64 [count, x.ndim()]. Every
/// dtype. No gradient.
TAPEDECK_EXPORT Tensor nonzero(const Tensor& x);
/// Where each of 0, 1, … n - 1 stands in perm, which has each of them once: y[perm[i]] = i. i32 or i64 of
/// rank 1. Throws ShapeError for an entry that is out of range or there twice. No gradient.
TAPEDECK_EXPORT Tensor invert_permutation(const Tensor& perm);

}   // namespace tapedeck
