// Functions that are recorded inside of another recording, as programs that an op calls: the branches of a
// condition, the step of a loop.
#pragma once
#include <algorithm>
#include <cstring>
#include <map>
#include <memory>

#include "compile/plan/plan.h"
#include "compile/record/tracer.h"
#include "compile/replay/workspace.h"
#include "tape/variable.h"
#include "tapedeck/gradient_tape.h"
#include "transforms/recompute.h"

namespace tapedeck::compiled {

using Tensors = std::vector<Tensor>;
constexpr int kNone = -1;
/// The result that an op with effects has in place of none.
inline const Spec kUnread = {DType::boolean, {}};

// A program that an op calls. Its arguments are some operands of the op.
struct Callee {
  /// Throws InternalError if the verifier finds a fault in its plan.
  explicit Callee(Program p);

  Plan plan;
  std::vector<int> operands = {};   // by argument: the index of the operand, or kNone if it is not read
  std::vector<int> keys = {};       // by key: the index of the operand that holds its numbers
  mutable Workspaces workspaces = {};
};

/// A program in place of that of another one, with the same arguments.
std::shared_ptr<const Callee> callee_like(const Callee& other, Program p);

/// A function that was recorded.
struct Recorded {
  Program program;
  std::vector<Access> results;   // of the function, without undefined ones
  std::vector<bool> defined;     // by result
  std::vector<Tracer::Capture> captures;
  Tensors keys;   // that it captures: their numbers
  /// The variables that it has assigned and their new values; also those that a program which uses variables
  /// itself assigns at its end.
  std::vector<std::pair<std::shared_ptr<detail::VariableCell>, Access>> stores;
  std::size_t arguments = 0;   // the number of arguments that are not captures
  NodeId gradient = {};        // the first node of the gradient, if there is one
  bool acts = false;           // it takes actions
};

/// Records f(x…) inside of another recording, for operands of these specs. If f acts, it must be recorded
/// again, so that its program uses variables; but not in a recording that will itself be made again.
Recorded record(Tracer& outer, std::span<const Spec> arguments, const Trace::Branch& f,
                const InnerOptions& options = {});
/// Why the functions of a branch or a loop must not take actions at present; empty if they may. takes_effect:
/// whether they do not only run again for a derivative.
std::string_view no_actions_now(bool takes_effect);

/// The operands of an op that calls programs, each once.
class Operands {
 public:
  int of(const Tensor& x) {
    const auto [at, is_new] = places_.try_emplace(x.id(), static_cast<int>(list_.size()));
    if (is_new) list_.push_back(x);
    return at->second;
  }
  int of(const Tracer::Capture& c) { return of(value_of(c)); }
  const Tensor& value_of(const Tracer::Capture& c) { return c.cell ? value_of(c.cell) : c.tensor; }
  /// The value of a variable, read once, as recorders and the outer recording see it.
  const Tensor& value_of(const std::shared_ptr<detail::VariableCell>& cell) {
    Tensor& value = values_[cell.get()];
    if (!value.defined()) value = Variable(cell).value();
    return value;
  }
  const Tensors& list() const { return list_; }

 private:
  Tensors list_;
  std::map<std::uint64_t, int> places_;
  std::map<const detail::VariableCell*, Tensor> values_;
};

/// Sets which operands are the arguments and keys of the program of r: `given`, then its captures. place(x):
/// the operand that a capture, or the tensor of a key, is.
template <class F>
void set_operands(Callee& callee, std::vector<int> given, const Recorded& r, const F& place) {
  callee.operands = std::move(given);
  for (const Tracer::Capture& c : r.captures)
    callee.operands.push_back(place(c));
  for (const Tensor& key : r.keys)
    callee.keys.push_back(place(key));
}

/// The nodes of a program that depend on some of its arguments, and the others.
struct Parts {
  Program first;               // its outputs are to be added
  std::vector<ValueId> kept;   // values of the first part that the second one reads
  Program second;
};
/// Cuts off the nodes of a function with its gradient that depend on the arguments `from`, and those of the
/// gradient that act.
Parts cut(const Recorded& r, std::span<const ValueId> from, std::span<const Access> results_of_second);

/// Called in a function that computes its gradient, before that.
inline void begin_gradient() {
  if (thread_state.trace) static_cast<Tracer*>(thread_state.trace)->begin_gradient();
}

/// What the derivatives of a function are taken of, besides its operands: what it captures and recorders
/// follow.
class CapturedSources {
 public:
  /// Those of these functions, which assign these variables. Reads the values of variables through
  /// `operands`.
  void find(std::span<const Recorded> functions,
            std::span<const std::shared_ptr<detail::VariableCell>> assigned, Operands& operands);

  std::size_t size() const { return tensors_.size() + variables_.size(); }
  bool are_those_of(const CapturedSources& other) const;
  bool contains(const Tensor& x) const {
    return std::any_of(tensors_.begin(), tensors_.end(), [&](const Tensor& t) { return t.id() == x.id(); });
  }
  Source operator[](std::size_t k) const {
    return k < tensors_.size() ? Source(tensors_[k]) : Source(variables_[k - tensors_.size()]);
  }
  void append_to(std::vector<Source>& all) const {
    for (std::size_t k = 0; k < size(); ++k)
      all.push_back((*this)[k]);
  }
  /// The tensors, and the values of the variables when they were found.
  const Tensors& values() const { return values_; }
  void forget_values() { values_.clear(); }
  /// Throws GradientError if a variable that the functions read has been updated since.
  void require_current(std::string_view name) const { read_.require_current(name); }

 private:
  Tensors tensors_, values_;
  std::vector<Variable> variables_;
  Captured read_;   // variables alone, also those that no recorder follows
};
/// Watches all of them.
void watch(GradientTape& tape, std::span<const Source> sources);

/// A program of a gradient without some of its cotangents, which are none, and which of its outputs are
/// zeros.
struct Reduced {
  Program program;
  std::vector<bool> is_zero;
};
/// Nodes that depend on cotangents are linear in them, so those of which all cotangents are none are dropped:
/// they could be products of zeros and infinities. cotangents: the arguments that are; missing: those that
/// are none, by argument.
Reduced without_cotangents(const Program& p, std::span<const ValueId> cotangents,
                           const std::vector<bool>& missing);

/// A program that a node calls, for listings.
struct InnerProgram {
  std::string what;   // "branch 0", "step, 100 times"
  const Plan& plan;
};
/// The programs of a branch, or of a loop or its gradient; none for other nodes.
std::vector<InnerProgram> programs_of_branch(const OpNode& n);
std::vector<InnerProgram> programs_of_loop(const OpNode& n);

/// The key with these numbers.
inline random::Key key_at(const std::byte* numbers) {
  std::uint64_t n[2];
  std::memcpy(n, numbers, sizeof n);
  return {n[0], n[1]};
}

/// Makes all elements zeros. zeros_of: a tensor of zeros, which no recording has seen.
void clear(Tensor& t);
Tensor zeros_of(const Spec& spec);

/// Suspends the thread's recording while a kernel runs programs.
class Untraced {
 public:
  Untraced() : trace_(std::exchange(thread_state.trace, nullptr)) {}
  ~Untraced() { thread_state.trace = trace_; }
  Untraced(const Untraced&) = delete;

 private:
  Trace* trace_;
};

}   // namespace tapedeck::compiled
