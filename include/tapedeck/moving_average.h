// Averages of values over training, in which old values fade: av - (1 - decay) · (av - value) takes the place
// of av.
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
/// A variable that follows a value. With zero_debias the average begins with nothing, whatever the variable
/// holds, and is divided by the part of the weight that is not left there, 1 - decayᵗ: the first value comes
/// out as it is. Kingma and Ba 2015, section 3. The average of a variable of f16 or bf16 is kept in f32, and
/// rounded to the variable. Not copied: two averages would write to one variable.
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

  /// The tensor "value", that of the variable; with zero_debias also "biased" and the scalar "left", and else
  /// "master" in f32 where the variable is f16 or bf16.
  SavedState state() const;
  /// Everything or nothing: throws ArgumentError for names that are missing or unknown and for a part that is
  /// not from 0 to 1, ShapeError or DTypeError for tensors unlike the variable.
  void restore(const SavedState& state);
  /// The checks of restore; the result makes the change.
  Commit prepare_restore(const SavedState& state);

 private:
  Variable variable_;
  Tensor biased_;     // with zero_debias
  Tensor master_;     // without, of a variable of f16 or bf16: the average in f32
  double left_ = 1;   // product of decays
  detail::Lifetime lifetime_;
};

/// The mean of values with weights that fade: the average of value · weight over that of weight.
class TAPEDECK_EXPORT WeightedMovingAverage {
 public:
  /// Throws ArgumentError for a decay that is not from 0 to 1.
  explicit WeightedMovingAverage(double decay);
  /// The mean after one value more. weight broadcasts to it. Not differentiated.
  Tensor update(const Tensor& value, const Tensor& weight);

  /// After the first update the tensors "numerator" and "denominator".
  SavedState state() const;
  /// Throws ArgumentError, and changes nothing, for other names and for one without the other.
  void restore(const SavedState& state);
  /// The checks of restore; the result makes the change.
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
  bool zero_debias = false;   // of averages of tensors
  std::string name = "ExponentialMovingAverage";
};

/// Averages of variables, which begin as these are in the first update, and of tensors by a name, which begin
/// as zeros. Averages are variables themselves, not trainable, so that they can be saved.
class TAPEDECK_EXPORT ExponentialMovingAverage {
 public:
  /// Throws ArgumentError for a decay that is not from 0 to 1, and for an empty name.
  explicit ExponentialMovingAverage(double decay, ExponentialMovingAverageOptions options = {});
  ExponentialMovingAverage(ExponentialMovingAverage&&) = default;   // as MovingAverage
  ExponentialMovingAverage& operator=(ExponentialMovingAverage&&) = default;

  /// One update of each, variables or a value by its name. With n updates so far, early averages follow
  /// faster: the decay is min(decay, (1 + n) / (10 + n)). Throws DTypeError unless the values are
  /// floating-point, and ArgumentError for a negative n.
  void apply(std::span<const Variable> variables, std::optional<std::int64_t> num_updates = {});
  void apply(const std::string& name, const Tensor& value, std::optional<std::int64_t> num_updates = {});

  /// None before the first update.
  std::optional<Variable> average(const Variable& v) const;
  std::optional<Variable> average(std::string_view name) const;
  /// "w/ExponentialMovingAverage"
  std::string average_name(const Variable& v) const;
  /// Variables by the names under which their averages are saved, and those without an average by their own:
  /// to load averages in the place of what they are averages of. Throws ArgumentError where two have one
  /// name.
  std::map<std::string, Variable> variables_to_restore(std::span<const Variable> variables) const;

  /// The slot "average" of every variable that has one; of the average NAME the tensor "NAME/value", and
  /// with zero_debias "NAME/biased" and "NAME/left".
  SavedState state() const;
  /// Everything, in place of what there is, or nothing. Averages that there are keep their variables, others
  /// are made. Throws ArgumentError for names that are missing or unknown, ShapeError or DTypeError for an
  /// average unlike its variable.
  void restore(const SavedState& state);
  /// The checks of restore; the result makes the change.
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
  std::map<std::uint64_t, OfVariable> of_variables_;   // by their ids
  std::map<std::string, MovingAverage, std::less<>> of_tensors_;
  detail::Lifetime lifetime_;
};

}   // namespace tapedeck
