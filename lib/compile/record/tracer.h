// Tracer: observes one run of a function, and records the program that computes the same results.
#pragma once
#include <deque>
#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "compile/ir/program.h"
#include "core/trace.h"
#include "op/observer.h"

namespace tapedeck::compiled {

/// How an inner function is recorded.
struct InnerOptions {
  /// Whether all captured tensors that can be differentiated become arguments, and not only those that
  /// recorders follow now.
  bool all_captures = false;
  std::string_view no_actions = {};   // as for Tracer::Allowed
  /// Whether the program reads and changes variables itself, as it must if an action changes them, instead of
  /// having their values as arguments and results.
  bool uses_variables = false;
};

class Tracer final : public Trace {
 public:
  using Variables = std::map<const detail::VariableCell*, std::weak_ptr<detail::VariableCell>>;

  /// The permissions of the function. captures: read tensors and keys that are not arguments. no_actions: why
  /// it must not take steps with state on the host, such as those of an optimizer; empty if it may.
  struct Allowed {
    bool captures = true;
    std::string_view no_actions = {};
  };
  static constexpr std::string_view kTwice =
      "would be taken twice, since check runs the function and a replay in the same call; leave check out, "
      "or take the step outside the function";
  /// Starts recording on this thread. Precondition: no recording is active there.
  Tracer(std::string name, Allowed allowed);
  /// Starts a recording inside of another one, of a function that a node of that one calls. Kernels that
  /// could fail for other numbers do not run: the results of ops are zeros. Actions do not run either.
  /// Tensors and variables that the function captures become further arguments. Constants of the outer
  /// recording stay constants, unless one of the recorders `around` follows them.
  Tracer(Tracer& outer, const Recorder* around, const InnerOptions& options);
  ~Tracer() override;

  /// An argument that was found while an inner function was recorded: a tensor, or the value of a variable.
  struct Capture {
    Tensor tensor;
    std::shared_ptr<detail::VariableCell> cell;   // null for a tensor
  };
  const std::vector<Capture>& captures() const { return captures_; }
  /// Whether the function takes actions.
  bool acts() const { return acts_; }
  /// Whether the program of an inner function reads and changes variables.
  bool uses_variables() const { return !outer_ || uses_variables_; }
  /// Runs an op whose programs use variables.
  std::vector<Tensor> act_by(const std::function<std::vector<Tensor>()>& op);
  /// The keys that an inner function captures, as tensors of their numbers in the outer recording.
  const std::vector<Tensor>& captured_keys() const { return captured_keys_; }
  /// The access that a result of an inner function is.
  Access result(const Tensor& y) { return access_to(y, "the result"); }
  /// The variables that an inner function has assigned since the last action, and their new values.
  const std::vector<std::pair<std::shared_ptr<detail::VariableCell>, Access>>& stores() const {
    return stores_;
  }
  /// Notes that what follows in an inner recording is the gradient of what it has recorded so far.
  void begin_gradient() { gradient_ = NodeId(program_.size()); }
  /// The first node of that gradient; none if there is none.
  NodeId gradient() const { return gradient_; }
  /// What has run before in a replay when a function runs again for a derivative: nothing, what it calls
  /// itself, or also the rules of tapes and accumulators. Its prints and assertions are not recorded again.
  enum class Repeats : std::uint8_t { nothing, calls, all };
  /// Returns f as a function that runs again, in a recording or not.
  static Branch repeated(Branch f, Repeats what);
  /// Ends an inner recording: the outer one continues, and variables have their values again. The program is
  /// complete but for its outputs.
  Program leave();

  /// Adds the arguments, before the function runs. add_key returns the key to pass to the function, which
  /// carries its source.
  void add_argument(const Tensor& x);
  random::Key add_key(const random::Key& key);
  /// Ends the recording. outputs: the tensors that the function has returned, of which some may be undefined.
  Program finish(std::span<const Tensor> outputs);
  /// Whether the function has created variables.
  bool made_variables() const { return made_variables_; }
  /// The variables that were read or changed, including those to which no node of the program refers.
  const Variables& variables() const { return variables_; }

  void run(const Call& c, std::span<Tensor> y, void (*kernel)(const Call&, std::span<Tensor>)) override;
  void on_map(const kernels::MapKernel& kernel, Refs x, const Tensor& y) override;
  void on_vjp(const Op& op, const kernels::VjpKernel& kernel, const Tensor& dy, const Tensor* const* x,
              const Tensor& y, const Tensor* dx, unsigned adds) override;
  void on_user_map(const kernels::UserLoops& loops, const Attrs& f,
                   const kernels::PassTensors& pass) override;
  void on_view(const Tensor& y, const Tensor& x, std::int64_t first) override;
  void on_select(const Tensor& y, const Tensor& x, const kernels::StridedView& view) override;
  void on_host_tensor(const Tensor& y) override;
  void on_host_read(const Tensor& x, std::string_view reader) override;
  void on_variable(detail::VariableCell& cell) override;
  void on_read(detail::VariableCell& cell, const Tensor& value) override;
  void on_assign(detail::VariableCell& cell, const Tensor& before) override;
  bool records() const override { return !is_silent(); }
  bool is_computed(const Tensor& x) override;
  std::vector<Tensor> branch(std::string_view name, const Tensor& index, std::span<const Tensor> operands,
                             std::span<const Branch> branches, bool assigns = true) override;
  std::vector<Tensor> loop(const Loop& l, std::span<const Tensor> operands) override;
  std::vector<Tensor> act(std::vector<Tensor> x, std::span<const Spec> y, Action action) override;
  bool attempt(const std::function<void()>& f) override;
  void become(const Op& op, std::span<const Tensor> x, std::span<const Tensor> y, const random::Key& key,
              KeyedAction action) override;
  void on_throw(std::string_view thrower) override;
  random::Key on_split(const random::Key& key, std::uint64_t i, const random::Key& part) override;
  random::Key on_split(const random::Key& key, const Tensor& i) override;
  bool has_values() const override { return !outer_; }
  void on_key_read(std::uint64_t source) override;
  void on_recorder(std::uint64_t serial, std::string_view what, std::string_view use) override;

 private:
  /// Variables with a new value that no node stores yet, in the order of their assignment.
  using Stores = std::vector<std::pair<std::shared_ptr<detail::VariableCell>, Access>>;
  /// The known value of a variable, and the id of its tensor. Forgotten when an action may have changed
  /// variables.
  struct Known {
    std::uint64_t id;
    Access value;
  };
  using Values = std::unordered_map<const detail::VariableCell*, Known>;
  /// An attempt to record the ops of a rule or a kernel. If it reads numbers on the host, the attempt is
  /// given up, and the nodes that it has recorded are dropped. They are replaced by one action, which a
  /// replay calls with other tensors; so the rule or kernel must not use any tensor or key of the recording
  /// other than its arguments.
  struct Attempt {
    Attempt* around;
    std::size_t accesses, keys;            // the number of these before the attempt
    std::size_t used;                      // the size of read_ before the attempt
    std::size_t captures, captured_keys;   // the number of these before the attempt
    bool given_up = false;
    bool captures_others = false;   // it has read a tensor of the outer recording since
    std::vector<KeyId> used_keys = {};
    bool used_variables = false;
    // Copies from before the attempt, made when they change.
    std::optional<Stores> stores = {};
    std::optional<Values> values = {};
  };
  /// The access that a tensor is, or null. Valid until the next call of name().
  const Access* find(const Tensor& x) const;
  const Access* use(const Tensor& x);
  bool knows(const Tensor& x) const;
  std::vector<Access> used_by(const Attempt& a) const;
  std::uint32_t place_of_known(const Tensor& x) const;
  Access access_to(const Tensor& x, std::string_view reader);
  std::optional<Access> capture(const Tensor& x, std::string_view reader);
  void end();
  void require_no_capture(const Tensor& x, std::string_view reader);
  Access add_constant(const Tensor& x);
  void name(const Tensor& y, const Access& a, std::uint32_t base = 0);
  std::uint32_t& place_of(std::uint64_t id);
  void set_place(std::uint64_t id, std::uint32_t place);
  ValueId new_value(const Tensor& y);
  bool is_constant(const Access& a) const { return program_[a.of].from == Value::From::constant; }
  bool is_constant(const OpNode& node) const;
  bool is_recorded(const Tensor& x) const { return x.id() >= first_id_; }
  bool is_given_up() const { return attempt_ && attempt_->given_up; }
  /// Whether nothing is recorded at present.
  bool is_silent() const { return blind_ || is_given_up(); }
  [[noreturn]] void refuse(std::string text);
  void note_refused(const std::string& text);
  void change_variables();
  void begin_action();
  void require_operand(const Tensor& x);
  void require_own_key(std::uint64_t source);
  void note_variable(detail::VariableCell& cell);
  void require_given(std::string_view name, std::span<const Access> given, KeyId key);
  std::vector<Access> operands_of(const Call& c);
  KeyId key_of(const random::Key& key);
  Tensor numbers_of(const random::Key& key, KeyId id);
  KeyId key_of(const Call& c);
  void require_captures_of_keys(std::string_view reader);
  void add_op(OpNode node, std::span<const Tensor> y);
  void define(OpNode node, std::span<const Tensor> y);
  void run_kernel(const Call& c, std::span<Tensor> y, void (*kernel)(const Call&, std::span<Tensor>));
  bool attempt_ops(const std::function<void()>& f);
  void run_composite(const Call& c, std::span<Tensor> y, void (*kernel)(const Call&, std::span<Tensor>));
  void require_known_shapes(const Call& c, std::span<const Tensor> y);
  void flush_stores();
  std::string place() const;

  std::string name_;
  Allowed allowed_;
  Program program_;
  std::optional<Observer> presence_;   // so that dispatch notices the trace
  Tracer* outer_ = nullptr;            // of an inner recording
  const Recorder* around_ = nullptr;
  bool all_captures_ = false;
  bool uses_variables_ = false;   // the program of an inner recording does
  bool acts_ = false;
  bool is_action_ = false;             // the running op uses variables
  std::uint64_t first_recorder_ = 0;   // of an inner recording: the first serial number of its recorders
  Repeats repeats_ = Repeats::nothing;
  NodeId gradient_ = {};
  std::vector<Capture> captures_;
  std::vector<Tensor> captured_keys_;
  /// Of an inner recording: the variables that were assigned, in order, and their values before.
  std::vector<std::pair<std::shared_ptr<detail::VariableCell>, Tensor>> before_;
  std::uint64_t first_id_;   // the first id of tensors created during the recording
  /// The accesses that tensors are, by id. Ids of the recording are dense, and index a vector; others are in
  /// a map.
  std::deque<Access> accesses_;        // pointers to them stay valid
  std::vector<std::uint32_t> bases_;   // by access: the place of the access that it is a view of, or its own
  std::vector<std::uint32_t> recorded_;   // by id - first_id_: places in accesses_, counted from 1; 0: none
  std::unordered_map<std::uint64_t, std::uint32_t> others_;
  std::unordered_set<std::uint64_t> host_;          // tensors made of numbers on the host
  std::unordered_map<std::uint64_t, KeyId> keys_;   // by source
  std::unordered_set<std::uint64_t> captured_;      // views of tensors created before the recording
  Stores stores_;
  Values values_;
  std::vector<std::pair<std::uint64_t, std::uint32_t>> named_;   // ids in the order in which they got values,
                                                                 // and their places before
  bool blind_ = false;                // a kernel or an action is running, and nothing is recorded
  Attempt* attempt_ = nullptr;        // the innermost attempt
  std::vector<std::uint32_t> read_;   // during an attempt: places of the accesses that are read
  std::vector<Access> used_;          // accesses from before the last abandoned attempt that it used
  std::vector<KeyId> used_keys_;
  bool used_variables_ = false, used_captures_ = false;   // of that attempt
  const Call* call_ = nullptr;                            // the call of the running kernel
  const Tensor* result_ = nullptr;                        // the first output of that call
  const kernels::MapKernel* map_ = nullptr;               // the loops of that kernel, if it is elementwise
  Variables variables_;
  bool made_variables_ = false;
  std::string refused_;   // the message of the error that was thrown, which the function may have caught
};

}   // namespace tapedeck::compiled
