// Simulated quantization, for quantization-aware training. f32 and f64. Gradients ignore the rounding
// (straight-through estimator).
#pragma once
#include <optional>

#include "tapedeck/tensor.h"

namespace tapedeck {

struct FakeQuant {
  int bits = 8;                // 2 to 16
  bool narrow_range = false;   // levels start at 1 instead of 0
};
// Rounds x to the nearest of 2^bits levels from min to max. Both are first shifted so that 0 is a level
// (Jacob et al. 2018, section 2.1). The gradient goes to x for elements within the range, else to min or max.
// All throw ArgumentError if `bits` is out of range or unless min < max.

/// With numbers min and max.
TAPEDECK_EXPORT Tensor fake_quant_with_min_max_args(const Tensor& x, double min = -6, double max = 6,
                                                    const FakeQuant& options = {});
/// With tensors min and max of rank 0.
TAPEDECK_EXPORT Tensor fake_quant_with_min_max_vars(const Tensor& x, const Tensor& min, const Tensor& max,
                                                    const FakeQuant& options = {});
/// With min and max [n] for each entry of the last axis of x.
TAPEDECK_EXPORT Tensor fake_quant_with_min_max_vars_per_channel(const Tensor& x, const Tensor& min,
                                                                const Tensor& max,
                                                                const FakeQuant& options = {});

struct Quantize {
  enum class Round : std::uint8_t { half_to_even, half_up };

  bool is_signed = true;       // levels on both sides of 0
  int bits = 8;                // 2 to 24
  bool narrow_range = false;   // as many levels below 0 as above
  Round round = Round::half_to_even;
  std::optional<int> axis = {};   // each entry of this axis of x has a range of its own
};
/// Rounds x to the nearest multiple of a step, chosen so that the integers of `bits` bits cover the range
/// from min to max (both of rank 0; with an axis [n], of its extent). Elements outside are clipped to the
/// range. The gradient goes to x for elements within the range, else to min or max. Throws ArgumentError if
/// `bits` is out of range or min > max.
TAPEDECK_EXPORT Tensor quantize_and_dequantize(const Tensor& x, const Tensor& min, const Tensor& max,
                                               const Quantize& options = {});
/// The same with the range from the smallest to the largest element, with an axis of each of its entries; the
/// gradient of x is the output gradient.
TAPEDECK_EXPORT Tensor quantize_and_dequantize(const Tensor& x, const Quantize& options = {});

}   // namespace tapedeck
