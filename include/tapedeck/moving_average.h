// Exponential moving averages of values over training: an update replaces the average av by av - (1 - decay)
// · (av - value).
#pragma once
#include <concepts>
#include <map>
#include <optional>
#include <span>

#include "tapedeck/saved_state.h"

namespace tapedeck {

/// Options of a MovingAverage.
struct MovingAverageOptions {
  bool zero_debias = true;
};
/// A variable that is a moving average. With zero_debias, the average starts from zero, whatever the
/// variable's value, and is divided by the total weight of the values so far, 1 - decayᵗ; after the first
/// update it equals the first value. Kingma and Ba 2015, section 3. The average of a variable of f16 or bf16
/// is stored in f32, and rounded to the variable. Not copyable: two averages would write to one variable.
class TAPEDECK_EXPORT MovingAverage {
 public:
  explicit MovingAverage(Variable variable, MovingAverageOptions options = {});
  template <std::same_as<bool> Bool>
  MovingAverage(const Variable&, Bool) = delete;   // {.zero_debias = false}
  MovingAverage(MovingAverage&&) = default;
  MovingAverage& operator=(MovingAverage&&) = default;

  /// The variable, whose value is the average.
  const Variable& variable() const { return variable_; }
  /// Throws ArgumentError for a decay that is not from 0 to 1, and what assign throws.
  void update(const Tensor& value, double decay);

  /// The tensor "value" of the variable; with zero_debias also the tensor "biased" and the scalar "left", and
  /// without it also the tensor "master" in f32 if the variable is f16 or bf16.
  SavedState state() const;
  /// Replaces the whole state. If it throws, nothing changes: ArgumentError for names that are missing or
  /// unknown and for a "left" that is not from 0 to 1, ShapeError or DTypeError for tensors that differ from
  /// the variable in shape or dtype.
  void restore(const SavedState& state);
  /// Performs the checks of restore; calling the result makes the change.
  Commit prepare_restore(const SavedState& state);

 private:
  Variable variable_;
  Tensor biased_;     // used with zero_debias
  Tensor master_;     // used without, for a variable of f16 or bf16: the average in f32
  double left_ = 1;   // product of decays
  detail::Lifetime lifetime_;
};

/// A weighted moving mean: the moving average of value · weight divided by the moving average of weight.
class TAPEDECK_EXPORT WeightedMovingAverage {
 public:
  /// Throws ArgumentError for a decay that is not from 0 to 1.
  explicit WeightedMovingAverage(double decay);
  /// Adds a value, to which weight broadcasts, and returns the new mean. Not differentiated.
  Tensor update(const Tensor& value, const Tensor& weight);

  /// The tensors "numerator" and "denominator"; empty before the first update.
  SavedState state() const;
  /// Throws ArgumentError, and changes nothing, for other names and if only one of them is present.
  void restore(const SavedState& state);
  /// Performs the checks of restore; calling the result makes the change.
  Commit prepare_restore(const SavedState& state);
  /// Whether state() has a tensor of this name at some times and not at others.
  bool may_have(std::string_view tensor) const;

 private:
  double decay_;
  Tensor numerator_, denominator_;
  detail::Lifetime lifetime_;
};

/// Options of an ExponentialMovingAverage.
struct ExponentialMovingAverageOptions {
  bool zero_debias = false;   // concerns averages of tensors
  std::string name = "ExponentialMovingAverage";
};

/// Moving averages of variables, which start from their values at the first update, and of named tensors,
/// which start from zero. Averages are themselves variables, which are not trainable, so that they can be
/// saved.
class TAPEDECK_EXPORT ExponentialMovingAverage {
 public:
  /// Throws ArgumentError for a decay that is not from 0 to 1, and for an empty name.
  explicit ExponentialMovingAverage(double decay, ExponentialMovingAverageOptions options = {});
  ExponentialMovingAverage(ExponentialMovingAverage&&) = default;   // as in MovingAverage
  ExponentialMovingAverage& operator=(ExponentialMovingAverage&&) = default;

  /// Updates the averages of variables, or of a named value. With num_updates = n, early averages adapt
  /// faster: the decay is min(decay, (1 + n) / (10 + n)). Throws DTypeError unless the values are
  /// floating-point, and ArgumentError for a negative n.
  void apply(std::span<const Variable> variables, std::optional<std::int64_t> num_updates = {});
  void apply(const std::string& name, const Tensor& value, std::optional<std::int64_t> num_updates = {});

  /// The average of a variable or of a named value. Throws ArgumentError before its first update.
  Variable average(const Variable& v) const;
  Variable average(std::string_view name) const;
  /// Whether there is an average, which there is after the first update.
  bool has_average(const Variable& v) const { return of_variables_.contains(v.id()); }
  bool has_average(std::string_view name) const { return of_tensors_.contains(name); }
  /// The name under which the average of v is saved, such as "w/ExponentialMovingAverage".
  std::string average_name(const Variable& v) const;
  /// The variables by the names under which their averages are saved, or by their own names if they have no
  /// average, so that averages can be loaded into the variables. Throws ArgumentError if two have the same
  /// name.
  std::map<std::string, Variable> variables_to_restore(std::span<const Variable> variables) const;

  /// The slot "average" of every variable that has one, and for the named average NAME the tensor
  /// "NAME/value" and, with zero_debias, "NAME/biased" and "NAME/left".
  SavedState state() const;
  /// Replaces the whole state. Existing averages keep their variables, others are created. If it throws,
  /// nothing changes: ArgumentError for names that are missing or unknown, ShapeError or DTypeError for an
  /// average that differs from its variable in shape or dtype.
  void restore(const SavedState& state);
  /// Performs the checks of restore; calling the result makes the change.
  Commit prepare_restore(const SavedState& state);
  /// For Checkpoint: see HasState.
  std::vector<std::string> slot_names() const;
  std::optional<Spec> slot_spec(const Variable& v, std::string_view slot) const;
  bool may_have(std::string_view tensor) const;

 private:
  struct OfVariable {
    std::weak_ptr<detail::VariableCell> variable;
    MovingAverage average;
  };
  double decay_at(std::optional<std::int64_t> num_updates) const;
  MovingAverage make(const Variable& v, const Tensor& initial) const;
  MovingAverage make(const std::string& name, const Spec& spec) const;

  double decay_;
  ExponentialMovingAverageOptions options_;
  std::map<std::uint64_t, OfVariable> of_variables_;   // by the ids of the variables
  std::map<std::string, MovingAverage, std::less<>> of_tensors_;
  detail::Lifetime lifetime_;
};

}   // namespace tapedeck
