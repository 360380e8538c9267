// Normalisation: activations of a given mean and variance. f32 and f64.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck {

/// x with mean 0 and variance 1 along the last axis, times scale [n] plus offset [n] (Ba, Kiros and Hinton
/// 2016): epsilon is added to the variance. Throws ShapeError for other scales and offsets, ArgumentError for
/// a negative epsilon.
TAPEDECK_EXPORT Tensor layer_norm(const Tensor& x, const Tensor& scale, const Tensor& offset,
                                  double epsilon = 1e-5);

/// What batch_norm gives; all but y are [channels].
struct BatchNorm {
  Tensor y;
  Tensor mean, variance;   // of the batch; the variance with n - 1 in the denominator, for a moving average
  Tensor saved_mean, saved_variance;   // TensorFlow's reserve spaces: the same with n in the denominator
};

/// Each channel, the last axis of x, with mean 0 and variance 1 over all other axes, times scale plus offset,
/// which are [channels] (Ioffe and Szegedy 2015): epsilon is added to the variance. Every output is
/// differentiable. Throws ShapeError for other scales and offsets and for x of rank 0 or without elements,
/// ArgumentError for a negative epsilon.
TAPEDECK_EXPORT BatchNorm batch_norm(const Tensor& x, const Tensor& scale, const Tensor& offset,
                                     double epsilon = 1e-3);
/// The same with a given mean and variance [channels], as after training.
TAPEDECK_EXPORT Tensor batch_norm_inference(const Tensor& x, const Tensor& scale, const Tensor& offset,
                                            const Tensor& mean, const Tensor& variance,
                                            double epsilon = 1e-3);

struct LocalResponse {
  std::int64_t radius = 5;
  double bias = 1, alpha = 1, beta = 0.5;
};
/// x / (bias + alpha · s)^beta, where s is the sum of squares over the channels up to `radius` away
/// (Krizhevsky, Sutskever and Hinton 2012, section 3.3). Throws ShapeError for x of rank 0, ArgumentError for
/// a negative radius.
TAPEDECK_EXPORT Tensor local_response_normalization(const Tensor& x, const LocalResponse& options = {});

}   // namespace tapedeck
