// Optimizers: from gradients to new values of variables.
#pragma once
#include <map>

#include "tapedeck/gradient.h"
#include "tapedeck/variable.h"

namespace tapedeck {

struct UpdateRule;

/// A gradient and the variable it is for; pairs whose gradient is none are passed over.
struct GradientAndVariable {
  Gradient gradient;
  Variable variable;
};

/// Applies one update rule, and keeps its slots: tensors of a variable's shape, such as running means.
/// Not to be used from several threads at once.
class TAPEDECK_EXPORT Optimizer {
 public:
  /// rule: an entry of the library's table. Throws ArgumentError for a hyperparameter that the rule does not know or accept.
  Optimizer(const UpdateRule& rule, const std::map<std::string, double>& hyperparameters);
  ~Optimizer();
  Optimizer(Optimizer&&) noexcept;
  Optimizer& operator=(Optimizer&&) noexcept;

  /// One step. All is checked before anything changes: throws ArgumentError for an empty list or where every gradient is
  /// none, ShapeError or DTypeError for a gradient that does not fit its variable.
  void apply_gradients(const std::vector<GradientAndVariable>& pairs);

  /// Steps taken so far.
  std::int64_t iterations() const;
  /// Undefined where the slot does not exist yet.
  Tensor slot(const Variable& v, std::string_view name) const;
  /// Sorted.
  std::vector<std::string> slot_names() const;
  double hyperparameter(const std::string& name) const;
  /// For schedules; takes effect with the next step.
  void set_hyperparameter(const std::string& name, double value);

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
/// m and v are running means of g and g²; v -= lr·√(1-β2ᵗ)/(1-β1ᵗ) · m / (√v + ε). Kingma and Ba 2015, the form before
/// section 2.1. With sparse gradients m and v decay, and the variable moves, in all rows.
class TAPEDECK_EXPORT Adam : public Optimizer {
 public:
  explicit Adam(AdamOptions options = {});
};

}  // namespace tapedeck
