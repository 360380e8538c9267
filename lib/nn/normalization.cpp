// Layers that normalize.
#include "tapedeck/nn/normalization.h"

#include <cmath>

#include "core/format.h"
#include "nn/in_layer.h"
#include "op/halves_in_f32.h"
#include "optim/communicator.h"
#include "optim/master.h"
#include "tape/variable.h"
#include "tapedeck/gradient_tape.h"
#include "tapedeck/operators.h"
#include "tapedeck/ops.h"

namespace tapedeck::nn {
namespace {

double checked_epsilon(std::string_view layer, double epsilon) {
  if (!(epsilon >= 0 && std::isfinite(epsilon)))
    throw_error<ArgumentError>("{}: epsilon is {}; use 0 or a small positive number", layer, epsilon);
  return epsilon;
}

}   // namespace

LayerNorm::LayerNorm(std::int64_t size_, const LayerNormOptions& options)
    : size(size_),
      epsilon(checked_epsilon("layer_norm", options.epsilon)),
      scale(detail::new_constant("layer_norm", "scale", size, 1, options.dtype)),
      offset(detail::new_constant("layer_norm", "offset", size, 0, options.dtype)) {}
Tensor LayerNorm::operator()(const Tensor& x) const {
  return in_layer({this, "LayerNorm", scale, "...,#", size}, x,
                  [&] { return detail::noted(this, "LayerNorm", layer_norm(x, scale, offset, epsilon)); });
}

RMSNorm::RMSNorm(std::int64_t size_, const RMSNormOptions& options)
    : size(size_),
      epsilon(checked_epsilon("rms_norm", options.epsilon)),
      scale(detail::new_constant("rms_norm", "scale", size, 1, options.dtype)) {}
Tensor RMSNorm::operator()(const Tensor& x) const {
  return in_layer({this, "RMSNorm", scale, "...,#", size}, x, [&] {
    if (x.ndim() == 0 || x.shape()[x.ndim() - 1] != size)
      throw_error<ShapeError>("rms_norm: x is {}; its last axis must be {}", x.spec(), size);
    return detail::noted(this, "RMSNorm",
                         halves_in_f32(x, [&](const Tensor& wide) {
                           return wide *
                                  rsqrt(tapedeck::mean(square(wide), {-1}, {.keepdims = true}) + epsilon);
                         }) * scale);
  });
}

GroupNorm::GroupNorm(std::int64_t groups_, std::int64_t channels_, const GroupNormOptions& options)
    : groups(groups_),
      channels(channels_),
      epsilon(checked_epsilon("group_norm", options.epsilon)),
      scale(detail::new_constant("group_norm", "scale", channels, 1, options.dtype)),
      offset(detail::new_constant("group_norm", "offset", channels, 0, options.dtype)) {
  if (groups < 1 || channels % groups != 0)
    throw_error<ArgumentError>("group_norm: groups is {}, which does not divide {} channels", groups,
                               channels);
}
Tensor GroupNorm::operator()(const Tensor& x) const {
  return in_layer({this, "GroupNorm", scale, "batch,...,#", channels}, x, [&] {
    const int rank = x.ndim();
    if (rank < 2 || x.shape()[rank - 1] != channels)
      throw_error<ShapeError>("group_norm: x is {}; it must be [batch, ..., {}]", x.spec(), channels);
    const std::int64_t batch = x.shape()[0];
    std::int64_t positions = 1;   // not -1, which is ambiguous for an empty batch
    for (int axis = 1; axis < rank - 1; ++axis)
      positions *= x.shape()[axis];
    const Tensor normal = halves_in_f32(x, [&](const Tensor& wide) {
      const Tensor grouped = reshape(wide, {batch, positions, groups, channels / groups});
      const Tensor centered = grouped - mean(grouped, {1, 3}, {.keepdims = true});
      return reshape(centered * rsqrt(mean(square(centered), {1, 3}, {.keepdims = true}) + epsilon),
                     x.shape());
    });
    return detail::noted(this, "GroupNorm", normal * scale + offset);
  });
}

namespace {

// A layer that the replica itself has created is not shared.
bool is_shared(const Variable& v) {
  return thread_state.communicator && (thread_state.replica == 0 || v.cell().replica != thread_state.replica);
}

// Mean, sum of squared deviations and count of this replica's part of a batch, in its row of a table of all
// replicas, whose other rows are zeros.
Tensor in_table(const tapedeck::BatchNorm& batch, double n, Replica replica) {
  const auto wide = [](const Tensor& x) { return reshape(astype(x, DType::f64), {1, -1}); };
  const Tensor row = concat({wide(batch.mean), wide(batch.saved_variance) * n, tensor({{n}}, DType::f64)}, 1);
  const std::int64_t width = row.shape()[1];
  return concat({zeros({replica.index, width}, DType::f64), row,
                 zeros({replica.count - 1 - replica.index, width}, DType::f64)},
                0);
}

struct Moments {
  Tensor mean, variance;
  double n;   // elements of a channel
};
// The moments of the whole batch from those of all parts: Chan, Golub and LeVeque 1979.
Moments of_all_parts(const Tensor& table, std::int64_t channels) {
  const auto columns = [&](std::int64_t first, std::int64_t n) {
    return slice(table, {0, first}, {table.shape()[0], n});
  };
  const Tensor means = columns(0, channels), n = columns(2 * channels, 1), all = sum(n);
  const Tensor mean = sum(means * n, {0}) / all;
  const Tensor squares = sum(columns(channels, channels) + n * square(means - mean), {0});
  return {mean, squares / maximum(all - 1, 1), all.item()};
}

}   // namespace

BatchNorm::BatchNorm(std::int64_t channels_, const BatchNormOptions& options)
    : channels(channels_),
      momentum(options.momentum),
      epsilon(checked_epsilon("batch_norm", options.epsilon)),
      scale(detail::new_constant("batch_norm", "scale", channels, 1, options.dtype)),
      offset(detail::new_constant("batch_norm", "offset", channels, 0, options.dtype)),
      mean(detail::new_constant("batch_norm", "mean", channels, 0, computed_in(options.dtype), false)),
      variance(
          detail::new_constant("batch_norm", "variance", channels, 1, computed_in(options.dtype), false)) {
  if (!(momentum >= 0 && momentum <= 1))
    throw_error<ArgumentError>("batch_norm: momentum is {}; use a number from 0 to 1", momentum);
}
Tensor BatchNorm::operator()(const Tensor& x, Run run) const {
  return in_layer({this, "BatchNorm", scale, "...,#", channels}, x, [&] {
    if (!run.training)
      return detail::noted(this, "BatchNorm",
                           batch_norm_inference(x, scale, offset, mean, variance, epsilon));
    tapedeck::BatchNorm batch = batch_norm(in_f32(x), in_f32(scale), in_f32(offset), epsilon);
    if (is_half(x.dtype())) batch.y = astype(batch.y, x.dtype());
    if (x.size() == channels)
      warn(
          "batch_norm: in training a batch of one element for each channel has no variance: the result is "
          "the offset, and the running mean and variance stay unchanged; use larger batches, or "
          "drop_remainder of a DataLoader");
    const StopRecording pause;
    const auto follow = [&](const Moments& m) {
      if (!(m.n > 1)) return;   // a single element has no variance
      const auto move = [&](const Variable& running, const Tensor& now) {
        running.assign(momentum * running.value() + (1 - momentum) * astype(now, running.dtype()));
      };
      move(mean, m.mean), move(variance, m.variance);
    };
    const Moments own = {batch.mean, batch.variance, static_cast<double>(x.size() / channels)};
    if (!is_shared(mean)) {
      follow(own);
    } else {
      Communicator& all = *thread_state.communicator;
      all.sum(in_table(batch, own.n, all.replica()),
              {"batch_norm", "layer", &mean.cell(), [&](const Tensor& table) {
                 follow(table.shape()[0] == 1 ? own : of_all_parts(table, channels));
               }});
    }
    return detail::noted(this, "BatchNorm", std::move(batch.y));
  });
}

}   // namespace tapedeck::nn
