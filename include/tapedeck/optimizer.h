// Optimizers: compute new values of variables from gradients.
#pragma once
#include <concepts>
#include <memory>
#include <optional>
#include <typeinfo>
#include <vector>

#include "tapedeck/gradient_tape.h"
#include "tapedeck/owned.h"
#include "tapedeck/saved_state.h"
#include "tapedeck/schedule.h"

namespace tapedeck {

struct UpdateRule;
struct RuleEntry;

/// A gradient and its variable; pairs whose gradient is none are skipped. A variable may be passed as the
/// gradient, too.
struct GradientAndVariable {
  Gradient gradient;
  Variable variable;
};

/// The name and value of a hyperparameter.
struct Hyperparameter {
  std::string_view name;
  Scheduled value;
};

/// Replaces the gradients of a step, in place, before the update rule uses them; a gradient that is none
/// remains none. The step counts from 0. The new gradients have the dtype and shape of their variables.
/// tapedeck/gradient_transform.h provides several.
using GradientTransform = std::function<void(std::span<GradientAndVariable> pairs, std::int64_t step)>;

/// Computes the value to be minimized. It is called under a tape.
using Loss = std::function<Tensor()>;

/// Options of compute_gradients and minimize.
struct LossOptions {
  /// The variables to differentiate with respect to, trainable or not. If omitted: the trainable variables
  /// that the loss reads, in order of creation.
  std::optional<std::vector<Variable>> variables = {};
  Gradient output_gradient = {};                  // the cotangent of the loss; none: ones
  Aggregation aggregation = Aggregation::add_n;   // how the terms of one gradient are summed
};

/// A tensor and its name.
struct NamedTensor {
  std::string name;
  Tensor value;
};

/// Applies one update rule and stores its slots, which are tensors of a variable's shape, such as running
/// means. A slot is released with its variable. Must not be used by several threads at once.
class TAPEDECK_EXPORT Optimizer {
 public:
  /// An optimizer with the library's rule of this name, which is one of rules(). Omitted hyperparameters have
  /// their defaults; an option that is on or off is 1 or 0. Throws ArgumentError for an unknown rule, and for
  /// a hyperparameter that the rule does not know or whose value it does not accept.
  explicit Optimizer(std::string_view rule, std::span<const Hyperparameter> hyperparameters);
  explicit Optimizer(std::string_view rule, std::initializer_list<Hyperparameter> hyperparameters = {});
  /// An optimizer with a user-defined rule, which must outlive the optimizer: see tapedeck/update_rule.h.
  /// Throws ArgumentError for a rule without a name or an update.
  explicit Optimizer(const UpdateRule& rule, std::span<const Hyperparameter> hyperparameters);
  explicit Optimizer(const UpdateRule& rule, std::initializer_list<Hyperparameter> hyperparameters = {});
  explicit Optimizer(const UpdateRule&& temporary, std::span<const Hyperparameter> hyperparameters) = delete;
  explicit Optimizer(const UpdateRule&& temporary,
                     std::initializer_list<Hyperparameter> hyperparameters = {}) = delete;
  ~Optimizer();
  Optimizer(Optimizer&&) noexcept;
  Optimizer& operator=(Optimizer&&) noexcept;

  /// Takes one step: updates each variable that has a gradient, in place if nothing else shares the old
  /// value, and increments global_step, a scalar of i32 or i64. Repeated rows of a sparse gradient are added
  /// up first. A constraint is applied to the new value in separate memory, before anything changes. All
  /// exceptions are thrown before a variable or slot changes: exceptions of a constraint, schedule or
  /// transformation; ArgumentError for an empty list, if every gradient is none, and for a sparse gradient of
  /// a variable with a constraint; ShapeError or DTypeError if a gradient or the result of a constraint does
  /// not fit its variable.
  void apply_gradients(std::span<const GradientAndVariable> pairs,
                       const std::optional<Variable>& global_step = {});
  void apply_gradients(std::initializer_list<GradientAndVariable> pairs,
                       const std::optional<Variable>& global_step = {});
  /// apply_gradients for two lists of the same length, as in apply_gradients(tape.gradient(loss, weights),
  /// weights).
  void apply_gradients(std::span<const Gradient> gradients, std::span<const Variable> variables,
                       const std::optional<Variable>& global_step = {});

  /// The gradient of the loss, or none, for every variable. The loss has one element, or as many as
  /// options.output_gradient. Throws ArgumentError if there are no variables, DTypeError if the loss or a
  /// variable does not have a floating-point dtype, ShapeError for a loss of several elements without an
  /// output_gradient, and the exceptions of gradient().
  static std::vector<GradientAndVariable> compute_gradients(const Loss& loss,
                                                            const LossOptions& options = {});
  /// compute_gradients for a loss that this tape has recorded. If options.variables is omitted, uses the
  /// variables that the tape watches. Throws ArgumentError for a null tape.
  static std::vector<GradientAndVariable> compute_gradients(const Tensor& loss, GradientTape* tape,
                                                            const LossOptions& options = {});
  /// Calls compute_gradients, then apply_gradients. Returns the loss before the step.
  Tensor minimize(const Loss& loss, const LossOptions& options = {},
                  const std::optional<Variable>& global_step = {});
  Tensor minimize(const Tensor& loss, GradientTape* tape, const LossOptions& options = {},
                  const std::optional<Variable>& global_step = {});
  template <class L, class Wrong>
  requires(!std::convertible_to<const Wrong&, LossOptions> &&
           !std::convertible_to<const Wrong&, GradientTape*>) Tensor minimize(const L&, const Wrong&) {
    static_assert(sizeof(L) == 0,
                  "minimize takes a function that computes the loss, and chosen variables in the "
                  "options: minimize([&] { return loss; }, {.variables = …}); or a loss and the tape "
                  "that has recorded it: minimize(loss, &tape)");
    return {};
  }

  /// Applies `transform` to the gradients from the next step on, after the transformations that were added
  /// earlier.
  void add_transform(GradientTransform transform);

  /// The names of the library's update rules, and a description of one of them, with its source. doc throws
  /// ArgumentError for an unknown name. If the description does not mention sparse gradients, these change
  /// only their own rows.
  static std::vector<std::string_view> rules();
  static std::string_view doc(std::string_view rule);
  /// The name of the rule.
  std::string_view name() const;
  /// The number of steps taken so far.
  std::int64_t iterations() const;
  /// The current value of a slot; undefined if the slot does not exist, or not yet. Throws TraceError while a
  /// function is recorded.
  Tensor slot(const Variable& v, std::string_view name) const;
  /// The names of the slots, sorted.
  std::vector<std::string> slot_names() const;
  /// A scalar of the optimizer, or "iterations". Throws ArgumentError for an unknown name.
  double scalar(std::string_view name) const;
  /// All slots as "variable/rule/slot", and all scalars as "rule/scalar" in f64, sorted by name. Throws as
  /// slot does; state and weights do, too.
  std::vector<NamedTensor> variables() const;

  /// Read or change a hyperparameter. Both throw ArgumentError for a name that the rule does not know;
  /// set_hyperparameter also for a value that the rule does not accept, and for a hyperparameter that is
  /// fixed at construction. A change takes effect with the next step. For a schedule, hyperparameter returns
  /// the value for the next step.
  double hyperparameter(std::string_view name) const;
  void set_hyperparameter(std::string_view name, Scheduled value);

  /// The scalars are "iterations", an integer, and the scalars of the rule. Slots are in the order of
  /// creation of their variables; the slots of one variable, in the order of the rule.
  SavedState state() const;
  /// Replaces the whole state. If it throws, nothing changes: ArgumentError for names that the rule does not
  /// know and for missing scalars, ShapeError or DTypeError for slots that do not fit.
  void restore(const SavedState& state);
  /// Performs the checks of restore; calling the result makes the change.
  Commit prepare_restore(const SavedState& state);
  /// The required dtype and shape of a slot of this variable; nullopt: the rule accepts any.
  std::optional<Spec> slot_spec(const Variable& v, std::string_view slot) const;
  /// Restore one scalar or slot. A value that was restored under a higher id is kept. Throw as restore does.
  void restore_scalar(std::string_view name, double value, std::uint64_t restore_id = 0);
  void restore_slot(const Variable& v, std::string_view slot, const Tensor& value,
                    std::uint64_t restore_id = 0);
  /// Restores a slot of a variable that need not exist yet: the first variable of this name that takes a
  /// step, or whose slot is read, receives it. A value that does not fit throws then. Until then it is not
  /// part of state().
  void restore_slot(std::string variable, std::string_view slot, Tensor value, std::uint64_t restore_id = 0);
  /// The scalars of state(), as i64 and f64, then its slots. set_weights throws ArgumentError for a different
  /// number of tensors.
  std::vector<Tensor> weights() const;
  void set_weights(std::span<const Tensor> weights);

 protected:
  /// An optimizer with the rule whose options have this type.
  Optimizer(const std::type_info& type, const void* options);

 private:
  struct [[gnu::visibility("hidden")]] State;
  Optimizer(const RuleEntry& entry, const void* options);

  detail::Owned<State> state_;
  detail::Lifetime lifetime_;
};

/// An optimizer of the library, constructed from the options of its rule, such as Adam({.epsilon = 1e-7}).
/// tapedeck/keras.h provides options with Keras's values.
template <class Options> class OptimizerOf : public Optimizer {
 public:
  explicit OptimizerOf(Options options) : Optimizer(typeid(Options), &options) {}
  explicit OptimizerOf() requires std::default_initializable<Options> : OptimizerOf(Options{}) {}
  OptimizerOf() = delete;   // needs its .learning_rate, as in Adagrad({.learning_rate = 0.1})
};

/// x -= learning_rate · g.
struct GradientDescentOptions {
  Scheduled learning_rate;
};
using GradientDescent = OptimizerOf<GradientDescentOptions>;

/// a = momentum · a + g, the slot "momentum"; x -= learning_rate · a, or with use_nesterov x -= learning_rate
/// · (g + momentum · a): Sutskever et al. 2013. With accumulate_steps a = momentum · a - learning_rate · g; x
/// += a, or with use_nesterov x += momentum · a - learning_rate · g: equivalent while learning_rate does not
/// change. If momentum is 0, the slot then does not exist.
struct MomentumOptions {
  Scheduled learning_rate;
  Scheduled momentum = schedule::kUnset;   // must be given
  bool use_nesterov = false, accumulate_steps = false;
};
using Momentum = OptimizerOf<MomentumOptions>;

/// a += g², the slot "accumulator"; x -= learning_rate · g / (√a + epsilon): Duchi et al. 2011. The initial a
/// must be positive, or with an epsilon at least 0.
struct AdagradOptions {
  Scheduled learning_rate;
  double initial_accumulator_value = 0.1;
  Scheduled epsilon = 0;
};
using Adagrad = OptimizerOf<AdagradOptions>;

/// G += g; A += g², the slots "gradient_accumulator" and "gradient_squared_accumulator"; x = -learning_rate ·
/// sign(G) · max(|G| - l1·t, 0) / (l2·t·learning_rate + √A): dual averaging, Duchi et al. 2011. t is the
/// number of the step, counting from 1: one more than the value of global_step, a scalar of i32 or i64, or
/// without it the optimizer's own count.
struct AdagradDAOptions {
  Scheduled learning_rate;
  double initial_gradient_squared_accumulator_value = 0.1;
  Scheduled l1 = 0, l2 = 0;
  std::optional<Variable> global_step = {};
};
using AdagradDA = OptimizerOf<AdagradDAOptions>;

/// a = rho · a + (1-rho) · g²; d = √(u + epsilon) / √(a + epsilon) · g; u = rho · u + (1-rho) · d²; x -=
/// learning_rate · d: steps are about as large as earlier ones. Zeiler 2012. a and u are the slots "accum"
/// and "accum_update".
struct AdadeltaOptions {
  Scheduled learning_rate = 1e-3, rho = 0.95, epsilon = 1e-8;
};
using Adadelta = OptimizerOf<AdadeltaOptions>;

/// m = beta1 · m + (1-beta1) · g; v = beta2 · v + (1-beta2) · g²; x -= learning_rate·√(1-beta2ᵗ)/(1-beta1ᵗ) ·
/// m / (√v + epsilon) in step t: Kingma and Ba 2015, the form before section 2.1. With sparse gradients, m
/// and v decay and the variable changes in all rows; if lazy, only in the rows of the gradient, as in torch's
/// SparseAdam and TensorFlow Addons' LazyAdam. t counts all steps. With amsgrad, the largest v so far, the
/// slot "vhat", replaces v: Reddi et al. 2018.
struct AdamOptions {
  Scheduled learning_rate = 1e-3, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  bool lazy = false, amsgrad = false;
};
using Adam = OptimizerOf<AdamOptions>;

/// x -= learning_rate · weight_decay · x; m and v as in Adam; x -= learning_rate · m/(1-beta1ᵗ) /
/// (√(v/(1-beta2ᵗ)) + epsilon): Loshchilov and Hutter 2019.
struct AdamWOptions {
  Scheduled learning_rate = 1e-3, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 1e-2;
  bool lazy = false;
};
using AdamW = OptimizerOf<AdamWOptions>;

/// m as in Adam; v = max(beta2 · v, |g|); x -= learning_rate/(1-beta1ᵗ) · m / (v + epsilon): Kingma and Ba
/// 2015, algorithm 2.
struct AdamaxOptions {
  Scheduled learning_rate = 1e-3, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-7;
};
using Adamax = OptimizerOf<AdamaxOptions>;

/// m and v as in Adam; x -= learning_rate · ((1 - µ(t)) · g/(1 - p(t)) + µ(t+1) · m/(1 - p(t+1))) /
/// (√(v/(1-beta2ᵗ)) + epsilon), where µ(t) = beta1 · (1 - 0.96^(0.004·t)/2) and p(t) = µ(1)·…·µ(t):
/// Nesterov's momentum with its own schedule; the learning rate therefore cannot have one. Dozat 2016.
struct NadamOptions {
  double learning_rate = 1e-3;
  Scheduled beta1 = 0.9, beta2 = 0.999, epsilon = 1e-7;
};
using Nadam = OptimizerOf<NadamOptions>;

/// s = decay · s + (1-decay) · g², the slot "rms"; a = momentum · a + learning_rate · g / √(s + epsilon), the
/// slot "momentum"; x -= a: Tieleman and Hinton 2012. If centered, c = decay · c + (1-decay) · g, the slot
/// "mg", and s - c² replaces s under the root. With epsilon_outside and a momentum of 0, x -= learning_rate ·
/// g / (√s + epsilon), and the slot "momentum" does not exist.
struct RMSPropOptions {
  Scheduled learning_rate;
  Scheduled decay = 0.9;
  Scheduled momentum = 0;
  Scheduled epsilon = 1e-10;
  bool centered = false;
  double initial_mean_square = 1;   // s before the first step
  bool epsilon_outside = false;
};
using RMSProp = OptimizerOf<RMSPropOptions>;

/// n += g², the slot "accum"; z += g + 2·l2_shrinkage·x - (√n - √(n before))/learning_rate · x, the slot
/// "linear"; x = (sign(z)·l1 - z) / ((√n + beta)/learning_rate + 2·l2) where |z| > l1, else 0: follow the
/// regularized leader, McMahan et al. 2013, algorithm 1. √n stands for n^-learning_rate_power. With a
/// learning rate of 0, nothing changes.
struct FtrlOptions {
  Scheduled learning_rate;
  Scheduled learning_rate_power = -0.5;
  double initial_accumulator_value = 0.1;
  Scheduled l1 = 0, l2 = 0, l2_shrinkage = 0, beta = 0;
};
using Ftrl = OptimizerOf<FtrlOptions>;

/// p = x - learning_rate · g; x = sign(p) · max(|p| - learning_rate·l1, 0) / (1 + learning_rate·l2): gradient
/// descent, after which l1 moves the variable towards 0 and l2 shrinks it. Duchi and Singer 2009.
struct ProximalGradientDescentOptions {
  Scheduled learning_rate, l1 = 0, l2 = 0;
};
using ProximalGradientDescent = OptimizerOf<ProximalGradientDescentOptions>;

/// a += g², the slot "accumulator"; r = learning_rate / √a; p = x - r · g; x = sign(p) · max(|p| - r·l1, 0) /
/// (1 + r·l2): Duchi et al. 2011.
struct ProximalAdagradOptions {
  Scheduled learning_rate;
  double initial_accumulator_value = 0.1;
  Scheduled l1 = 0, l2 = 0;
};
using ProximalAdagrad = OptimizerOf<ProximalAdagradOptions>;

/// m and v as in Adam; r = m/(1-beta1ᵗ) / (√(v/(1-beta2ᵗ)) + epsilon) + weight_decay · x; x -= learning_rate
/// · |x|/|r| · r, with norms over the whole variable; their ratio is 1 if one of them is 0: You et al. 2020,
/// algorithm 2.
struct LambOptions {
  Scheduled learning_rate = 1e-3, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-6, weight_decay = 0;
};
using Lamb = OptimizerOf<LambOptions>;

/// x -= learning_rate · (sign(beta1 · m + (1-beta1) · g) + weight_decay · x); then m = beta2 · m + (1-beta2)
/// · g: Chen et al. 2023.
struct LionOptions {
  Scheduled learning_rate = 1e-4, beta1 = 0.9, beta2 = 0.99, weight_decay = 0;
};
using Lion = OptimizerOf<LionOptions>;

}   // namespace tapedeck
