// Gradients on their way from several losses, or a scaled one, to a step.
#include "tapedeck/training.h"

#include <algorithm>
#include <cmath>

#include "core/format.h"
#include "op/recorder.h"
#include "tapedeck/operators.h"
#include "tapedeck/ops.h"

namespace tapedeck {
namespace {

const Tensor& values_of(const Gradient& g) { return g.slices() ? g.slices()->values : g.tensor(); }

Gradient times(const Gradient& g, double factor) {
  if (!g.defined()) return {};
  if (const IndexedSlices* s = g.slices())
    return IndexedSlices{s->values * factor, s->indices, s->dense_shape};
  return g.tensor() * factor;
}

bool finite(const Gradient& g) {
  return !g.defined() || sum(values_of(g) * 0.0).item() == 0;
}   // ∞ · 0 is NaN

}   // namespace

void GradientAccumulator::add(std::span<const GradientAndVariable> pairs) {
  const RecordingScope unrecorded(nullptr);
  std::vector<GradientAndVariable> sums = sums_;
  for (const GradientAndVariable& p : pairs) {
    const auto at = std::find_if(sums.begin(), sums.end(),
                                 [&](const GradientAndVariable& s) { return s.variable == p.variable; });
    if (at == sums.end())
      sums.push_back(p);
    else
      at->gradient = aggregate({at->gradient, p.gradient});
  }
  sums_ = std::move(sums);
  ++count_;
}

std::vector<GradientAndVariable> GradientAccumulator::take_sum() {
  if (count_ == 0) throw ArgumentError("take_sum: no gradients were added");
  count_ = 0;
  return std::exchange(sums_, {});
}

std::vector<GradientAndVariable> GradientAccumulator::take_mean() {
  if (count_ == 0) throw ArgumentError("take_mean: no gradients were added");
  const RecordingScope unrecorded(nullptr);
  std::vector<GradientAndVariable> mean = sums_;
  for (GradientAndVariable& p : mean)
    p.gradient = times(p.gradient, 1 / static_cast<double>(count_));
  count_ = 0;
  sums_.clear();
  return mean;
}

LossScale::LossScale(LossScaleOptions options) : options_(options), value_(options.initial) {
  const auto [initial, factor, interval, least, most] = options;
  if (!(least > 0 && least <= initial && initial <= most && std::isfinite(most)))
    throw_error<ArgumentError>(
        "loss_scale: initial is {}, least is {}, most is {}; use ascending numbers above 0: least, initial, "
        "most",
        initial, least, most);
  if (!(factor > 1 && std::isfinite(factor)) || interval < 0)
    throw_error<ArgumentError>(
        "loss_scale: factor is {}, growth_interval is {}; use a factor above 1 and an interval of 0 or more",
        factor, interval);
}

Tensor LossScale::scale(const Tensor& loss) const { return loss * value_; }

bool LossScale::unscale(std::span<GradientAndVariable> pairs) {
  const RecordingScope unrecorded(nullptr);
  if (!std::all_of(pairs.begin(), pairs.end(),
                   [](const GradientAndVariable& p) { return finite(p.gradient); })) {
    if (options_.growth_interval > 0) value_ = std::max(options_.least, value_ / options_.factor);
    good_ = 0;
    ++skipped_;
    return false;
  }
  for (GradientAndVariable& p : pairs)
    p.gradient = times(p.gradient, 1 / value_);
  if (options_.growth_interval > 0 && ++good_ == options_.growth_interval) {
    value_ = std::min(options_.most, value_ * options_.factor);
    good_ = 0;
  }
  return true;
}

Tensor LossScale::minimize(Optimizer& optimizer, const Loss& loss, const LossOptions& options,
                           const std::optional<Variable>& global_step) {
  if (!loss) throw ArgumentError("loss_scale: the loss is an empty function");
  Tensor value;
  std::vector<GradientAndVariable> pairs =
      Optimizer::compute_gradients([&] { return scale(value = loss()); }, options);
  if (unscale(pairs)) optimizer.apply_gradients(pairs, global_step);
  return value;
}

}   // namespace tapedeck
