// Optimizers: from gradients to new values of variables.
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

/// A gradient and the variable it is for; pairs whose gradient is none are passed over. The gradient may be a
/// variable, too.
struct GradientAndVariable {
  Gradient gradient;
  Variable variable;
};

/// A hyperparameter by its name.
struct Hyperparameter {
  std::string_view name;
  Scheduled value;
};

/// Replaces the gradients of a step, in place, before the rule sees them; none stays none. The step counts
/// from 0. The new gradients have the dtype and shape of their variables. tapedeck/gradient_transform.h has
/// some.
using GradientTransform = std::function<void(std::span<GradientAndVariable> pairs, std::int64_t step)>;

/// Computes what is to become small. It is run under a tape.
using Loss = std::function<Tensor()>;

/// What compute_gradients and minimize differentiate, and how.
struct LossOptions {
  /// What to differentiate with respect to, trainable or not. Left out: the trainable variables that the loss
  /// reads, in order of creation.
  std::optional<std::vector<Variable>> variables = {};
  Gradient output_gradient = {};                  // of the loss; none: ones
  Aggregation aggregation = Aggregation::add_n;   // of the terms of one gradient
};

/// A tensor and what it is called.
struct NamedTensor {
  std::string name;
  Tensor value;
};

/// Applies one update rule, and keeps its slots: tensors of a variable's shape, such as running means. They
/// end with their variable. Not to be used from several threads at once.
class TAPEDECK_EXPORT Optimizer {
 public:
  /// By the name of its rule, which is one of rules(). Hyperparameters not given keep their defaults; an
  /// option that is on or off is 1 or 0. Throws ArgumentError for a rule that does not exist and a
  /// hyperparameter that the rule does not know or accept.
  explicit Optimizer(std::string_view rule, std::span<const Hyperparameter> hyperparameters);
  explicit Optimizer(std::string_view rule, std::initializer_list<Hyperparameter> hyperparameters = {});
  /// By a rule of one's own, which outlives the optimizer: see tapedeck/update_rule.h. Throws ArgumentError
  /// for one without a name or an update.
  explicit Optimizer(const UpdateRule& rule, std::span<const Hyperparameter> hyperparameters);
  explicit Optimizer(const UpdateRule& rule, std::initializer_list<Hyperparameter> hyperparameters = {});
  explicit Optimizer(const UpdateRule&& temporary, std::span<const Hyperparameter> hyperparameters) = delete;
  explicit Optimizer(const UpdateRule&& temporary,
                     std::initializer_list<Hyperparameter> hyperparameters = {}) = delete;
  ~Optimizer();
  Optimizer(Optimizer&&) noexcept;
  Optimizer& operator=(Optimizer&&) noexcept;

  /// One step: a new value for each variable that has a gradient, in place where nobody else holds the old
  /// one, and one more in global_step, a scalar of i32 or i64. Of sparse gradients the rows that repeat are
  /// added up first. A variable with a constraint gets what that makes of its new value; this happens before
  /// anything changes, on memory of its own. Anything that is thrown is thrown before a variable or slot
  /// changes: what a constraint, a schedule or a transformation throws, ArgumentError for an empty list,
  /// where every gradient is none and for a sparse gradient of a variable with a constraint, ShapeError or
  /// DTypeError for a gradient that does not fit its variable and for a value from a constraint that does
  /// not.
  void apply_gradients(std::span<const GradientAndVariable> pairs,
                       const std::optional<Variable>& global_step = {});
  void apply_gradients(std::initializer_list<GradientAndVariable> pairs,
                       const std::optional<Variable>& global_step = {});
  /// The same for two lists of one length, as in apply_gradients(tape.gradient(loss, weights), weights).
  void apply_gradients(std::span<const Gradient> gradients, std::span<const Variable> variables,
                       const std::optional<Variable>& global_step = {});

  /// The gradient of the loss, or none, for every variable. The loss has one element, or as many as
  /// options.output_gradient. Throws ArgumentError where there are no variables, DTypeError where the loss or
  /// a variable has no floating-point dtype, ShapeError for a loss of several elements without an
  /// output_gradient, and what gradient() throws.
  static std::vector<GradientAndVariable> compute_gradients(const Loss& loss,
                                                            const LossOptions& options = {});
  /// The same for a loss that this tape has recorded, of the variables that it watches where none are given.
  /// Throws ArgumentError for a null tape.
  static std::vector<GradientAndVariable> compute_gradients(const Tensor& loss, GradientTape* tape,
                                                            const LossOptions& options = {});
  /// compute_gradients, then apply_gradients. Returns the loss, as it was before the step.
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

  /// From the next step on gradients go through this one, after those that were added before.
  void add_transform(GradientTransform transform);

  /// Names of the library's update rules, and what one of them does, with its source. The second throws
  /// ArgumentError for another name. Sparse gradients touch no rows but theirs where it says nothing of them.
  static std::vector<std::string_view> rules();
  static std::string_view doc(std::string_view rule);
  /// Of the rule.
  std::string_view name() const;
  /// Steps taken so far.
  std::int64_t iterations() const;
  /// The present value; undefined where there is no such slot, or none yet. Throws TraceError while a
  /// function is recorded.
  Tensor slot(const Variable& v, std::string_view name) const;
  /// Sorted.
  std::vector<std::string> slot_names() const;
  /// A number of the optimizer's own, or "iterations". Throws ArgumentError for another name.
  double scalar(std::string_view name) const;
  /// All slots as "variable/rule/slot", and scalars as "rule/scalar" of f64, sorted by name. Throws as slot
  /// does, and so do state and weights.
  std::vector<NamedTensor> variables() const;

  /// Both throw ArgumentError for a name that the rule does not know; the second also for a value that it
  /// does not accept and for what is fixed when the optimizer is made. A change takes effect with the next
  /// step. Where there is a schedule, its value for the next step is given.
  double hyperparameter(std::string_view name) const;
  void set_hyperparameter(std::string_view name, Scheduled value);

  /// The scalars are "iterations", a whole number, and those of the rule. Slots are in the order of creation
  /// of their variables; those of one in the order of the rule.
  SavedState state() const;
  /// Everything, in place of what there is, or nothing: throws ArgumentError for names that the rule does not
  /// know and scalars that are missing, ShapeError or DTypeError for slots that do not fit.
  void restore(const SavedState& state);
  /// The checks of restore; the result makes the change.
  Commit prepare_restore(const SavedState& state);
  /// What a slot of this variable has to be; none: the rule accepts any dtype and shape.
  std::optional<Spec> slot_spec(const Variable& v, std::string_view slot) const;
  /// One at a time. What was restored under a higher id stays. The same errors.
  void restore_scalar(std::string_view name, double value, std::uint64_t restore_id = 0);
  void restore_slot(const Variable& v, std::string_view slot, const Tensor& value,
                    std::uint64_t restore_id = 0);
  /// For a variable that need not exist yet: the first one of this name that takes a step, or is asked for
  /// its slot, gets it. What does not fit throws there. Until then it is no part of state().
  void restore_slot(std::string variable, std::string_view slot, Tensor value, std::uint64_t restore_id = 0);
  /// The scalars of state(), as i64 and f64, then its slots. set_weights throws ArgumentError for another
  /// number of tensors.
  std::vector<Tensor> weights() const;
  void set_weights(std::span<const Tensor> weights);

 protected:
  /// By the rule whose options are of this type.
  Optimizer(const std::type_info& type, const void* options);

 private:
  struct [[gnu::visibility("hidden")]] State;
  Optimizer(const RuleEntry& entry, const void* options);

  detail::Owned<State> state_;
  detail::Lifetime lifetime_;
};

/// An optimizer of the library, made from the options of its rule, as Adam({.epsilon = 1e-7}) is.
/// tapedeck/keras.h has options with Keras's numbers.
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
/// · (g + momentum · a): Sutskever et al. 2013.
struct MomentumOptions {
  Scheduled learning_rate;
  Scheduled momentum = schedule::kUnset;   // must be given
  bool use_nesterov = false;
  /// a = momentum · a - learning_rate · g; x += a, or with use_nesterov x += momentum · a - learning_rate ·
  /// g: the same while learning_rate does not change. Where momentum is 0 there is no slot.
  bool accumulate_steps = false;
};
using Momentum = OptimizerOf<MomentumOptions>;

/// a += g², the slot "accumulator"; x -= learning_rate · g / (√a + epsilon): Duchi et al. 2011. a begins
/// above 0, or where there is an epsilon, at 0 or above.
struct AdagradOptions {
  Scheduled learning_rate;
  double initial_accumulator_value = 0.1;
  Scheduled epsilon = 0;
};
using Adagrad = OptimizerOf<AdagradOptions>;

/// G += g; A += g², the slots "gradient_accumulator" and "gradient_squared_accumulator"; x = -learning_rate ·
/// sign(G) · max(|G| - l1·t, 0) / (l2·t·learning_rate + √A): dual averaging, Duchi et al. 2011. t is the
/// number of the step, from 1 on: one more than global_step has, a scalar of i32 or i64, or without it that
/// of the optimizer.
struct AdagradDAOptions {
  Scheduled learning_rate;
  double initial_gradient_squared_accumulator_value = 0.1;
  Scheduled l1 = 0, l2 = 0;
  std::optional<Variable> global_step = {};
};
using AdagradDA = OptimizerOf<AdagradDAOptions>;

/// a = rho · a + (1-rho) · g²; d = √(u + epsilon) / √(a + epsilon) · g; u = rho · u + (1-rho) · d²; x -=
/// learning_rate · d: steps as large as earlier ones, Zeiler 2012. a and u are the slots "accum" and
/// "accum_update".
struct AdadeltaOptions {
  Scheduled learning_rate = 1e-3, rho = 0.95, epsilon = 1e-8;
};
using Adadelta = OptimizerOf<AdadeltaOptions>;

/// m = beta1 · m + (1-beta1) · g; v = beta2 · v + (1-beta2) · g²; x -= learning_rate·√(1-beta2ᵗ)/(1-beta1ᵗ) ·
/// m / (√v + epsilon) in step t: Kingma and Ba 2015, the form before section 2.1. With sparse gradients m and
/// v decay, and the variable moves, in all rows; if lazy, in no rows but those of the gradient, as torch's
/// SparseAdam and TensorFlow Addons' LazyAdam have it. t counts all steps. With amsgrad the largest v so far,
/// the slot "vhat", takes the place of v: Reddi et al. 2018.
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
/// Nesterov's momentum on a schedule of its own, so that the learning rate takes none. Dozat 2016.
struct NadamOptions {
  double learning_rate = 1e-3;
  Scheduled beta1 = 0.9, beta2 = 0.999, epsilon = 1e-7;
};
using Nadam = OptimizerOf<NadamOptions>;

/// s = decay · s + (1-decay) · g², the slot "rms"; a = momentum · a + learning_rate · g / √(s + epsilon), the
/// slot "momentum"; x -= a: Tieleman and Hinton 2012. If centered, c = decay · c + (1-decay) · g, the slot
/// "mg", and s - c² takes the place of s in the root.
struct RMSPropOptions {
  Scheduled learning_rate;
  Scheduled decay = 0.9;
  Scheduled momentum = 0;
  Scheduled epsilon = 1e-10;
  bool centered = false;
  double initial_mean_square = 1;   // s before the first step
  /// Where momentum is 0, x -= learning_rate · g / (√s + epsilon), and there is no slot "momentum".
  bool epsilon_outside = false;
};
using RMSProp = OptimizerOf<RMSPropOptions>;

/// n += g², the slot "accum"; z += g + 2·l2_shrinkage·x - (√n - √(n before))/learning_rate · x, the slot
/// "linear"; x = (sign(z)·l1 - z) / ((√n + beta)/learning_rate + 2·l2) where |z| > l1, else 0: follow the
/// regularised leader, McMahan et al. 2013, algorithm 1. √n is n^-learning_rate_power. With a learning rate
/// of 0 nothing changes.
struct FtrlOptions {
  Scheduled learning_rate;
  Scheduled learning_rate_power = -0.5;
  double initial_accumulator_value = 0.1;
  Scheduled l1 = 0, l2 = 0, l2_shrinkage = 0, beta = 0;
};
using Ftrl = OptimizerOf<FtrlOptions>;

/// p = x - learning_rate · g; x = sign(p) · max(|p| - learning_rate·l1, 0) / (1 + learning_rate·l2): descent,
/// after which l1 draws the variable to 0 and l2 shrinks it. Duchi and Singer 2009.
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
/// · |x|/|r| · r, with the norms of the whole variable, whose ratio is 1 where one of them is 0: You et al.
/// 2020, algorithm 2.
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
