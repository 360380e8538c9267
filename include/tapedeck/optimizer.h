// Optimizers: from gradients to new values of variables.
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "tapedeck/gradient.h"
#include "tapedeck/variable.h"

namespace tapedeck {

/// A gradient and the variable it is for; pairs whose gradient is none are passed over. The gradient may be a variable, too.
struct GradientAndVariable {
  Gradient gradient;
  Variable variable;
};

struct Hyperparameter {
  std::string_view name;
  double value;
};

/// Computes what is to become small. It is run under a tape.
using Loss = std::function<Tensor()>;

struct LossOptions {
  /// What to differentiate with respect to, trainable or not. Left out: the trainable variables that the loss reads, in
  /// order of creation.
  std::optional<std::vector<Variable>> variables = {};
  Gradient output_gradient = {};   // of the loss; none: ones
};

/// Applies one update rule, and keeps its slots: tensors of a variable's shape, such as running means. They end with their
/// variable. Not to be used from several threads at once.
class TAPEDECK_EXPORT Optimizer {
 public:
  /// By the name of its rule, which is one of rules(). Hyperparameters not given keep their defaults; an option that is on
  /// or off is 1 or 0. Throws ArgumentError for a rule that does not exist and a hyperparameter that the rule does not know
  /// or accept.
  explicit Optimizer(std::string_view rule, std::span<const Hyperparameter> hyperparameters);
  explicit Optimizer(std::string_view rule, std::initializer_list<Hyperparameter> hyperparameters = {})
      : Optimizer(rule, std::span(hyperparameters.begin(), hyperparameters.size())) {}
  ~Optimizer();
  Optimizer(Optimizer&&) noexcept;
  Optimizer& operator=(Optimizer&&) noexcept;

  /// One step: a new value for each variable that has a gradient, in place where nobody else holds the old one, and one
  /// more in global_step, a scalar of i32 or i64. Of sparse gradients the rows that repeat are added up first. A variable with
  /// a constraint gets what that makes of its new value; this happens before anything changes, on memory of its own.
  /// Anything that is thrown is thrown before a variable or slot changes: what a constraint throws, ArgumentError for an
  /// empty list, where every gradient is none and for a sparse gradient of a variable with a constraint, ShapeError or
  /// DTypeError for a gradient that does not fit its variable and for a value from a constraint that does not.
  void apply_gradients(std::span<const GradientAndVariable> pairs, const std::optional<Variable>& global_step = {});
  void apply_gradients(std::initializer_list<GradientAndVariable> pairs, const std::optional<Variable>& global_step = {}) {
    apply_gradients(std::span(pairs.begin(), pairs.size()), global_step);
  }
  /// The same for two lists of one length, as in apply_gradients(tape.gradient(loss, weights), weights).
  void apply_gradients(std::span<const Gradient> gradients, std::span<const Variable> variables, const std::optional<Variable>& global_step = {});

  /// The gradient of the loss, or none, for every variable. A loss that is no scalar counts as its sum. Throws ArgumentError
  /// where there are no variables, DTypeError where the loss or a variable is not f32 or f64, and what gradient() throws.
  static std::vector<GradientAndVariable> compute_gradients(const Loss& loss, const LossOptions& options = {});
  /// compute_gradients, then apply_gradients. Returns the loss, as it was before the step.
  Tensor minimize(const Loss& loss, const LossOptions& options = {}, const std::optional<Variable>& global_step = {});

  /// Names of the update rules that there are.
  static std::vector<std::string_view> rules();
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

struct MomentumOptions {
  double learning_rate, momentum;
  bool use_nesterov = false;
};
/// a = momentum · a + g, in the slot "momentum"; v -= learning_rate · a, or with use_nesterov
/// v -= learning_rate · (g + momentum · a). Sutskever et al. 2013. Sparse gradients touch no rows but theirs.
class TAPEDECK_EXPORT Momentum : public Optimizer {
 public:
  explicit Momentum(MomentumOptions options);
};

struct AdamOptions {
  double learning_rate = 1e-3, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  bool lazy = false;
};
/// m and v are running means of g and g²; the variable moves by -learning_rate·√(1-β2ᵗ)/(1-β1ᵗ) · m / (√v + ε). Kingma and
/// Ba 2015, the form before section 2.1. With sparse gradients m and v decay, and the variable moves, in all rows; if lazy,
/// in no rows but those of the gradient, as torch's SparseAdam and TensorFlow Addons' LazyAdam have it. t counts all steps.
class TAPEDECK_EXPORT Adam : public Optimizer {
 public:
  explicit Adam(AdamOptions options = {});
};

}  // namespace tapedeck
