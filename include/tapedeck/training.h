// Between a loss and a step: gradients of several micro-batches as one, and losses scaled so that small
// gradients survive.
#pragma once
#include "tapedeck/optimizer.h"

namespace tapedeck {

/// Adds up gradients until they are taken, as if several batches were one. A variable whose gradient is none
/// in some of them counts as zero there. Sums of f16 and bf16 are f32.
class TAPEDECK_EXPORT GradientAccumulator {
 public:
  /// Throws ShapeError or DTypeError, and adds nothing, where a gradient differs from those of the same
  /// variable before.
  void add(std::span<const GradientAndVariable> pairs);
  void add(std::initializer_list<GradientAndVariable> pairs) { add(std::span(pairs.begin(), pairs.size())); }
  /// How many times something was added. Throws TraceError while a function is recorded.
  std::int64_t count() const;
  /// The sum, or its part for one of them, for each variable in the order in which they came; from here on it
  /// is empty again. Throw ArgumentError where nothing was added.
  std::vector<GradientAndVariable> take_sum();
  std::vector<GradientAndVariable> take_mean();

  /// The scalar "count"; of each variable the slot "place", which numbers them in their order, and "sum", or
  /// "values" and "indices" where the sum is sparse.
  SavedState state() const;
  /// Everything, in place of what there is, or nothing. Throws ArgumentError for names that are missing or
  /// unknown, ShapeError or DTypeError for gradients that do not fit their variables.
  void restore(const SavedState& state);
  /// The checks of restore; the result makes the change.
  Commit prepare_restore(const SavedState& state);
  /// For Checkpoint: see HasState.
  std::vector<std::string> slot_names() const;

 private:
  std::vector<GradientAndVariable> sums_;
  std::vector<std::int64_t> places_;   // of the sums, ascending
  std::int64_t count_ = 0;
  detail::Lifetime lifetime_;
};

/// How a scale begins and changes.
struct LossScaleOptions {
  double initial = 32768;
  double factor = 2;   // by which the scale grows and shrinks
  /// Steps without an infinite gradient after which it grows; 0: it stays as it is.
  std::int64_t growth_interval = 2000;
  double least = 1, most = 16777216;   // it stays within these
};
/// Multiplies losses, and divides their gradients by the same number, which grows as long as all of them are
/// finite: Micikevicius et al. 2018, section 3.2.
class TAPEDECK_EXPORT LossScale {
 public:
  /// Throws ArgumentError unless 0 < least ≤ initial ≤ most, the factor is above 1 and the interval 0 or
  /// more.
  explicit LossScale(LossScaleOptions options = {});

  /// The present scale.
  double value() const;
  /// loss · value(), recorded on tapes; in f32 for a loss of f16 or bf16, as are gradients that were
  /// unscaled.
  Tensor scale(const Tensor& loss) const;
  /// Gradients of a scaled loss become those of the loss. False where one of them has an infinite element or
  /// NaN: then they are left as they are, the scale shrinks, and the step is to be left out. All replicas
  /// must call it, of one LossScale that they share; it is false on all where it is on one.
  bool unscale(std::span<GradientAndVariable> pairs);
  /// A step with the scaled loss, or none. Returns the loss.
  Tensor minimize(Optimizer& optimizer, const Loss& loss, const LossOptions& options = {},
                  const std::optional<Variable>& global_step = {});
  /// Steps that were left out.
  std::int64_t skipped() const;

  /// The scalars "value", "good", the steps since the scale changed, and "skipped".
  SavedState state() const;
  /// Throws ArgumentError, and changes nothing, for other names and for numbers that these cannot be.
  void restore(const SavedState& state);
  /// The checks of restore; the result makes the change.
  Commit prepare_restore(const SavedState& state);

 private:
  void count_step(bool is_finite);

  LossScaleOptions options_;
  double value_;
  std::int64_t good_ = 0, skipped_ = 0;
  detail::Lifetime lifetime_;
};

}   // namespace tapedeck
