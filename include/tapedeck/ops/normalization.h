// Normalization of activations, for floating-point dtypes; others throw DTypeError.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck {

/// Normalizes x to mean 0 and variance 1 along the last axis, then multiplies by scale [n] and adds offset
/// [n] (Ba, Kiros and Hinton 2016): (x - mean) / √(variance + epsilon) · scale + offset. x, scale and offset
/// have gradients. Throws ShapeError if x has rank 0 or scale or offset another shape, DTypeError if dtypes
/// differ, and ArgumentError if epsilon is negative.
TAPEDECK_EXPORT Tensor layer_norm(const Tensor& x, const Tensor& scale, const Tensor& offset,
                                  double epsilon = 1e-5);

/// The result of batch_norm: y has the shape of x, the others are [channels].
struct BatchNorm {
  Tensor y;
  Tensor mean, variance;   // of the batch; the variance is divided by n - 1, for use in a moving average
  Tensor saved_mean, saved_variance;   // TensorFlow's reserve spaces: the same, with the variance divided by
                                       // n
};

/// Normalizes each channel (the last axis of x) to mean 0 and variance 1 over all other axes, then multiplies
/// by scale and adds offset, both [channels] (Ioffe and Szegedy 2015). epsilon is added to the variance.
/// Every output is differentiable. Throws ShapeError if scale or offset has another shape or if x has rank 0
/// or no elements, DTypeError if dtypes differ, and ArgumentError if epsilon is negative.
TAPEDECK_EXPORT BatchNorm batch_norm(const Tensor& x, const Tensor& scale, const Tensor& offset,
                                     double epsilon = 1e-3);
/// batch_norm with a given mean and variance [channels], for use after training. f32, f16 and bf16 may be
/// mixed; the result has the dtype of x. All tensors have gradients. Throws ShapeError unless they have these
/// shapes, DTypeError if other dtypes differ, and ArgumentError if epsilon is negative.
TAPEDECK_EXPORT Tensor batch_norm_inference(const Tensor& x, const Tensor& scale, const Tensor& offset,
                                            const Tensor& mean, const Tensor& variance,
                                            double epsilon = 1e-3);

/// Parameters of the formula of local_response_normalization.
struct LocalResponseNormalizationOptions {
  std::int64_t radius = 5;
  double bias = 1, alpha = 1, beta = 0.5;
};
/// x / (bias + alpha · s)^beta, where s is the sum of squares over the channels (the last axis) at a distance
/// of at most `radius` (Krizhevsky, Sutskever and Hinton 2012, section 3.3). Throws ShapeError if x has rank
/// 0, and ArgumentError if the radius is negative.
TAPEDECK_EXPORT Tensor local_response_normalization(const Tensor& x,
                                                    const LocalResponseNormalizationOptions& options = {});

}   // namespace tapedeck
