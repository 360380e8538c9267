// Loops of recorded functions. In: the function of a step. Out: the results of all steps, recorded as one op
// whose attributes hold the program of a step.
//
// As in branch.cpp, the step is recorded by itself, what it captures becomes an operand, and a variable that
// it assigns becomes one more carry. The gradient is a loop in the other direction: its carries are the
// cotangents of the carries, and the sums of the gradients of what is captured. What it reads of a step is
// stacked by the forward loop, as further outputs; operands that are the same in every step are not.
#include <algorithm>
#include <cstring>

#include "compile/record/inner.h"
#include "core/bytes.h"
#include "core/format.h"
#include "core/storage.h"
#include "kernels/layout/copy.h"
#include "op/recorder.h"
#include "tape/tape.h"
#include "tape/variable.h"
#include "tapedeck/control.h"
#include "tapedeck/forward_accumulator.h"
#include "tapedeck/gradient_tape.h"
#include "tapedeck/operators.h"
#include "tapedeck/ops/array.h"
#include "tapedeck/record_operation.h"

namespace tapedeck::compiled {
namespace {

using Function = Trace::Branch;

// The operands of the op are carries, then tensors of entries, then others. Its results are the carries, then
// the stacked outputs of the steps.
struct LoopProgram {
  std::shared_ptr<const Callee> condition, step;   // condition: null if there is none
  std::int64_t steps;
  std::size_t carries, entries, outputs;
  bool reverse;
  std::vector<Spec> results;
};
struct LoopAttrs {
  std::shared_ptr<const LoopProgram> program;
};

Spec entry_of(const Spec& stacked) {
  Spec entry{stacked.dtype, {}};
  for (int d = 1; d < stacked.shape.ndim(); ++d)
    entry.shape.push_back(stacked.shape[d]);
  return entry;
}
Spec stacked(const Spec& entry, std::int64_t n) {
  Spec all{entry.dtype, {n}};
  for (const std::int64_t d : entry.shape)
    all.shape.push_back(d);
  return all;
}

// One execution of a loop.
class LoopRun {
 public:
  LoopRun(const LoopProgram& l, Refs x) : l_(l), x_(x) {
    for (std::size_t i = 0; i < l.carries; ++i)
      carries_.push_back(x[static_cast<int>(i)]);
    for (std::size_t i = 0; i < l.entries; ++i)
      entries_.push_back(allocate(entry_of(x[static_cast<int>(l.carries + i)].spec())));
  }

  void run(std::span<Tensor> y) {
    const BorrowedWorkspace workspace(l_.step->workspaces);
    Replay& step = workspace->replay(0, l_.step->plan);
    Tensors x, out[2];
    for (std::int64_t k = 0; k < l_.steps && goes_on(); ++k) {
      const std::int64_t at = l_.reverse ? l_.steps - 1 - k : k;
      for (std::size_t i = 0; i < l_.entries; ++i) {
        const Tensor& all = x_[static_cast<int>(l_.carries + i)];
        const auto bytes = static_cast<std::size_t>(entries_[i].nbytes());
        if (bytes) std::memcpy(entries_[i].raw(), all.raw() + static_cast<std::size_t>(at) * bytes, bytes);
      }
      arguments(*l_.step, x);
      Tensors& results = out[k % 2];   // those of the step before are arguments
      step.run(x, {}, results);
      for (std::size_t i = 0; i < l_.carries; ++i)
        carries_[i] = results[i];
      for (std::size_t i = 0; i < l_.outputs; ++i) {
        const Tensor& from = results[l_.carries + i];
        const auto bytes = static_cast<std::size_t>(from.nbytes());
        if (bytes)
          std::memcpy(y[l_.carries + i].raw() + static_cast<std::size_t>(at) * bytes, from.raw(), bytes);
      }
    }
    for (std::size_t i = 0; i < l_.carries; ++i)
      copy_elements(carries_[i], y[i]);
  }

 private:
  bool goes_on() {
    if (!l_.condition) return true;
    const BorrowedWorkspace workspace(l_.condition->workspaces);
    Tensors x;
    arguments(*l_.condition, x);
    workspace->replay(0, l_.condition->plan).run(x, {}, holds_);
    return *elements<std::uint8_t>(holds_[0]) != 0;
  }
  void arguments(const Callee& callee, Tensors& x) const {
    x.clear();
    for (const int i : callee.operands)
      if (const auto k = static_cast<std::size_t>(i); i == kNone)
        x.emplace_back();
      else
        x.push_back(k < l_.carries                ? carries_[k]
                    : k < l_.carries + l_.entries ? entries_[k - l_.carries]
                                                  : x_[i]);
  }

  const LoopProgram& l_;
  Refs x_;
  Tensors carries_, entries_, holds_;
};

constexpr Op kLoop = {
    .name = "loop",
    .doc = "The results of a loop whose step is a program.",
    .args = {"operand"},
    .infer = [](const Call& c) { return c.attrs<LoopAttrs>().program->results; },
    .forward = {[](const Call& c, std::span<Tensor> y) {
                  const Untraced untraced;
                  LoopRun(*c.attrs<LoopAttrs>().program, c.x).run(y);
                },
                Outputs::fresh, KernelDtypes::all},
    .rule = Rule::none(),
};

Tensors run_op(const Tensors& operands, LoopProgram l) {
  const RecordingScope unrecorded(nullptr);
  return kLoop.run(operands, LoopAttrs{std::make_shared<const LoopProgram>(std::move(l))});
}

bool varies(const Spec& s) { return is_trainable(s.dtype); }

// What is needed for the derivatives of a loop.
struct Derivative {
  Trace::Loop l;
  std::vector<Spec> carries, entries, outputs;   // of a step
  Tensors captured = {};                         // tensors that recorders follow
  std::vector<Variable> variables = {};          // whose values recorders follow

  std::size_t uses() const { return captured.size() + variables.size(); }
  std::size_t operands() const { return carries.size() + entries.size(); }

  // in: the operands of a step; the cotangents of the carries and outputs that vary; the sums so far of the
  // gradients of what is captured. Returns the results of the step; the gradients of the carries and entries
  // that vary; the sums.
  Tensors with_gradients(std::span<const Tensor> in) const {
    GradientTape tape({.watch_accessed_variables = false});
    std::vector<Source> list;
    for (std::size_t i = 0; i < operands(); ++i)
      if (varies(i < carries.size() ? carries[i] : entries[i - carries.size()])) list.emplace_back(in[i]);
    const std::size_t own = list.size();
    list.insert(list.end(), captured.begin(), captured.end());
    list.insert(list.end(), variables.begin(), variables.end());
    for (const Source& s : list)
      s.variable() ? tape.watch(*s.variable()) : tape.watch(s.tensor());
    Tensors y = l.step(in.first(operands())), targets;
    GradientOptions options;
    std::size_t next = operands();
    for (const Tensor& t : y)
      if (varies(t.spec())) targets.push_back(t), options.output_gradients.push_back(in[next++]);
    std::vector<Gradient> dx = tape.gradient(Targets(targets), Sources(list), options);
    for (std::size_t k = 0; k < dx.size(); ++k) {
      const Tensor& x = tensor_of(list[k]);
      if (k < own)
        y.push_back(dx[k].defined() ? std::move(dx[k]).dense() : zeros(x.shape(), x.dtype()));
      else
        y.push_back(dx[k].defined() ? in[next++] + std::move(dx[k]).dense() : in[next++]);
    }
    return y;
  }
};

// A loop while it is recorded.
class LoopPoint {
 public:
  LoopPoint(Tracer& outer, const Trace::Loop& l, std::span<const Tensor> operands) : outer_(outer) {
    d_.l = l;
    for (std::size_t i = 0; i < operands.size(); ++i)
      if (i < l.carries)
        d_.carries.push_back(operands[i].spec()), carries_.push_back(operands[i]);
      else
        d_.entries.push_back(entry_of(operands[i].spec())), entries_.push_back(operands[i]);
    step_ = record(outer, step_specs(), l.step);
    for (std::size_t k = l.carries; k < step_.results.size(); ++k)
      d_.outputs.push_back(step_.results[k].spec);
    if (l.condition) condition_ = record(outer, d_.carries, l.condition);
    for (const auto& [cell, value] : step_.stores)
      cells_.push_back(cell);
    find_uses();
  }

  Tensors run() {
    bool differentiates = d_.uses() > 0;
    for (const Tensors* list : {&carries_, &entries_})
      for (const Tensor& t : *list)
        differentiates |= thread_state.innermost && followed(t);
    if (!differentiates) return finish(run_op(operands(), program(step_, step_.results.size(), {})));
    if (d_.l.condition)
      throw_error<TraceError>("compile: {} has no gradient in compiled functions yet; use scan", d_.l.name);
    return finish(run_recorded());
  }

 private:
  std::vector<Spec> step_specs() const {
    std::vector<Spec> all = d_.carries;
    all.insert(all.end(), d_.entries.begin(), d_.entries.end());
    return all;
  }
  std::size_t all_carries() const { return carries_.size() + cells_.size(); }

  void find_uses() {
    if (!thread_state.innermost) return;
    for (const Tracer::Capture& capture : step_.captures) {
      if (!capture.cell) {
        if (followed(capture.tensor)) d_.captured.push_back(capture.tensor);
      } else if (std::find(cells_.begin(), cells_.end(), capture.cell) == cells_.end()) {
        if (followed(others_.value_of(capture.cell))) d_.variables.emplace_back(capture.cell);
      }
    }
  }

  // The operand that an argument is: given ones, then captures.
  int operand_of(const Tracer::Capture& capture) {
    if (const auto at = std::find(cells_.begin(), cells_.end(), capture.cell);
        capture.cell && at != cells_.end())
      return static_cast<int>(carries_.size()) + static_cast<int>(at - cells_.begin());
    return static_cast<int>(all_carries() + entries_.size()) + others_.of(capture);
  }
  std::vector<int> given(std::size_t carries, std::size_t entries) const {
    std::vector<int> all;
    for (std::size_t i = 0; i < carries; ++i)
      all.push_back(static_cast<int>(i));
    for (std::size_t i = 0; i < entries; ++i)
      all.push_back(static_cast<int>(all_carries() + i));
    return all;
  }
  std::shared_ptr<const Callee> callee(Program p, std::vector<int> places, const Recorded& r) {
    p.forget_constants();
    const auto made = std::make_shared<Callee>(std::move(p));
    for (const Tracer::Capture& c : r.captures)
      places.push_back(operand_of(c));
    made->operands = std::move(places);
    return made;
  }

  // The program of the loop, whose step has the first `results` results of r, and keeps more of them.
  LoopProgram program(Recorded& r, std::size_t results, std::span<const Access> kept,
                      Program* first = nullptr, std::size_t cotangents = 0) {
    Program& p = first ? *first : r.program;
    LoopProgram l{.condition = {},
                  .step = {},
                  .steps = d_.l.steps,
                  .carries = all_carries(),
                  .entries = entries_.size(),
                  .outputs = results - carries_.size() + kept.size(),
                  .reverse = d_.l.reverse,
                  .results = {}};
    for (std::size_t k = 0; k < carries_.size(); ++k)
      p.add_output(r.results[k]), l.results.push_back(r.results[k].spec);
    for (const auto& cell : cells_) {
      const auto at =
          std::find_if(r.stores.begin(), r.stores.end(), [&](const auto& s) { return s.first == cell; });
      p.add_output(at->second), l.results.push_back(at->second.spec);
    }
    for (std::size_t k = carries_.size(); k < results; ++k)
      p.add_output(r.results[k]), l.results.push_back(stacked(r.results[k].spec, d_.l.steps));
    for (const Access& a : kept)
      p.add_output(a), l.results.push_back(stacked(a.spec, d_.l.steps));
    std::vector<int> places = given(carries_.size(), entries_.size());
    places.resize(places.size() + cotangents, kNone);
    l.step = callee(p, std::move(places), r);
    if (condition_) {
      condition_->program.add_output(condition_->results.at(0));
      l.condition = callee(condition_->program, given(carries_.size(), 0), *condition_);
    }
    return l;
  }
  // The operands of the op. To be called when all programs are made.
  Tensors operands() {
    Tensors all = carries_;
    for (const auto& cell : cells_)
      all.push_back(others_.value_of(cell));
    all.insert(all.end(), entries_.begin(), entries_.end());
    all.insert(all.end(), others_.list().begin(), others_.list().end());
    return all;
  }

  // Assigns variables, and returns the results of the loop itself.
  Tensors finish(Tensors y) {
    for (std::size_t k = 0; k < cells_.size(); ++k)
      Variable(cells_[k]).assign(y[carries_.size() + k]);
    y.erase(y.begin() + static_cast<std::ptrdiff_t>(carries_.size()),
            y.begin() + static_cast<std::ptrdiff_t>(all_carries()));
    y.resize(carries_.size() + d_.outputs.size());
    return y;
  }

  Tensors run_recorded() {
    // The operands of the function that is recorded, as specs: those of a step, cotangents, sums.
    std::vector<Spec> specs = step_specs();
    const std::size_t own = specs.size();
    std::vector<std::size_t> varying_carries, varying_entries, varying_outputs;
    for (std::size_t k = 0; k < d_.carries.size(); ++k)
      if (varies(d_.carries[k])) varying_carries.push_back(k), specs.push_back(d_.carries[k]);
    for (std::size_t k = 0; k < d_.outputs.size(); ++k)
      if (varies(d_.outputs[k])) varying_outputs.push_back(k), specs.push_back(d_.outputs[k]);
    for (std::size_t k = 0; k < d_.entries.size(); ++k)
      if (varies(d_.entries[k])) varying_entries.push_back(k);
    const std::size_t first_sum = specs.size();
    Tensors uses = d_.captured;
    for (const Variable& v : d_.variables)
      uses.push_back(others_.value_of(v.cell().shared_from_this()));
    for (const Tensor& t : uses)
      specs.push_back(t.spec());
    Recorded r = record(outer_, specs, [&](std::span<const Tensor> in) { return d_.with_gradients(in); });

    const std::size_t results = carries_.size() + d_.outputs.size();
    const std::span<const Access> gradients = std::span<const Access>(r.results).subspan(results);
    const std::vector<ValueId> arguments = r.program.arguments();
    const std::vector<ValueId> later(arguments.begin() + static_cast<std::ptrdiff_t>(own),
                                     arguments.begin() + static_cast<std::ptrdiff_t>(specs.size()));
    Parts parts = cut(r.program, later, gradients);
    Program& back = parts.second;
    for (const Access& a : gradients)
      back.add_output(a);
    back.forget_constants();
    IdVector<ValueId, bool> read(back.values().size());
    for (const Node& n : back.nodes())
      for_each_operand(n, [&](const Access& a) { read[a.of] = true; });
    for (const Access& a : back.outputs())
      if (a.reads()) read[a.of] = true;
    // What each step keeps: its carries that the gradient reads, then computed values.
    std::vector<Access> kept;
    std::vector<int> kept_carry(all_carries(), kNone);
    const auto carry_of_argument = [&](std::size_t i) -> int {
      if (i < carries_.size()) return static_cast<int>(i);
      if (i < specs.size()) return kNone;
      const Tracer::Capture& capture = r.captures[i - specs.size()];
      const int place = operand_of(capture);
      return place < static_cast<int>(all_carries()) ? place : kNone;
    };
    for (std::size_t i = 0; i < arguments.size(); ++i)
      if (const int carry = carry_of_argument(i); carry != kNone && read[arguments[i]]) {
        kept_carry[static_cast<std::size_t>(carry)] = static_cast<int>(kept.size());
        kept.push_back(parts.first.all_of(arguments[i]));
      }
    const std::size_t first_value = kept.size();
    for (const ValueId v : parts.kept)
      kept.push_back(parts.first.all_of(v));

    LoopProgram forward = program(r, results, kept, &parts.first, specs.size() - own);
    const std::size_t first_kept = forward.results.size() - kept.size();
    const Tensors x = operands();
    Tensors y = run_op(x, std::move(forward));

    // The backward loop. Its carries: cotangents of carries, sums. Its entries: kept values, entries of the
    // forward loop that it reads, cotangents of outputs.
    const std::size_t back_carries = varying_carries.size() + uses.size();
    Tensors back_entries, back_others;
    for (std::size_t k = 0; k < kept.size(); ++k)
      back_entries.push_back(y[first_kept + k]);
    std::vector<int> place_of_entry(entries_.size(), kNone);
    for (std::size_t k = 0; k < entries_.size(); ++k)
      if (read[arguments[carries_.size() + k]])
        place_of_entry[k] = static_cast<int>(back_entries.size()), back_entries.push_back(entries_[k]);
    const std::size_t all_entries = back_entries.size() + varying_outputs.size();
    std::vector<int> places;
    for (std::size_t i = 0; i < back.arguments().size(); ++i) {
      const auto entry = [&](int k) { places.push_back(static_cast<int>(back_carries) + k); };
      if (!read[back.arguments()[i]])
        places.push_back(kNone);
      else if (i >= arguments.size())
        entry(static_cast<int>(first_value + i - arguments.size()));
      else if (const int carry = carry_of_argument(i); carry != kNone)
        entry(kept_carry[static_cast<std::size_t>(carry)]);
      else if (i < own)
        entry(place_of_entry[i - carries_.size()]);
      else if (i < own + varying_carries.size())
        places.push_back(static_cast<int>(i - own));
      else if (i < first_sum)
        entry(static_cast<int>(back_entries.size() + i - own - varying_carries.size()));
      else if (i < specs.size())
        places.push_back(static_cast<int>(i - first_sum + varying_carries.size()));
      else {
        places.push_back(static_cast<int>(back_carries + all_entries + back_others.size()));
        back_others.push_back(x[static_cast<std::size_t>(operand_of(r.captures[i - specs.size()]))]);
      }
    }
    // Outputs of the program: gradients of carries, entries, sums; wanted: carries, sums, entries.
    Program ordered = back;
    ordered.clear_outputs();
    const std::size_t nc = varying_carries.size(), ne = varying_entries.size();
    LoopProgram l{.condition = {},
                  .step = {},
                  .steps = d_.l.steps,
                  .carries = back_carries,
                  .entries = all_entries,
                  .outputs = ne,
                  .reverse = !d_.l.reverse,
                  .results = {}};
    const auto add = [&](std::size_t k, bool is_stacked) {
      ordered.add_output(gradients[k]);
      l.results.push_back(is_stacked ? stacked(gradients[k].spec, d_.l.steps) : gradients[k].spec);
    };
    for (std::size_t k = 0; k < nc; ++k)
      add(k, false);
    for (std::size_t k = 0; k < uses.size(); ++k)
      add(nc + ne + k, false);
    for (std::size_t k = 0; k < ne; ++k)
      add(nc + k, true);
    const auto made = std::make_shared<Callee>(std::move(ordered));
    made->operands = std::move(places);
    l.step = made;

    // Recorders see the operands that vary, and what is captured.
    Tensors inputs;
    for (const std::size_t k : varying_carries)
      inputs.push_back(carries_[k]);
    for (const std::size_t k : varying_entries)
      inputs.push_back(entries_[k]);
    inputs.insert(inputs.end(), uses.begin(), uses.end());
    Tensors outputs(y.begin(), y.begin() + static_cast<std::ptrdiff_t>(carries_.size()));
    for (std::size_t k = 0; k < d_.outputs.size(); ++k)
      outputs.push_back(y[all_carries() + k]);
    const auto program = std::make_shared<const LoopProgram>(std::move(l));
    const auto backward = [=, carries = carries_.size(), name = d_.l.name](std::span<const Tensor> dy) {
      const auto is_followed = [](const Tensor& t) { return t.defined() && followed(t); };
      if (thread_state.innermost && (std::any_of(dy.begin(), dy.end(), is_followed) ||
                                     std::any_of(inputs.begin(), inputs.end(), is_followed)))
        throw_error<TraceError>("compile: {} has no second derivative in compiled functions yet", name);
      Tensors in;
      for (const std::size_t k : varying_carries)
        in.push_back(dy[k]);
      for (const Tensor& t : uses)   // -0 + x is x, whatever the sign of a zero
        in.push_back(full(t.shape(), -0.0, t.dtype()));
      in.insert(in.end(), back_entries.begin(), back_entries.end());
      for (const std::size_t k : varying_outputs)
        in.push_back(dy[carries + k]);
      in.insert(in.end(), back_others.begin(), back_others.end());
      const Tensors dx = run_op(in, LoopProgram(*program));
      std::vector<Gradient> all;
      for (std::size_t k = 0; k < nc; ++k)
        all.emplace_back(dx[k]);
      for (std::size_t k = 0; k < ne; ++k)
        all.emplace_back(dx[nc + uses.size() + k]);
      for (std::size_t k = 0; k < uses.size(); ++k)
        all.emplace_back(dx[nc + k]);
      return all;
    };
    const auto forward_mode = [name = d_.l.name](std::span<const Tensor>) -> Tensors {
      throw_error<TraceError>("compile: {} has no forward mode in compiled functions yet", name);
    };
    record_operation(d_.l.name, outputs, inputs, backward, forward_mode);
    return y;
  }

  Tracer& outer_;
  Derivative d_;
  Tensors carries_, entries_;
  Recorded step_;
  std::optional<Recorded> condition_;
  std::vector<std::shared_ptr<detail::VariableCell>> cells_;   // that a step assigns: more carries
  Operands others_;
};

}   // namespace

std::vector<Tensor> Tracer::loop(const Loop& l, std::span<const Tensor> operands) {
  return LoopPoint(*this, l, operands).run();
}

}   // namespace tapedeck::compiled
