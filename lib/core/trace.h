// Trace: receives every computation of its thread while a function is recorded. Otherwise thread_state.trace
// is null, and nothing here is called. Code that sets it must also install an observer, which is what
// dispatch checks for.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/thread_state.h"
#include "tapedeck/random_key.h"
#include "tapedeck/refs.h"
#include "tapedeck/tensor.h"

namespace tapedeck {

struct Attrs;
struct Call;
struct Op;
namespace detail {
struct VariableCell;
}
namespace kernels {
struct MapKernel;
struct PassTensors;
class StridedView;
struct UserLoops;
struct VjpKernel;
}   // namespace kernels

class Trace {
 public:
  /// A computation on tensors that runs immediately and in every replay.
  using Action = std::function<std::vector<Tensor>(std::span<const Tensor>)>;
  /// An action that also gets the random key with which its op is called.
  using KeyedAction = std::function<std::vector<Tensor>(std::span<const Tensor>, const random::Key&)>;

  Trace() = default;
  virtual ~Trace() = default;
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  /// Runs the kernel of a call.
  virtual void run(const Call& c, std::span<Tensor> y, void (*kernel)(const Call&, std::span<Tensor>)) = 0;
  /// Called before an elementwise kernel runs, as part of an op or alone; before the loops of a vjp; and
  /// before the loops of a user's map.
  virtual void on_map(const kernels::MapKernel& kernel, Refs x, const Tensor& y) = 0;
  virtual void on_vjp(const Op& op, const kernels::VjpKernel& kernel, const Tensor& dy,
                      const Tensor* const* x, const Tensor& y, const Tensor* dx, unsigned adds) = 0;
  virtual void on_user_map(const kernels::UserLoops& loops, const Attrs& f,
                           const kernels::PassTensors& pass) = 0;

  /// on_view: y is the elements of x from `first` on. on_select: y is a copy of the elements of x that a view
  /// selects. on_host_tensor: y was made from numbers on the host. on_host_read: the numbers of x are read on
  /// the host, by a function of this name; may throw.
  virtual void on_view(const Tensor& y, const Tensor& x, std::int64_t first) = 0;
  virtual void on_select(const Tensor& y, const Tensor& x, const kernels::StridedView& view) = 0;
  virtual void on_host_tensor(const Tensor& y) = 0;
  virtual void on_host_read(const Tensor& x, std::string_view reader = {}) = 0;

  /// A variable was created; its value is read as this tensor; it has a new value instead of `before`.
  virtual void on_variable(detail::VariableCell& cell) = 0;
  virtual void on_read(detail::VariableCell& cell, const Tensor& value) = 0;
  virtual void on_assign(detail::VariableCell& cell, const Tensor& before) = 0;
  /// Runs an action, during which nothing is recorded. In a replay its tensors are valid only during the
  /// call. It may read and change variables. y: the specs of its results. In functions of branches and loops
  /// it does not run, and its results are zeros.
  virtual std::vector<Tensor> act(std::vector<Tensor> x, std::span<const Spec> y, Action action) = 0;

  /// attempt: runs f and records its ops. Returns false if f also reads numbers or writes memory; then
  /// nothing of f is recorded, and `become` must record instead that `action`, a rule of `op`, computes y
  /// from x. become throws if f has used tensors or keys other than x and `key`, since in a replay the action
  /// would get those of the recording.
  virtual bool attempt(const std::function<void()>& f) = 0;
  virtual void become(const Op& op, std::span<const Tensor> x, std::span<const Tensor> y,
                      const random::Key& key, KeyedAction action) = 0;

  /// The function of this name is about to throw because of the values of tensors. If the recorded function
  /// catches the error and continues, recording fails, since it would hold for these values only.
  virtual void on_throw(std::string_view thrower) = 0;

  /// `part` is key i of `key`. Returns it as a key that stores this origin.
  virtual random::Key on_split(const random::Key& key, std::uint64_t i, const random::Key& part) = 0;
  /// Returns the key of the number in i, an integer tensor with one element that is computed.
  virtual random::Key on_split(const random::Key& key, const Tensor& i) = 0;
  /// A number of the key from that source is read on the host; may throw.
  virtual void on_key_read(std::uint64_t source) = 0;

  /// Whether ops are recorded at present, and not within a kernel or an action.
  virtual bool records() const = 0;
  /// Whether tensors have the values of a call. In functions of branches and loops they are zeros.
  virtual bool has_values() const = 0;
  /// Whether the numbers of x may differ between replays.
  virtual bool is_computed(const Tensor& x) = 0;
  /// Records functions of `operands`, of which `index`, a bool or an integer with one element, selects one in
  /// each replay: true or 0 the first, an index out of range the last. Returns the results of that one.
  /// assigns: whether its assignments to variables take effect; not if it runs again for a derivative.
  using Branch = std::function<std::vector<Tensor>(std::span<const Tensor>)>;
  virtual std::vector<Tensor> branch(std::string_view name, const Tensor& index,
                                     std::span<const Tensor> operands, std::span<const Branch> branches,
                                     bool assigns = true) = 0;
  /// A loop whose steps are one function.
  struct Loop {
    std::string name;
    std::int64_t steps;   // their number, or the largest one if there is a condition
    Branch condition;     // of the carries: a bool with one element; empty if there is none
    Branch step;          // of the carries, and of the entries of this step; returns carries and outputs
    std::size_t carries;
    bool reverse = false;         // entries are taken, and outputs given, from the last one to the first
    std::int64_t snapshots = 0;   // see control.h
    bool assigns = true;          // as for branch
  };
  /// Records a loop. operands: carries, then tensors along whose first axes the entries are. Returns the
  /// carries, then the outputs of all steps along new first axes. There are neither entries nor outputs if
  /// there is a condition.
  virtual std::vector<Tensor> loop(const Loop& l, std::span<const Tensor> operands) = 0;
  /// A tape or an accumulator, as `what` says, with this serial number is used in this way; may throw.
  virtual void on_recorder(std::uint64_t serial, std::string_view what, std::string_view use) = 0;
};

/// This thread's recording, if it records ops at present; else null.
inline Trace* recording() {
  return thread_state.trace && thread_state.trace->records() ? thread_state.trace : nullptr;
}

/// Returns y, which was made from numbers on the host, after reporting it to this thread's recording, which
/// treats it as a constant.
inline Tensor shown(Tensor y) {
  if (thread_state.trace) [[unlikely]]
    thread_state.trace->on_host_tensor(y);
  return y;
}

}   // namespace tapedeck
