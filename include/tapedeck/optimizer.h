// Optimizers: from gradients to new values of variables.
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "tapedeck/gradient_tape.h"
#include "tapedeck/schedule.h"

namespace tapedeck {

struct UpdateRule;

/// A gradient and the variable it is for; pairs whose gradient is none are passed over. The gradient may be a
/// variable, too.
struct GradientAndVariable {
  Gradient gradient;
  Variable variable;
};

struct Hyperparameter {
  std::string_view name;
  Scheduled value;
};

/// Makes other gradients of those of a step, in place, before the rule sees them; none stays none. The step
/// counts from 0. Gradients that it makes are of the dtype and shape of their variables.
/// tapedeck/gradient_transform.h has some.
using GradientTransform = std::function<void(std::span<GradientAndVariable> pairs, std::int64_t step)>;

/// Computes what is to become small. It is run under a tape.
using Loss = std::function<Tensor()>;

/// What waits for what between gradients and updates, as TensorFlow's graphs have it. Here all gradients are
/// there before a variable changes, whichever is asked for.
enum class Gate { none, op, graph };

struct LossOptions {
  /// What to differentiate with respect to, trainable or not. Left out: the trainable variables that the loss
  /// reads, in order of creation.
  std::optional<std::vector<Variable>> variables = {};
  Gradient output_gradient = {};   // of the loss; none: ones
  Gate gate = Gate::op;
  Aggregation aggregation = Aggregation::add_n;
};

/// A slot of a variable, and a number of an optimizer's own, such as "iterations" or Adam's "beta1_power".
struct SlotValue {
  Variable variable;
  std::string slot;
  Tensor value;
};
struct OptimizerScalar {
  std::string name;
  double value;
};
/// All that an optimizer keeps between steps but for its hyperparameters.
struct OptimizerState {
  std::vector<OptimizerScalar> scalars;   // "iterations", a whole number, then those of the rule
  std::vector<SlotValue> slots;   // by creation of the variables; those of one in the order of its rule
};
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

  /// The gradient of the loss, or none, for every variable. A loss that is no scalar counts as its sum.
  /// Throws ArgumentError where there are no variables and for a gate that is none of three, DTypeError where
  /// the loss or a variable is not f32 or f64, and what gradient() throws.
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

  /// From the next step on gradients go through this one, after those that were added before.
  void add_transform(GradientTransform transform);

  /// Names of the library's update rules, and what one of them does, with its source. The second throws
  /// ArgumentError for another name.
  static std::vector<std::string_view> rules();
  static std::string_view doc(std::string_view rule);
  /// Of the rule.
  std::string_view name() const;
  /// Steps taken so far.
  std::int64_t iterations() const;
  /// The present value; undefined where there is no such slot, or none yet.
  Tensor slot(const Variable& v, std::string_view name) const;
  /// Sorted.
  std::vector<std::string> slot_names() const;
  /// A number of the optimizer's own, or "iterations". Throws ArgumentError for another name.
  double scalar(std::string_view name) const;
  /// All slots as "variable/rule/slot", and scalars as "rule/scalar" of f64, sorted by name.
  std::vector<NamedTensor> variables() const;

  /// Both throw ArgumentError for a name that the rule does not know; the second also for a value that it
  /// does not accept and for what is fixed when the optimizer is made. A change takes effect with the next
  /// step. Where there is a schedule, its value for the next step is given.
  double hyperparameter(std::string_view name) const;
  void set_hyperparameter(std::string_view name, Scheduled value);

  /// Tensors are shared, not copied.
  OptimizerState state() const;
  /// Everything, in place of what there is, or nothing: throws ArgumentError for names that the rule does not
  /// know and scalars that are missing, ShapeError or DTypeError for slots that do not fit.
  void restore(const OptimizerState& state);
  /// One at a time. What was restored under a higher id stays. The same errors.
  void restore_scalar(std::string_view name, double value, std::uint64_t restore_id = 0);
  void restore_slot(const Variable& v, std::string_view slot, Tensor value, std::uint64_t restore_id = 0);
  /// For a variable that need not exist yet: the first one of this name that takes a step, or is asked for
  /// its slot, gets it. What does not fit throws there.
  void restore_slot(std::string variable, std::string_view slot, Tensor value, std::uint64_t restore_id = 0);
  /// The scalars of state(), as i64 and f64, then its slots. set_weights throws ArgumentError for another
  /// number of tensors.
  std::vector<Tensor> weights() const;
  void set_weights(std::span<const Tensor> weights);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Whose variant of a rule: TensorFlow's first optimizers, or Keras's.
enum class Form { v1, keras };

struct GradientDescentOptions {
  Scheduled learning_rate;
};
/// v -= learning_rate · g
class TAPEDECK_EXPORT GradientDescent : public Optimizer {
 public:
  explicit GradientDescent(GradientDescentOptions options);
};

struct MomentumOptions {
  std::optional<Scheduled> learning_rate = {}, momentum = {};   // must be given; Keras: 0.01, 0
  bool use_nesterov = false;
  Form form = Form::v1;
};
/// a = momentum · a + g, in the slot "momentum"; v -= learning_rate · a, or with use_nesterov
/// v -= learning_rate · (g + momentum · a). Sutskever et al. 2013. Sparse gradients touch no rows but theirs.
/// Keras: a = momentum · a - learning_rate · g; v += a, or momentum · a - learning_rate · g; without the slot
/// where momentum is 0.
class TAPEDECK_EXPORT Momentum : public Optimizer {
 public:
  explicit Momentum(MomentumOptions options);
};

struct AdagradOptions {
  std::optional<Scheduled> learning_rate = {};   // must be given; Keras: 1e-3
  double initial_accumulator_value = 0.1;
  double epsilon = 1e-7;   // Keras only
  Form form = Form::v1;
};
/// a += g², in the slot "accumulator"; v -= learning_rate · g / √a; Keras: / (√a + epsilon). Duchi et al.
/// 2011.
class TAPEDECK_EXPORT Adagrad : public Optimizer {
 public:
  explicit Adagrad(AdagradOptions options);
};

struct AdagradDAOptions {
  Scheduled learning_rate;
  double initial_gradient_squared_accumulator_value = 0.1;
  double l1 = 0, l2 = 0;
};
/// Dual averaging: G += g, A += g², and in step t v = -learning_rate · sign(G) · max(|G| - l1·t, 0) /
/// (l2·t·learning_rate + √A). Duchi et al. 2011.
class TAPEDECK_EXPORT AdagradDA : public Optimizer {
 public:
  explicit AdagradDA(AdagradDAOptions options);
};

struct AdadeltaOptions {
  Scheduled learning_rate = 1e-3;
  double rho = 0.95;
  std::optional<double> epsilon = {};   // 1e-8; Keras: 1e-7
  Form form = Form::v1;
};
/// a and u are running means of g² and d²; d = √(u + epsilon) / √(a + epsilon) · g, with u from before; v -=
/// learning_rate · d. Zeiler 2012.
class TAPEDECK_EXPORT Adadelta : public Optimizer {
 public:
  explicit Adadelta(AdadeltaOptions options = {});
};

struct AdamOptions {
  Scheduled learning_rate = 1e-3;
  double beta1 = 0.9, beta2 = 0.999;
  std::optional<double> epsilon = {};   // 1e-8; Keras: 1e-7
  bool lazy = false, amsgrad = false;
  Form form = Form::v1;
};
/// m and v are running means of g and g²; the variable moves by -learning_rate·√(1-β2ᵗ)/(1-β1ᵗ) · m / (√v +
/// ε). Kingma and Ba 2015, the form before section 2.1. With sparse gradients m and v decay, and the variable
/// moves, in all rows; if lazy, in no rows but those of the gradient, as torch's SparseAdam and TensorFlow
/// Addons' LazyAdam have it. t counts all steps. With amsgrad the largest v so far, the slot "vhat", takes
/// the place of v: Reddi et al. 2018.
class TAPEDECK_EXPORT Adam : public Optimizer {
 public:
  explicit Adam(AdamOptions options = {});
};

struct AdamWOptions {
  Scheduled learning_rate = 1e-3;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 1e-2;
  bool lazy = false;
};
/// v shrinks by learning_rate · weight_decay of itself, then moves as Adam's does, with epsilon beside the
/// corrected √v: Loshchilov and Hutter 2019, algorithm 2. Sparse gradients as in Adam.
class TAPEDECK_EXPORT AdamW : public Optimizer {
 public:
  explicit AdamW(AdamWOptions options = {});
};

struct AdamaxOptions {
  Scheduled learning_rate = 1e-3;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-7;
};
/// v = max(β2·v, |g|) in Adam; the variable moves by -learning_rate/(1-β1ᵗ) · m / (v + epsilon). Kingma and
/// Ba 2015, algorithm 2. Sparse gradients touch no rows but theirs.
class TAPEDECK_EXPORT Adamax : public Optimizer {
 public:
  explicit Adamax(AdamaxOptions options = {});
};

struct NadamOptions {
  double learning_rate = 1e-3, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-7;
};
/// Adam with Nesterov's momentum, whose schedule is β1·(1 - 0.96^(0.004·t)/2): Dozat 2016. Takes no schedule
/// of its learning rate. With sparse gradients m and v decay in all rows, and the variable moves in those of
/// the gradient.
class TAPEDECK_EXPORT Nadam : public Optimizer {
 public:
  explicit Nadam(NadamOptions options = {});
};

struct RMSPropOptions {
  std::optional<Scheduled> learning_rate = {};   // must be given; Keras: 1e-3
  double decay = 0.9;                            // Keras's rho
  double momentum = 0;
  std::optional<double> epsilon = {};   // 1e-10; Keras: 1e-7
  bool centered = false;
  Form form = Form::v1;
};
/// s is a running mean of g², which begins at 1; a = momentum · a + learning_rate · g / √(s + epsilon); v -=
/// a. If centered, the square of the running mean of g is taken from s. Slots "rms", "momentum" and, if
/// centered, "mg". Tieleman and Hinton 2012. Keras: s begins at 0, and without momentum there is no such slot
/// and epsilon stands beside the root.
class TAPEDECK_EXPORT RMSProp : public Optimizer {
 public:
  explicit RMSProp(RMSPropOptions options);
};

struct FtrlOptions {
  std::optional<Scheduled> learning_rate = {};   // must be given; Keras: 1e-3
  double learning_rate_power = -0.5, initial_accumulator_value = 0.1;
  double l1 = 0, l2 = 0, l2_shrinkage = 0, beta = 0;
  Form form = Form::v1;
};
/// Follow the regularised leader: McMahan et al. 2013, algorithm 1, with α = learning_rate, and powers of the
/// accumulator other than a root.
class TAPEDECK_EXPORT Ftrl : public Optimizer {
 public:
  explicit Ftrl(FtrlOptions options);
};

struct ProximalGradientDescentOptions {
  Scheduled learning_rate;
  double l1 = 0, l2 = 0;
};
/// p = v - learning_rate · g; v = sign(p) · max(|p| - learning_rate·l1, 0) / (1 + learning_rate·l2). Duchi
/// and Singer 2009.
class TAPEDECK_EXPORT ProximalGradientDescent : public Optimizer {
 public:
  explicit ProximalGradientDescent(ProximalGradientDescentOptions options);
};

struct ProximalAdagradOptions {
  Scheduled learning_rate;
  double initial_accumulator_value = 0.1;
  double l1 = 0, l2 = 0;
};
/// The same with learning_rate / √a for a learning rate, where a += g² is the slot "accumulator".
class TAPEDECK_EXPORT ProximalAdagrad : public Optimizer {
 public:
  explicit ProximalAdagrad(ProximalAdagradOptions options);
};

struct LambOptions {
  Scheduled learning_rate = 1e-3;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-6, weight_decay = 0;
};
/// Adam's direction, with weight_decay · v added, in steps of learning_rate times the ratio of the norms of
/// the variable and of the direction: You et al. 2020, algorithm 2.
class TAPEDECK_EXPORT Lamb : public Optimizer {
 public:
  explicit Lamb(LambOptions options = {});
};

struct LionOptions {
  Scheduled learning_rate = 1e-4;
  double beta1 = 0.9, beta2 = 0.99, weight_decay = 0;
};
/// v -= learning_rate · (sign(β1·m + (1-β1)·g) + weight_decay · v); then m is a running mean of g by β2. Chen
/// et al. 2023.
class TAPEDECK_EXPORT Lion : public Optimizer {
 public:
  explicit Lion(LionOptions options = {});
};

}   // namespace tapedeck
