// Tracer: sees a function run, and writes the program that computes the same.
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

class Tracer final : public Trace {
 public:
  using Variables = std::map<const detail::VariableCell*, std::weak_ptr<detail::VariableCell>>;

  /// What the function may do: read tensors and keys that it is not called with; call what has a state on the
  /// host, such as an optimizer.
  struct Allowed {
    bool captures = true, actions = true;
  };
  /// Starts to record on this thread. Precondition: nothing records there.
  Tracer(std::string name, Allowed allowed);
  ~Tracer() override;

  /// What the function is called with, before it runs. Returns a key that remembers where it comes from.
  void add_argument(const Tensor& x);
  random::Key add_key(const random::Key& key);
  /// Ends the recording, of a function that has returned these tensors, of which some may be undefined.
  Program finish(std::span<const Tensor> outputs);
  /// Whether variables were made.
  bool made_variables() const { return made_variables_; }
  /// The variables that were read or changed, also those that no node of the program is about.
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
  void on_assign(detail::VariableCell& cell) override;
  std::vector<Tensor> act(std::vector<Tensor> x, Action action) override;
  bool attempt(const std::function<void()>& f) override;
  void become(const Op& op, std::span<const Tensor> x, std::span<const Tensor> y, const random::Key& key,
              KeyedAction action) override;
  void on_throw(std::string_view thrower) override;
  random::Key on_split(const random::Key& key, std::uint64_t i, const random::Key& part) override;
  void on_key_read(std::uint64_t source) override;

 private:
  /// Variables with a new value that no node has stored yet, in the order in which they got it.
  using Stores = std::vector<std::pair<std::shared_ptr<detail::VariableCell>, Access>>;
  /// What variables are known to be, until an action may have changed them, and under which id.
  struct Known {
    std::uint64_t id;
    Access value;
  };
  using Values = std::unordered_map<const detail::VariableCell*, Known>;
  /// A rule or a kernel whose ops are recorded, unless it turns out to read numbers on the host: then it is
  /// given up, and what it has recorded is dropped. One action takes its place, which calls it again with
  /// other tensors. So it must not use any tensor or key of the recording but those that it is given.
  struct Attempt {
    Attempt* around;
    std::size_t accesses, keys;   // that were there before
    std::size_t used;             // as many as read_ had
    bool given_up = false;
    std::vector<KeyId> used_keys = {};
    bool used_variables = false;
    // As they were before, once they change.
    std::optional<Stores> stores = {};
    std::optional<Values> values = {};
  };
  /// Valid until the next tensor gets a name.
  const Access* find(const Tensor& x) const;
  const Access* use(const Tensor& x);
  std::vector<Access> used_by(const Attempt& a) const;
  std::uint32_t place_of_known(const Tensor& x) const;
  Access access_to(const Tensor& x, std::string_view reader);
  void require_no_capture(const Tensor& x, std::string_view reader);
  Access add_constant(const Tensor& x);
  void name(const Tensor& y, const Access& a, std::uint32_t base = 0);
  std::uint32_t& place_of(std::uint64_t id);
  void set_place(std::uint64_t id, std::uint32_t place);
  ValueId new_value(const Tensor& y);
  bool is_constant(const Access& a) const { return program_[a.of].from == Value::From::constant; }
  bool is_recorded(const Tensor& x) const { return x.id() >= first_id_; }
  bool is_given_up() const { return attempt_ && attempt_->given_up; }
  /// Whether nothing is recorded now.
  bool is_silent() const { return blind_ || is_given_up(); }
  [[noreturn]] void refuse(std::string text);
  void change_variables();
  void act_on_variables();
  void require_operand(const Tensor& x);
  void require_own_key(std::uint64_t source);
  void note_variable(detail::VariableCell& cell);
  void own(Tensor& result);
  void require_given(std::string_view name, std::span<const Access> given, KeyId key);
  std::vector<Access> operands_of(const Call& c);
  KeyId key_of(const random::Key& key);
  KeyId key_of(const Call& c);
  void add_op(OpNode node, std::span<const Tensor> y);
  void run_kernel(const Call& c, std::span<Tensor> y, void (*kernel)(const Call&, std::span<Tensor>));
  void run_composite(const Call& c, std::span<Tensor> y, void (*kernel)(const Call&, std::span<Tensor>));
  void flush_stores();
  std::string place() const;

  std::string name_;
  Allowed allowed_;
  Program program_;
  Observer presence_;        // which dispatch looks for
  std::uint64_t first_id_;   // of tensors that are made while this records
  /// What tensors are, by their ids: those of the recording, which lie close together, and others.
  std::deque<Access> accesses_;           // pointers to them stay valid
  std::vector<std::uint32_t> bases_;      // of each the place of what it is a view of, or its own
  std::vector<std::uint32_t> recorded_;   // by id - first_id_: places in accesses_, from 1 on
  std::unordered_map<std::uint64_t, std::uint32_t> others_;
  std::unordered_set<std::uint64_t> host_;          // tensors of numbers that were on the host
  std::unordered_map<std::uint64_t, KeyId> keys_;   // by their sources
  std::unordered_set<std::uint64_t> captured_;      // views of tensors that were there before
  Stores stores_;
  Values values_;
  std::vector<std::pair<std::uint64_t, std::uint32_t>> named_;   // ids in the order in which they got values,
                                                                 // and their places before
  bool blind_ = false;                // a kernel or an action runs: nothing is recorded
  Attempt* attempt_ = nullptr;        // the innermost
  std::vector<std::uint32_t> read_;   // while there is one: what is read, by places in accesses_
  std::vector<Access> used_;          // by the last attempt that was given up, of what was there before it
  std::vector<KeyId> used_keys_;
  bool used_variables_ = false;
  const Call* call_ = nullptr;                // of the kernel that runs
  const Tensor* result_ = nullptr;            // its first
  const kernels::MapKernel* map_ = nullptr;   // what that kernel is
  Variables variables_;
  bool made_variables_ = false;
  std::string refused_;   // what the function was told, and may have caught
};

}   // namespace tapedeck::compiled
