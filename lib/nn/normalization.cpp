// Layers that normalize.
#include "tapedeck/nn/normalization.h"

#include "core/format.h"
#include "tapedeck/gradient_tape.h"
#include "tapedeck/operators.h"
#include "tapedeck/ops.h"

namespace tapedeck::nn {

LayerNorm::LayerNorm(std::int64_t size_, double epsilon_, DType dtype)
    : size(size_),
      epsilon(epsilon_),
      scale(detail::new_constant("layer_norm", "scale", size, 1, dtype)),
      offset(detail::new_constant("layer_norm", "offset", size, 0, dtype)) {}
Tensor LayerNorm::operator()(const Tensor& x) const {
  return detail::noted(this, "LayerNorm", layer_norm(x, scale, offset, epsilon));
}

RMSNorm::RMSNorm(std::int64_t size_, double epsilon_, DType dtype)
    : size(size_), epsilon(epsilon_), scale(detail::new_constant("rms_norm", "scale", size, 1, dtype)) {}
Tensor RMSNorm::operator()(const Tensor& x) const {
  if (x.ndim() == 0 || x.shape()[x.ndim() - 1] != size)
    throw_error<ShapeError>("rms_norm: x is {}; its last axis has to be {}", x.spec(), size);
  const Tensor norm = rsqrt(tapedeck::mean(square(x), {-1}, true) + epsilon);
  return detail::noted(this, "RMSNorm", x * norm * scale);
}

GroupNorm::GroupNorm(std::int64_t groups_, std::int64_t channels_, double epsilon_, DType dtype)
    : groups(groups_),
      channels(channels_),
      epsilon(epsilon_),
      scale(detail::new_constant("group_norm", "scale", channels, 1, dtype)),
      offset(detail::new_constant("group_norm", "offset", channels, 0, dtype)) {
  if (groups < 1 || channels % groups != 0)
    throw_error<ArgumentError>("group_norm: groups is {}, which does not divide {} channels", groups,
                               channels);
}
Tensor GroupNorm::operator()(const Tensor& x) const {
  const int rank = x.ndim();
  if (rank < 2 || x.shape()[rank - 1] != channels)
    throw_error<ShapeError>("group_norm: x is {}; it has to be [batch, ..., {}]", x.spec(), channels);
  const std::int64_t batch = x.shape()[0];
  const Tensor grouped = reshape(x, {batch, -1, groups, channels / groups});
  const Tensor centered = grouped - mean(grouped, {1, 3}, true);
  const Tensor normal = centered * rsqrt(mean(square(centered), {1, 3}, true) + epsilon);
  return detail::noted(this, "GroupNorm", reshape(normal, x.shape()) * scale + offset);
}

BatchNorm::BatchNorm(std::int64_t channels_, const BatchNormOptions& options)
    : channels(channels_),
      momentum(options.momentum),
      epsilon(options.epsilon),
      scale(detail::new_constant("batch_norm", "scale", channels, 1, options.dtype)),
      offset(detail::new_constant("batch_norm", "offset", channels, 0, options.dtype)),
      mean(detail::new_constant("batch_norm", "mean", channels, 0, options.dtype, false)),
      variance(detail::new_constant("batch_norm", "variance", channels, 1, options.dtype, false)) {}
Tensor BatchNorm::operator()(const Tensor& x, Run run) const {
  if (!run.training)
    return detail::noted(this, "BatchNorm", batch_norm_inference(x, scale, offset, mean, variance, epsilon));
  tapedeck::BatchNorm batch = batch_norm(x, scale, offset, epsilon);
  const StopRecording pause;
  mean.assign(momentum * mean.value() + (1 - momentum) * batch.mean);
  variance.assign(momentum * variance.value() + (1 - momentum) * batch.variance);
  return detail::noted(this, "BatchNorm", std::move(batch.y));
}

}   // namespace tapedeck::nn
