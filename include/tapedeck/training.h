// Accumulation of gradients over several micro-batches, and scaling of losses so that small gradients do not
// underflow.
#pragma once
#include "tapedeck/optimizer.h"

namespace tapedeck {

/// Adds up gradients until take_sum() or take_mean(), as if several batches were one. A gradient that is none
/// in some batches counts as zero there. Sums of f16 and bf16 are f32.
class TAPEDECK_EXPORT GradientAccumulator {
 public:
  /// Throws ShapeError or DTypeError, and adds nothing, if a gradient differs from earlier gradients of the
  /// same variable.
  void add(std::span<const GradientAndVariable> pairs);
  void add(std::initializer_list<GradientAndVariable> pairs) { add(std::span(pairs.begin(), pairs.size())); }
  /// The number of calls of add() since the sum was last taken. Throws TraceError while a function is
  /// recorded.
  std::int64_t count() const;
  /// Returns the sum, or the mean, for each variable in the order in which they were added; then the
  /// accumulator is empty again. Throw ArgumentError if nothing was added.
  std::vector<GradientAndVariable> take_sum();
  std::vector<GradientAndVariable> take_mean();

  /// The scalar "count" and, for each variable, the slot "place", which is its position in the order, and the
  /// slot "sum", or "values" and "indices" if the sum is sparse.
  SavedState state() const;
  /// Replaces the whole state. If it throws, nothing changes: ArgumentError for names that are missing or
  /// unknown, ShapeError or DTypeError for gradients that do not fit their variables.
  void restore(const SavedState& state);
  /// Performs the checks of restore; calling the result makes the change.
  Commit prepare_restore(const SavedState& state);
  /// For Checkpoint: see HasState.
  std::vector<std::string> slot_names() const;

 private:
  std::vector<GradientAndVariable> sums_;
  std::vector<std::int64_t> places_;   // positions of the sums, ascending
  std::int64_t count_ = 0;
  detail::Lifetime lifetime_;
};

/// The initial value of a LossScale, and how it changes.
struct LossScaleOptions {
  double initial = 32768;
  double factor = 2;   // the scale grows and shrinks by this factor
  /// Number of steps with finite gradients after which the scale grows; 0: the scale is constant.
  std::int64_t growth_interval = 2000;
  double least = 1, most = 16777216;   // bounds of the scale
};
/// Multiplies losses, and divides their gradients by the same number, which grows as long as all of them are
/// finite: Micikevicius et al. 2018, section 3.2.
class TAPEDECK_EXPORT LossScale {
 public:
  /// Throws ArgumentError unless 0 < least ≤ initial ≤ most, the factor is above 1 and the interval 0 or
  /// more.
  explicit LossScale(LossScaleOptions options = {});

  /// The current scale.
  double value() const;
  /// Returns loss · value(), recorded on tapes. It is f32 for a loss of f16 or bf16; unscaled gradients are
  /// f32, too.
  Tensor scale(const Tensor& loss) const;
  /// Replaces gradients of a scaled loss by gradients of the loss. Returns false if one of them has an
  /// infinite element or NaN: then they are unchanged, the scale shrinks, and the caller must skip the step.
  /// All replicas must call it on one LossScale that they share; it returns false on all if it does on one.
  bool unscale(std::span<GradientAndVariable> pairs);
  /// Takes a step with the scaled loss, or skips it. Returns the loss.
  Tensor minimize(Optimizer& optimizer, const Loss& loss, const LossOptions& options = {},
                  const std::optional<Variable>& global_step = {});
  /// The number of skipped steps.
  std::int64_t skipped() const;

  /// The scalars "value", "good", which is the number of steps since the scale changed, and "skipped".
  SavedState state() const;
  /// Throws ArgumentError, and changes nothing, for other names and for impossible numbers.
  void restore(const SavedState& state);
  /// Performs the checks of restore; calling the result makes the change.
  Commit prepare_restore(const SavedState& state);

 private:
  void count_step(bool is_finite);

  LossScaleOptions options_;
  double value_;
  std::int64_t good_ = 0, skipped_ = 0;
  detail::Lifetime lifetime_;
};

}   // namespace tapedeck
