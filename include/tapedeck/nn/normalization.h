// Layers that normalize activations, with trainable scales and offsets. epsilon is added to variances.
#pragma once
#include "tapedeck/nn/new_variables.h"
#include "tapedeck/nn/run.h"

namespace tapedeck::nn {

/// Options of LayerNorm.
struct LayerNormOptions {
  double epsilon = 1e-5;
  DType dtype = default_dtype();
};
/// layer_norm over the last axis of x [..., size].
struct TAPEDECK_EXPORT LayerNorm {
  std::int64_t size;
  double epsilon;
  Variable scale, offset;   // [size]

  /// Throws ArgumentError for a size below 1 and an epsilon that is negative or not finite, and DTypeError
  /// unless the dtype is floating-point.
  explicit LayerNorm(std::int64_t size_, const LayerNormOptions& options = {});

  /// Applies the layer to x.
  Tensor operator()(const Tensor& x) const;
  /// Visits the variables: see variables.h.
  template <class Visit> void for_each_member(const Visit& visit) {
    visit("scale", scale), visit("offset", offset);
  }
};

/// Options of RMSNorm.
struct RMSNormOptions {
  double epsilon = 1e-6;
  DType dtype = default_dtype();
};
/// x / √(mean(x²) + epsilon) · scale over the last axis of x [..., size]: Zhang and Sennrich 2019. Throws
/// ShapeError for another x.
struct TAPEDECK_EXPORT RMSNorm {
  std::int64_t size;
  double epsilon;
  Variable scale;   // [size]

  /// Throws ArgumentError for a size below 1 and an epsilon that is negative or not finite, and DTypeError
  /// unless the dtype is floating-point.
  explicit RMSNorm(std::int64_t size_, const RMSNormOptions& options = {});

  /// Applies the layer to x.
  Tensor operator()(const Tensor& x) const;
  /// Visits the variables: see variables.h.
  template <class Visit> void for_each_member(const Visit& visit) { visit("scale", scale); }
};

/// Options of GroupNorm.
struct GroupNormOptions {
  double epsilon = 1e-5;
  DType dtype = default_dtype();
};
/// Normalizes each group of channels over all positions of x [batch, ..., channels], then scales and offsets
/// each channel: Wu and He 2018. Throws ShapeError for another x.
struct TAPEDECK_EXPORT GroupNorm {
  std::int64_t groups, channels;
  double epsilon;
  Variable scale, offset;   // [channels]

  /// Throws ArgumentError unless groups divides channels, and what LayerNorm throws.
  GroupNorm(std::int64_t groups_, std::int64_t channels_, const GroupNormOptions& options = {});

  /// Applies the layer to x.
  Tensor operator()(const Tensor& x) const;
  /// Visits the variables: see variables.h.
  template <class Visit> void for_each_member(const Visit& visit) {
    visit("scale", scale), visit("offset", offset);
  }
};

/// Options of BatchNorm.
struct BatchNormOptions {
  /// The momentum of the running mean and variance. After n steps, momentumⁿ of their initial values remains:
  /// 12 % after 20 steps with 0.9, which corresponds to PyTorch's 0.1; 37 % after 100 steps with Keras's
  /// 0.99.
  double momentum = 0.9;
  double epsilon = 1e-5;
  DType dtype = default_dtype();
};
/// In training, applies batch_norm over all axes but the last of x [..., channels], and updates the running
/// mean and variance: running = momentum · running + (1 - momentum) · batch, where the variance of the batch
/// is computed with the divisor n - 1. A batch with one element per channel, for which this variance is
/// undefined, leaves them unchanged, with a warning. Otherwise applies batch_norm_inference with the running
/// mean and variance. A replica normalizes by its own part of the batch, but the running mean and variance
/// include all parts, so that all replicas must call the layer in training.
struct TAPEDECK_EXPORT BatchNorm {
  std::int64_t channels;
  double momentum, epsilon;
  Variable scale, offset;    // [channels]
  Variable mean, variance;   // running, not trainable; f32 in a layer of f16 or bf16

  /// Throws ArgumentError for a momentum that is not from 0 to 1, and what LayerNorm throws.
  explicit BatchNorm(std::int64_t channels_, const BatchNormOptions& options = {});

  /// Applies the layer to x.
  Tensor operator()(const Tensor& x, Run run = {}) const;
  /// Visits the variables: see variables.h.
  template <class Visit> void for_each_member(const Visit& visit) {
    visit("scale", scale), visit("offset", offset), visit("mean", mean), visit("variance", variance);
  }
};

}   // namespace tapedeck::nn
