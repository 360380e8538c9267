// Simulated quantization, for quantization-aware training. Floating-point dtypes. Gradients ignore the
// rounding (straight-through estimator).
#pragma once
#include <optional>

#include "tapedeck/tensor.h"

namespace tapedeck {

/// Options of the fake_quant functions.
struct FakeQuantOptions {
  int bits = 8;                // 2 to 16
  bool narrow_range = false;   // levels start at 1 instead of 0
};
/// Rounds x to the nearest of 2^bits levels from min to max. Both are first shifted so that 0 is a level
/// (Jacob et al. 2018, section 3). The gradient of elements within the shifted range is the output gradient,
/// else 0. Throws ArgumentError if `bits` is out of range, or unless min < max and max - min is finite.
TAPEDECK_EXPORT Tensor fake_quant_with_min_max_args(const Tensor& x, double min = -6, double max = 6,
                                                    const FakeQuantOptions& options = {});
/// Like fake_quant_with_min_max_args, with tensors min and max of rank 0, which get the gradients of the
/// elements below and above the range. Also throws ShapeError or DTypeError if they do not match x.
TAPEDECK_EXPORT Tensor fake_quant_with_min_max_vars(const Tensor& x, const Tensor& min, const Tensor& max,
                                                    const FakeQuantOptions& options = {});
/// Like fake_quant_with_min_max_vars, with min and max [n], one for each entry of the last axis of x.
TAPEDECK_EXPORT Tensor fake_quant_with_min_max_vars_per_channel(const Tensor& x, const Tensor& min,
                                                                const Tensor& max,
                                                                const FakeQuantOptions& options = {});

/// Options of quantize_and_dequantize.
struct QuantizeAndDequantizeOptions {
  /// How numbers halfway between two steps are rounded.
  enum class Round : std::uint8_t { half_to_even, half_up };

  bool is_signed = true;       // levels on both sides of 0
  int bits = 8;                // 2 to 24
  bool narrow_range = false;   // as many levels below 0 as above
  Round round = Round::half_to_even;
  std::optional<int> axis = {};   // each entry of this axis of x has its own range
};
/// Rounds x to the nearest multiple of the smallest step with which the integers of `bits` bits cover the
/// range from min to max (both of rank 0; with an axis [n], where n is its extent). Elements beyond the
/// lowest or highest integer are clipped; if one side of 0 determines the step, the levels of the other side
/// extend beyond its bound. The gradient goes to x for elements from min to max, else to min or max. Throws
/// ArgumentError if `bits` is out of range, min > max or max - min is infinite, and ShapeError or DTypeError
/// if min or max do not match x.
TAPEDECK_EXPORT Tensor quantize_and_dequantize(const Tensor& x, const Tensor& min, const Tensor& max,
                                               const QuantizeAndDequantizeOptions& options = {});
/// quantize_and_dequantize with the range from the smallest to the largest element of x, or of each entry of
/// the axis; the gradient of x is the output gradient. Throws ShapeError if x has no elements.
TAPEDECK_EXPORT Tensor quantize_and_dequantize(const Tensor& x,
                                               const QuantizeAndDequantizeOptions& options = {});

}   // namespace tapedeck
