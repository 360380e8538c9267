// Statistics: counts, and functions composed of reductions and sort. In: a tensor and axes. Out: one number
// for each group of elements.
#include "ops/reduce/statistics.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "core/format.h"
#include "kernels/sort/unique.h"
#include "op/halves_in_f32.h"
#include "ops/reduce/merged_axes.h"
#include "tapedeck/ops.h"

namespace tapedeck {
namespace {

Spec infer_count(const Call& c) {
  require_real(c);
  const auto& [axes, keepdims] = c.attrs<CountAttrs>();
  require_axes(c, static_cast<int>(std::bit_width(axes)));
  return {DType::i64, without(c.x[0].shape(), axes, keepdims)};
}

constexpr Op kCountNonzero = {
    .name = "count_nonzero",
    .doc = "Number of nonzero elements over axes.",
    .args = {"x"},
    .infer = infer_count,
    .forward = [](const Call& c,
                  std::span<Tensor> y) { kernels::count_nonzero(c.x[0], c.attrs<CountAttrs>().axes, y[0]); },
    .rule = Rule::none(),
};

constexpr const Op* statistics_table[] = {&kCountNonzero};

// Returns the mask of the axes. Throws DTypeError unless x is of a floating-point dtype.
unsigned checked(std::string_view op, const Tensor& x, const Axes& axes) {
  if (!is_floating(x.dtype()))
    throw_error<DTypeError>("{}: takes f32, f64, f16 or bf16, use astype: x is {}", op, x.spec());
  return mask_of(op, "x", axes, x.ndim());
}

}   // namespace

Tensor count_nonzero(const Tensor& x, const Axes& axes, ReduceOptions options) {
  return kCountNonzero(x, CountAttrs{mask_of(kCountNonzero, axes, x.ndim()), options.keepdims});
}

Tensor variance(const Tensor& x, const Axes& axes, VarianceOptions options) {
  const auto n = static_cast<double>(size_along(x.shape(), checked("variance", x, axes)));
  return halves_in_f32(x, [&](const Tensor& t) {
    return sum(squared_difference(t, mean(t, axes, {.keepdims = true})), axes,
               {.keepdims = options.keepdims}) /
           std::max(n - options.correction, 0.0);
  });
}

Tensor stddev(const Tensor& x, const Axes& axes, VarianceOptions options) {
  checked("stddev", x, axes);
  return halves_in_f32(x, [&](const Tensor& t) { return sqrt(variance(t, axes, options)); });
}

Tensor norm(const Tensor& x, double order, const Axes& axes, ReduceOptions options) {
  const unsigned mask = checked("norm", x, axes);
  if (order != order) throw ArgumentError("norm: the order is NaN");
  if (order == 2) return euclidean_norm(x, axes, options);
  if (order == 0) return astype(count_nonzero(x, axes, options), x.dtype());
  const Tensor size = abs(x);
  const bool empty = size_along(x.shape(), mask) == 0;
  if (std::isinf(order) && empty)
    throw_error<ShapeError>("norm: no elements to choose from: x is {}", x.spec());
  if (order == 1 || empty) return sum(size, axes, options);
  if (std::isinf(order)) return order > 0 ? max(size, axes, options) : min(size, axes, options);
  return halves_in_f32(size,
                       [&](const Tensor& t) { return pow(sum(pow(t, order), axes, options), 1 / order); });
}

// sort puts NaN last, so the median is NaN if the last element is.
Tensor median(const Tensor& x, const Axes& axes, ReduceOptions options) {
  const unsigned mask = checked("median", x, axes);
  const std::int64_t n = size_along(x.shape(), mask);
  if (n == 0) throw_error<ShapeError>("median: no elements to choose from: x is {}", x.spec());
  const Tensor y = halves_in_f32(x, [&](const Tensor& t) {
    const Tensor sorted = sort(Merged(t.shape(), mask).merge(t));
    const auto at = [&](std::int64_t i) { return strided_slice(sorted, {Slice::ellipsis, i}); };
    const Tensor middle = n % 2 ? at(n / 2) : (at(n / 2 - 1) + at(n / 2)) * 0.5, last = at(n - 1);
    return where(equal(last, last), middle, last);
  });
  return options.keepdims ? reshape(y, without(x.shape(), mask, true)) : y;
}

std::span<const Op* const> statistics_ops() { return statistics_table; }

}   // namespace tapedeck
