// Functions that are recorded inside of another recording, as programs that an op calls: the branches of a
// condition, the step of a loop.
#pragma once
#include <cstring>
#include <map>
#include <memory>

#include "compile/plan/plan.h"
#include "compile/record/tracer.h"
#include "compile/replay/workspace.h"
#include "tape/variable.h"

namespace tapedeck::compiled {

using Tensors = std::vector<Tensor>;
constexpr int kNone = -1;

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
  std::vector<std::pair<std::shared_ptr<detail::VariableCell>, Access>> stores;
  std::size_t arguments;   // the number of arguments that are not captures
};

/// Records f(x…) inside of another recording, for operands of these specs.
Recorded record(Tracer& outer, std::span<const Spec> arguments, const Trace::Branch& f);

/// The operands of an op that calls programs, each once.
class Operands {
 public:
  int of(const Tensor& x) {
    const auto [at, is_new] = places_.try_emplace(x.id(), static_cast<int>(list_.size()));
    if (is_new) list_.push_back(x);
    return at->second;
  }
  int of(const Tracer::Capture& c) { return c.cell ? of(value_of(c.cell)) : of(c.tensor); }
  /// The value of a variable, read once, as recorders and the outer recording see it.
  const Tensor& value_of(const std::shared_ptr<detail::VariableCell>& cell) {
    Tensor& value = values_[cell.get()];
    if (!value.defined()) value = Variable(cell).value(), cells_.push_back(cell);
    return value;
  }
  /// The variables read, in order.
  const std::vector<std::shared_ptr<detail::VariableCell>>& cells() const { return cells_; }
  const Tensors& list() const { return list_; }

 private:
  Tensors list_;
  std::map<std::uint64_t, int> places_;
  std::map<const detail::VariableCell*, Tensor> values_;
  std::vector<std::shared_ptr<detail::VariableCell>> cells_;
};

/// The operands that these tensors are.
std::vector<int> places_of(std::span<const Tensor> x, Operands& operands);
/// Sets which operands are the arguments and keys of the program of r: `given`, then its captures.
void set_operands(Callee& callee, std::span<const int> given, const Recorded& r, Operands& operands);

/// The nodes of a program that depend on some of its arguments, and the others.
struct Parts {
  Program first;               // its outputs are to be added
  std::vector<ValueId> kept;   // values of the first part that the second one reads
  Program second;
};
/// Cuts off the nodes that depend on the arguments `from`.
Parts cut(const Program& p, std::span<const ValueId> from, std::span<const Access> results_of_second);

/// The values of variables that a function has read, which it is to read again when a derivative runs it
/// again.
class Versions {
 public:
  void add(const std::shared_ptr<detail::VariableCell>& cell) { all_.emplace_back(cell, cell->value.id()); }
  bool are_current() const;
  /// Throws GradientError if a variable has been updated since.
  void check(std::string_view name) const;

 private:
  std::vector<std::pair<std::shared_ptr<detail::VariableCell>, std::uint64_t>> all_;
};

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

/// By value: whether the program reads it.
IdVector<ValueId, bool> find_read(const Program& p);
/// The key with these numbers.
inline random::Key key_at(const std::byte* numbers) {
  std::uint64_t n[2];
  std::memcpy(n, numbers, sizeof n);
  return {n[0], n[1]};
}

/// A tensor of zeros, which no recording has seen.
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
