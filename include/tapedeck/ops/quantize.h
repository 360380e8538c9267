// Rounding to few levels, as it will be after training. f32 and f64. Gradients pass as if nothing were
// rounded.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck {

struct FakeQuant {
  int bits = 8;                // 2..16
  bool narrow_range = false;   // from 1 on instead of 0
};
// x moved to the nearest of 2^bits levels from min to max, which are themselves moved so that 0 is a level
// (Jacob et al. 2018, section 2.1). The gradient of what lies between them goes to x, of what lies outside to
// min or max. These throw ArgumentError for other numbers of bits and unless min < max.

/// With numbers for min and max.
TAPEDECK_EXPORT Tensor fake_quant_with_min_max_args(const Tensor& x, double min = -6, double max = 6,
                                                    const FakeQuant& options = {});
/// With tensors of rank 0.
TAPEDECK_EXPORT Tensor fake_quant_with_min_max_vars(const Tensor& x, const Tensor& min, const Tensor& max,
                                                    const FakeQuant& options = {});
/// With a min and a max [n] for each entry of the last axis of x.
TAPEDECK_EXPORT Tensor fake_quant_with_min_max_vars_per_channel(const Tensor& x, const Tensor& min,
                                                                const Tensor& max,
                                                                const FakeQuant& options = {});

struct Quantize {
  enum class Round : std::uint8_t { half_to_even, half_up };

  bool is_signed = true;       // levels on both sides of 0
  int bits = 8;                // 2..24
  bool narrow_range = false;   // as many levels below 0 as above
  Round round = Round::half_to_even;
};
/// x moved to the nearest multiple of a step such that the numbers of `bits` bits reach from min to max, both
/// of rank 0; what lies outside goes to the ends. The gradient of what lies between min and max goes to x, of
/// what lies outside to min or max. Throws ArgumentError for other numbers of bits and where min is above
/// max.
TAPEDECK_EXPORT Tensor quantize_and_dequantize(const Tensor& x, const Tensor& min, const Tensor& max,
                                               const Quantize& options = {});
/// The same from the least to the largest element; the gradient is dy.
TAPEDECK_EXPORT Tensor quantize_and_dequantize(const Tensor& x, const Quantize& options = {});

}   // namespace tapedeck
