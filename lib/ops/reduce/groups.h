// What ops on groups of rows share: the second input of a call says which group each row belongs to.
#pragma once
#include "kernels/reduce/segment.h"
#include "tapedeck/op.h"

namespace tapedeck {

// The rows lie along one axis of x, counted from the end, which becomes one of `count` groups.
struct SegmentAttrs {
  std::int64_t count;
  int axis;
  bool zero = false;   // zero: what a group without rows gives, whatever the op
};

/// y[…, i, …] = x[…, ids[i], …] along an axis counted from the end, or 0 for a negative id; and the adjoint:
/// sums of rows by group, without those of a negative id.
Tensor rows_of_groups(const Tensor& x, const Tensor& ids, int axis);
Tensor sum_of_groups(const Tensor& x, const Tensor& ids, std::int64_t count, int axis);
/// What sums of rows by group, of this spec, are divided by: something that broadcasts to them along the
/// axis. A group without rows counts as one of one.
Tensor divisors_of(const Tensor& ids, const Spec& y, int axis, kernels::Divisor divisor);
/// The sums where ids are not negative and never fall.
Tensor sum_of_ordered_groups(const Tensor& x, const Tensor& ids, std::int64_t count, int axis);

namespace detail {
void product_vjp(const Call& c, std::span<Gradient> dy, std::span<Gradient> dx);
void product_jvp(const Call& c, Refs dx, std::span<Tensor> dy);
void extreme_vjp(const Call& c, std::span<Gradient> dy, std::span<Gradient> dx);
void extreme_jvp(const Call& c, Refs dx, std::span<Tensor> dy);
}   // namespace detail

/// The rules of products by group, and of extremes, of which equal ones share the gradient.
inline constexpr Rule kProductByGroup =
    custom({.x = 0b11, .y = true}, detail::product_vjp, detail::product_jvp);
inline constexpr Rule kExtremeByGroup =
    custom({.x = 0b11, .y = true}, detail::extreme_vjp, detail::extreme_jvp);

}   // namespace tapedeck
