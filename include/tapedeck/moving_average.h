// Averages of values over training, in which old values fade: av - (1 - decay) · (av - value) takes the place
// of av.
#pragma once
#include <map>

#include "tapedeck/variable.h"

namespace tapedeck {

/// A variable that follows a value. With zero_debias the average begins with nothing, whatever the variable
/// holds, and is divided by the part of the weight that is not left there, 1 - decayᵗ: the first value comes
/// out as it is. Kingma and Ba 2015, section 3.
class TAPEDECK_EXPORT MovingAverage {
 public:
  explicit MovingAverage(Variable variable, bool zero_debias = true);

  const Variable& variable() const { return variable_; }
  /// Throws ArgumentError for a decay that is not from 0 to 1, and what assign throws.
  void update(const Tensor& value, double decay);

 private:
  Variable variable_;
  Tensor biased_;     // with zero_debias
  double left_ = 1;   // product of decays
};

/// The mean of values with weights that fade: the average of value · weight over that of weight.
class TAPEDECK_EXPORT WeightedMovingAverage {
 public:
  /// Throws ArgumentError for a decay that is not from 0 to 1.
  explicit WeightedMovingAverage(double decay);
  /// The mean after one value more. weight broadcasts to it. Not differentiated.
  Tensor update(const Tensor& value, const Tensor& weight);

 private:
  double decay_;
  Tensor numerator_, denominator_;
};

struct MovingAverageOptions {
  bool zero_debias = false;   // of averages of tensors
  std::string name = "ExponentialMovingAverage";
};

/// Averages of variables, which begin as these are in the first update, and of tensors by a name, which begin
/// as zeros. Averages are variables themselves, not trainable, so that they can be saved.
class TAPEDECK_EXPORT ExponentialMovingAverage {
 public:
  /// Throws ArgumentError for a decay that is not from 0 to 1, and for an empty name.
  explicit ExponentialMovingAverage(double decay, MovingAverageOptions options = {});

  /// With n updates so far, early averages follow faster: the decay is min(decay, (1 + n) / (10 + n)).
  void apply(std::span<const Variable> variables, std::optional<std::int64_t> num_updates = {});
  void apply(const std::string& name, const Tensor& value, std::optional<std::int64_t> num_updates = {});

  /// None before the first update.
  std::optional<Variable> average(const Variable& v) const;
  std::optional<Variable> average(std::string_view name) const;
  /// "w/ExponentialMovingAverage"
  std::string average_name(const Variable& v) const;
  /// Variables by the names under which their averages are saved, and those without an average by their own:
  /// to load averages in the place of what they are averages of.
  std::map<std::string, Variable> variables_to_restore(std::span<const Variable> variables) const;

 private:
  double decay_at(std::optional<std::int64_t> num_updates) const;

  double decay_;
  MovingAverageOptions options_;
  std::map<std::uint64_t, MovingAverage> of_variables_;
  std::map<std::string, MovingAverage, std::less<>> of_tensors_;
};

}   // namespace tapedeck
