// Optimizers: from gradients to new values of variables.
#pragma once
#include <memory>
#include <vector>

#include "tapedeck/gradient.h"
#include "tapedeck/variable.h"

namespace tapedeck {

/// A gradient and the variable it is for; pairs whose gradient is none are passed over.
struct GradientAndVariable {
  Gradient gradient;
  Variable variable;
};

struct Hyperparameter {
  std::string_view name;
  double value;
};

/// Applies one update rule, and keeps its slots: tensors of a variable's shape, such as running means.
/// Not to be used from several threads at once.
class TAPEDECK_EXPORT Optimizer {
 public:
  /// By the name of its rule: "gradient_descent", "adam". Those not given keep their defaults. Throws ArgumentError for a
  /// rule that does not exist and a hyperparameter that the rule does not know or accept.
  explicit Optimizer(std::string_view rule, std::initializer_list<Hyperparameter> hyperparameters = {});
  ~Optimizer();
  Optimizer(Optimizer&&) noexcept;
  Optimizer& operator=(Optimizer&&) noexcept;

  /// One step: a new value for each variable that has a gradient, in place where nobody else holds the old one. Anything
  /// that is thrown is thrown before a variable or slot changes: ArgumentError for an empty list or where every gradient is
  /// none, ShapeError or DTypeError for a gradient that does not fit its variable.
  void apply_gradients(std::span<const GradientAndVariable> pairs);
  void apply_gradients(std::initializer_list<GradientAndVariable> pairs) { apply_gradients(std::span(pairs.begin(), pairs.size())); }
  /// The same for two lists of one length, as in apply_gradients(tape.gradient(loss, weights), weights).
  void apply_gradients(std::span<const Gradient> gradients, std::span<const Variable> variables);

  /// Steps taken so far.
  std::int64_t iterations() const;
  /// The present value; undefined where there is no such slot, or none yet.
  Tensor slot(const Variable& v, std::string_view name) const;
  /// Sorted.
  std::vector<std::string> slot_names() const;
  /// Both throw ArgumentError for a name that the rule does not know; the second also for a value that it does not accept.
  /// A change, as schedules make it, takes effect with the next step.
  double hyperparameter(std::string_view name) const;
  void set_hyperparameter(std::string_view name, double value);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

struct GradientDescentOptions { double learning_rate; };
/// v -= learning_rate · g
class TAPEDECK_EXPORT GradientDescent : public Optimizer {
 public:
  explicit GradientDescent(GradientDescentOptions options);
};

struct AdamOptions { double learning_rate = 1e-3, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8; };
/// m and v are running means of g and g²; the variable moves by -learning_rate·√(1-β2ᵗ)/(1-β1ᵗ) · m / (√v + ε). Kingma and
/// Ba 2015, the form before section 2.1. With sparse gradients m and v decay, and the variable moves, in all rows.
class TAPEDECK_EXPORT Adam : public Optimizer {
 public:
  explicit Adam(AdamOptions options = {});
};

}  // namespace tapedeck
