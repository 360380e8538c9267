// Declarations for ops on segments, which are groups of rows. An input, ids, contains the group number of
// each row.
#pragma once
#include <limits>

#include "kernels/reduce/segment.h"
#include "tapedeck/op.h"

namespace tapedeck {

/// The value of `count` if the last of the sorted ids determines the number of groups.
inline constexpr std::int64_t kByLastId = std::numeric_limits<std::int64_t>::min();
// Rows are indexed by one axis of x, counted from the end; in the result it has extent `count`. `stored` is
// the dtype of x, whose limits are the extremes of empty groups; kernels may see x widened.
struct SegmentAttrs {
  std::int64_t count;
  int axis;
  DType stored = DType::f64;
};

/// rows_of_groups: y[…, i, …] = x[…, ids[i], …] along an axis counted from the end, or 0 for a negative id.
/// sum_of_groups is its adjoint: sums of rows by group, which ignore rows with a negative id.
Tensor rows_of_groups(const Tensor& x, const Tensor& ids, int axis);
Tensor sum_of_groups(const Tensor& x, const Tensor& ids, std::int64_t count, int axis);
/// The divisors of sums of rows by group: group sizes, at least 1, or their square roots. y is the spec of
/// the sums; the result broadcasts with them.
Tensor divisors_of(const Tensor& ids, const Spec& y, int axis, kernels::Divisor divisor);
/// sum_of_groups for ids that are sorted and not negative.
Tensor sum_of_ordered_groups(const Tensor& x, const Tensor& ids, std::int64_t count, int axis);

namespace detail {
void product_vjp(const Call& c, std::span<Gradient> dy, std::span<Gradient> dx);
void product_jvp(const Call& c, Refs dx, std::span<Tensor> dy);
void extreme_vjp(const Call& c, std::span<Gradient> dy, std::span<Gradient> dx);
void extreme_jvp(const Call& c, Refs dx, std::span<Tensor> dy);
}   // namespace detail

/// The rules of products and of extremes by group. Equal extremes share the gradient equally.
inline constexpr Rule kProductByGroup = Rule::custom({.x = 0b11}, detail::product_vjp, detail::product_jvp);
inline constexpr Rule kExtremeByGroup =
    Rule::custom({.x = 0b11, .y = true}, detail::extreme_vjp, detail::extreme_jvp);

}   // namespace tapedeck
