// Loops of recorded functions. In: the function of a step. Out: the results of all steps, recorded as one op
// whose attributes hold the program of a step.
//
// As in branch.cpp, the step is recorded by itself, what it captures becomes an operand, and a variable that
// it assigns becomes one more carry. The gradient is a loop in the other direction: its carries are the
// cotangents of the carries, and the sums of the gradients of what is captured. What it reads of a step is an
// output of the forward loop; operands that are the same in every step are not. If the number of steps is not
// known before, or with snapshots, the steps run again for the gradient instead (loop_program.h). Further
// derivatives, and tangents, are loops of functions that compute derivatives, recorded like any other.
#include <algorithm>

#include "compile/fuse/effects.h"
#include "compile/record/derivatives.h"
#include "compile/record/loop_program.h"
#include "core/format.h"
#include "core/storage.h"
#include "op/recorder.h"
#include "tape/record_operation.h"
#include "tape/tape.h"
#include "tape/variable.h"
#include "tapedeck/control.h"
#include "tapedeck/forward_accumulator.h"
#include "tapedeck/operators.h"
#include "tapedeck/ops/array.h"

namespace tapedeck::compiled {
namespace {

bool varies(const Spec& s) { return is_trainable(s.dtype); }
std::vector<std::size_t> varying(std::span<const Spec> specs) {
  std::vector<std::size_t> all;
  for (std::size_t k = 0; k < specs.size(); ++k)
    if (varies(specs[k])) all.push_back(k);
  return all;
}
template <class T> void append(std::vector<T>& all, std::span<const T> more) {
  all.insert(all.end(), more.begin(), more.end());
}

// Calls a loop, in a recording or not.
Tensors call(const Trace::Loop& l, std::span<const Tensor> operands) {
  if (Trace* const trace = recording()) return trace->loop(l, operands);
  const auto carries = static_cast<std::ptrdiff_t>(l.carries);
  Tensors init(operands.begin(), operands.begin() + carries), xs(operands.begin() + carries, operands.end());
  if (!l.condition) return detail::scan(l.step, init, xs, {.length = l.steps, .reverse = l.reverse});
  return detail::while_loop(
      [&](std::span<const Tensor> x) { return bool(Condition(l.condition(x)[0], l.name)); }, {}, l.step,
      std::move(init), {.maximum_iterations = l.steps});
}

// f, which runs again with all that it computes.
Trace::Branch repeated(const Trace::Branch& f) { return Tracer::repeated(f, Tracer::Repeats::all); }

// A loop, and what its derivatives are taken of.
struct Derivative {
  Trace::Loop l;
  std::vector<Spec> carries, entries, outputs;   // of a step
  CapturedSources captured = {};
  std::vector<bool> used = {};        // by carry and output: whether it has a cotangent
  std::vector<bool> connected = {};   // by captured source: whether a step depends on it

  std::size_t operands() const { return carries.size() + entries.size(); }

  // in: the operands of a step; the cotangents of the carries and outputs that vary; the sums so far of the
  // gradients of what is captured. Returns the results of the step; the gradients of the carries and entries
  // that vary; the sums. Gradients without a path are zeros, and true in `no_path`, if it is given.
  Tensors with_gradients(const Trace::Branch& step, std::span<const Tensor> in,
                         std::vector<bool>* no_path = nullptr) const {
    Differentiated d{
        .operands = operands(), .wanted = varying(carries), .captured = captured, .trainable = used};
    for (const std::size_t k : varying(entries))
      d.wanted.push_back(carries.size() + k);
    Tensors given(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(operands())), y;
    std::size_t next = operands();
    for (std::size_t k = 0; k < used.size(); ++k) {
      if (used[k]) given.push_back(in[next]);
      if (used[k] || (k < carries.size() && varies(carries[k]))) ++next;
    }
    append(given, in.subspan(next));
    std::vector<Gradient> found = d.gradients(step, given, UnconnectedGradients::none, y);
    if (no_path) no_path->clear();
    for (std::size_t k = 0; k < found.size(); ++k) {
      const Tensor& like = in[k < d.wanted.size() ? d.wanted[k] : in.size() - found.size() + k];   // a sum
      if (no_path) no_path->push_back(!found[k].defined());
      y.push_back(found[k].defined() ? std::move(found[k]).dense() : zeros(like.shape(), like.dtype()));
    }
    return y;
  }

  // The cotangents of the operands that vary, and of what is captured, by a loop of gradients. dy: those of
  // the carries that vary, and of the outputs that are used.
  std::vector<Gradient> gradients(std::span<const Tensor> x, std::span<const Tensor> dy) const {
    captured.require_current(l.name);
    const std::vector<std::size_t> vc = varying(carries);
    // A loop for the carries before each step.
    Trace::Loop again{.name = l.name,
                      .steps = l.steps,
                      .condition = {},
                      .step =
                          [d = *this, step = repeated(l.step)](std::span<const Tensor> in) {
                            Tensors y = step(in);
                            y.resize(d.carries.size());
                            append(y, in.first(d.carries.size()));
                            return y;
                          },
                      .carries = carries.size(),
                      .reverse = l.reverse,
                      .assigns = false};
    const Tensors states = call(again, x);
    Trace::Loop back{
        .name = l.name,
        .steps = l.steps,
        .condition = {},
        .step =
            [d = *this, step = repeated(l.step), nc = vc.size()](std::span<const Tensor> in) {
              // in: cotangents, sums; then states, entries, cotangents of outputs
              const std::size_t sums = d.captured.size();
              const std::span<const Tensor> entries = in.subspan(nc + sums);
              Tensors x(entries.begin(), entries.begin() + static_cast<std::ptrdiff_t>(d.operands()));
              append(x, in.first(nc));
              append(x, entries.subspan(d.operands()));
              append(x, in.subspan(nc, sums));
              const Tensors all = d.with_gradients(step, x);
              const std::span<const Tensor> dx = std::span(all).subspan(d.carries.size() + d.outputs.size());
              Tensors y(dx.begin(), dx.begin() + static_cast<std::ptrdiff_t>(nc));
              append(y, dx.last(sums));
              append(y, dx.subspan(nc, dx.size() - nc - sums));
              return y;
            },
        .carries = vc.size() + captured.size(),
        .reverse = !l.reverse,
        .assigns = false};
    const Tensors given = with_sums(dy);
    const std::span<const Tensor> carried = std::span(given).first(vc.size() + captured.size());
    Tensors in(carried.begin(), carried.end());
    append(in, std::span(states).subspan(carries.size()));
    append(in, x.subspan(carries.size()));
    append(in, dy.subspan(vc.size()));
    return in_order(call(back, in));
  }

  // Cotangents of carries and outputs with the sums before the first step between them: -0 + x is x, whatever
  // the sign of a zero.
  Tensors with_sums(std::span<const Tensor> dy) const {
    const std::size_t nc = varying(carries).size();
    Tensors all(dy.begin(), dy.begin() + static_cast<std::ptrdiff_t>(nc));
    for (const Tensor& t : captured.values())
      all.push_back(-zeros(t.shape(), t.dtype()));
    append(all, dy.subspan(nc));
    return all;
  }

  // dx: the gradients of carries, captured sources, entries, as a backward loop returns them. Returns those
  // of carries, entries, captured sources.
  std::vector<Gradient> in_order(Tensors dx) const {
    const auto sums = dx.begin() + static_cast<std::ptrdiff_t>(varying(carries).size());
    std::rotate(sums, sums + static_cast<std::ptrdiff_t>(captured.size()), dx.end());
    std::vector<Gradient> all(dx.begin(), dx.end());
    for (std::size_t k = 0; k < captured.size(); ++k)
      if (!connected[k]) all[dx.size() - captured.size() + k] = {};
    return all;
  }

  // The tangents of the results, by a loop of tangents; undefined for those that do not vary. given: the
  // tangents of the operands that vary and of what is captured; undefined for those without one.
  Tensors tangents(std::span<const Tensor> x, std::span<const Tensor> given) const {
    captured.require_current(l.name);
    const std::vector<std::size_t> vc = varying(carries), ve = varying(entries);
    Tensors in(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(carries.size()));
    for (std::size_t k = 0; k < vc.size(); ++k)
      in.push_back(given[k].defined() ? given[k] : zeros(carries[vc[k]].shape, carries[vc[k]].dtype));
    append(in, x.subspan(carries.size()));
    std::vector<std::size_t> moving;   // the entries with tangents
    for (std::size_t k = 0; k < ve.size(); ++k)
      if (given[vc.size() + k].defined()) moving.push_back(ve[k]), in.push_back(given[vc.size() + k]);
    const std::span<const Tensor> of_uses = given.subspan(vc.size() + ve.size());
    const auto step = [d = *this, f = Tracer::repeated(l.step, Tracer::Repeats::calls), vc, moving,
                       uses = Tensors(of_uses.begin(), of_uses.end())](std::span<const Tensor> all) {
      const std::size_t nc = d.carries.size();
      Tensors own(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(nc)), known;
      append(own, all.subspan(nc + vc.size(), d.entries.size()));
      std::vector<Source> primals;
      for (std::size_t k = 0; k < vc.size(); ++k)
        primals.emplace_back(own[vc[k]]), known.push_back(all[nc + k]);
      for (std::size_t k = 0; k < moving.size(); ++k)
        primals.emplace_back(own[nc + moving[k]]),
            known.push_back(all[nc + vc.size() + d.entries.size() + k]);
      for (std::size_t k = 0; k < uses.size(); ++k)
        if (uses[k].defined()) primals.push_back(d.captured[k]), known.push_back(uses[k]);
      const ForwardAccumulator forward(Sources(primals), known);
      const Tensors y = f(own);
      const auto jvp = [&](const Tensor& t) { return forward.jvp(t, UnconnectedGradients::zero).dense(); };
      Tensors result(y.begin(), y.begin() + static_cast<std::ptrdiff_t>(nc));
      for (const std::size_t k : vc)
        result.push_back(jvp(y[k]));
      for (std::size_t k = nc; k < y.size(); ++k)
        if (varies(y[k].spec())) result.push_back(jvp(y[k]));
      return result;
    };
    Trace::Loop loop = l;
    loop.step = step, loop.carries = carries.size() + vc.size(), loop.assigns = false;
    if (l.condition)
      loop.condition = [f = repeated(l.condition), n = carries.size()](std::span<const Tensor> all) {
        return f(all.first(n));
      };
    const Tensors found = call(loop, in);
    Tensors y(carries.size() + outputs.size());
    std::size_t next = carries.size();
    for (const std::size_t k : vc)
      y[k] = found[next++];
    for (const std::size_t k : varying(outputs))
      y[carries.size() + k] = found[next++];
    return y;
  }
};

// The program of a backward step.
struct BackwardStep {
  Program program;
  std::vector<ValueId> cotangents;   // of the carries and outputs that vary; then the sums
  std::size_t carries, sums;
  std::vector<bool> no_path;   // by carry: whether its cotangent is zeros, since the step does not use it

  // The program for cotangents of which some are none in all steps. missing: by cotangent; those that another
  // step adds to are not missing any more.
  Reduced without(std::vector<bool>& missing) const {
    missing.resize(cotangents.size());
    for (bool changes = true;;) {
      Reduced r = without_cotangents(program, cotangents, missing);
      changes = false;
      for (std::size_t k = 0; k < carries; ++k)
        if (missing[k] && !r.is_zero[k] && !no_path[k]) missing[k] = false, changes = true;
      if (!changes) return r;
    }
  }
  // By sum: whether a step adds to it.
  std::vector<bool> connected(const Program& p) const {
    std::vector<bool> all;
    for (std::size_t k = 0; k < sums; ++k)
      all.push_back(p.outputs()[carries + k] != p.all_of(cotangents[cotangents.size() - sums + k]));
    return all;
  }
};

// Records gradients that have no derivatives themselves.
void record_without_derivative(const std::string& loop, std::span<const Gradient> dx, const Tensors& inputs,
                               const Tensors& dy) {
  Tensors from = inputs, to;
  append(from, std::span<const Tensor>(dy));
  for (const Gradient& g : dx)
    if (g.defined()) to.push_back(g.tensor());
  const auto refuse = [loop] {
    throw_error<TraceError>(
        "compile: a derivative of the gradient of {}, whose number of steps is not known when the function "
        "is recorded; use scan or fori_loop, or take the first derivative in forward mode",
        loop);
  };
  record_operation_accepting_none(
      loop, to, from,
      [refuse](std::span<const Tensor>) -> std::vector<Gradient> {
        refuse();
        return {};
      },
      [refuse](std::span<const Tensor>) -> Tensors {
        refuse();
        return {};
      });
}

// A loop while it is recorded.
class LoopPoint {
 public:
  LoopPoint(Tracer& outer, const Trace::Loop& l, std::span<const Tensor> operands) : outer_(outer) {
    d_.l = l;
    for (std::size_t i = 0; i < operands.size(); ++i)
      if (i < l.carries)
        d_.carries.push_back(operands[i].spec());
      else
        d_.entries.push_back(entry_of(operands[i].spec()));
    record_step(operands);
    for (std::size_t k = l.carries; k < step_.results.size(); ++k)
      d_.outputs.push_back(step_.results[k].spec);
    for (const Access& a : step_.results)
      d_.used.push_back(varies(a.spec));
    if (l.condition)
      condition_ = record(
          outer, d_.carries, l.condition,
          {.no_actions = "is in the condition of a loop; take it in the step", .uses_variables = step_.acts});
    if (condition_ && !condition_->stores.empty())
      throw_error<TraceError>("compile: the condition of {} assigns {}; assign it in the step", l.name,
                              detail::described(*condition_->stores[0].first));
    d_.captured.find({&step_, 1}, cells_, others_);
  }
  Tensors run() {
    bool differentiates = d_.captured.size() > 0;
    for (const Tensors* list : {&carries_, &entries_})
      for (const Tensor& t : *list)
        differentiates |= thread_state.innermost && followed(t);
    if (differentiates) return finish(run_recorded());
    LoopProgram l = program(step_, std::move(step_.program), d_.outputs.size(), {});
    add_condition(l);
    const Tensors x = operands();
    const auto y = [&] { return run_loop(x, std::move(l)); };
    return finish(step_.acts ? outer_.act_by(y) : y());
  }

 private:
  void record_step(std::span<const Tensor> operands) {
    for (std::size_t i = 0; i < operands.size(); ++i)
      (i < d_.carries.size() ? carries_ : entries_).push_back(operands[i]);
    InnerOptions options{.no_actions = no_actions_now(d_.l.assigns)};
    step_ = record(outer_, step_specs(), d_.l.step, options);
    options.uses_variables = step_.acts && outer_.uses_variables();
    if (options.uses_variables) {
      step_ = record(outer_, step_specs(), d_.l.step, options);
      step_.stores.clear();   // the program itself has them
    }
    for (const auto& [cell, value] : step_.stores)
      cells_.push_back(cell);
  }
  std::vector<Spec> step_specs() const {
    std::vector<Spec> all = d_.carries;
    append(all, std::span<const Spec>(d_.entries));
    return all;
  }
  int first_other() const { return static_cast<int>(all_carries() + entries_.size()); }
  std::size_t all_carries() const { return carries_.size() + cells_.size(); }
  bool runs_again() const { return d_.l.condition || d_.l.snapshots > 0; }

  // The operand that an argument is: given ones, then captures.
  int operand_of(const Tracer::Capture& capture) {
    if (const auto at = std::find(cells_.begin(), cells_.end(), capture.cell);
        capture.cell && at != cells_.end())
      return static_cast<int>(carries_.size()) + static_cast<int>(at - cells_.begin());
    return first_other() + others_.of(capture);
  }
  int operand_of(const Tensor& key) { return first_other() + others_.of(key); }
  std::shared_ptr<const Callee> callee(Program p, std::size_t entries, std::size_t unread,
                                       const Recorded& r) {
    p.forget_constants();
    const auto made = std::make_shared<Callee>(std::move(p));
    std::vector<int> given;
    for (std::size_t i = 0; i < carries_.size(); ++i)
      given.push_back(static_cast<int>(i));
    for (std::size_t i = 0; i < entries; ++i)
      given.push_back(static_cast<int>(all_carries() + i));
    given.resize(given.size() + unread, kNone);
    set_operands(*made, std::move(given), r, [&](const auto& x) { return operand_of(x); });
    return made;
  }

  // The program of the loop, whose step is p, a program of r or its first part. It has the first `outputs`
  // outputs, and those in `kept`. unread: the number of arguments that follow the operands of a step.
  LoopProgram program(const Recorded& r, Program p, std::size_t outputs, std::span<const Access> kept,
                      std::size_t unread = 0) {
    LoopProgram l{.condition = {},
                  .step = {},
                  .steps = d_.l.steps,
                  .carries = {},
                  .outputs = {},
                  .entries = entries_.size(),
                  .reverse = d_.l.reverse};
    const auto add = [&](const Access& a, std::vector<Spec>& specs) {
      p.add_output(a), specs.push_back(a.spec);
    };
    for (std::size_t k = 0; k < carries_.size(); ++k)
      add(r.results[k], l.carries);
    for (const auto& cell : cells_) {
      const auto at =
          std::find_if(r.stores.begin(), r.stores.end(), [&](const auto& s) { return s.first == cell; });
      if (at == r.stores.end())
        throw_error<TraceError>("compile: the step of {} assigns {} in one run and not in another", d_.l.name,
                                detail::described(*cell));
      add(at->second, l.carries);
    }
    for (std::size_t k = 0; k < outputs; ++k)
      add(r.results[carries_.size() + k], l.outputs);
    for (const Access& a : kept)
      add(a, l.outputs);
    l.step = callee(std::move(p), entries_.size(), unread, r);
    return l;
  }
  void add_condition(LoopProgram& l) {
    if (!condition_) return;
    Program p = condition_->program;
    p.add_output(condition_->results.at(0));
    l.condition = callee(std::move(p), 0, 0, *condition_);
  }
  // The operands of the op. To be called when all programs are made.
  Tensors operands() {
    Tensors all = carries_;
    for (const auto& cell : cells_)
      all.push_back(others_.value_of(cell));
    append(all, std::span<const Tensor>(entries_));
    append(all, std::span<const Tensor>(others_.list()));
    return all;
  }

  // Assigns variables, and returns the results of the loop itself.
  Tensors finish(Tensors y) {
    for (std::size_t k = 0; d_.l.assigns && k < cells_.size(); ++k)
      Variable(cells_[k]).assign(y[carries_.size() + k]);
    y.erase(y.begin() + static_cast<std::ptrdiff_t>(carries_.size()),
            y.begin() + static_cast<std::ptrdiff_t>(all_carries()));
    y.resize(carries_.size() + d_.outputs.size());
    return y;
  }

  struct GradientProgram {
    LoopGradient g;
    Recorded r;      // of a step with its gradient
    Program first;   // the part that does not depend on cotangents
    std::vector<Access> kept;
    BackwardStep step;
  };

  GradientProgram make_gradient() {
    const std::vector<std::size_t> vc = varying(d_.carries), ve = varying(d_.entries);
    std::vector<std::size_t> vo;   // the outputs that are used
    for (std::size_t k = 0; k < d_.outputs.size(); ++k)
      if (d_.used[carries_.size() + k]) vo.push_back(k);
    // The function that is recorded takes the operands of a step, cotangents, and sums.
    std::vector<Spec> specs = step_specs();
    const std::size_t own = specs.size(), first_sum = own + vc.size() + vo.size();
    for (const std::size_t k : vc)
      specs.push_back(d_.carries[k]);
    for (const std::size_t k : vo)
      specs.push_back(d_.outputs[k]);
    const Tensors& uses = d_.captured.values();
    for (const Tensor& t : uses)
      specs.push_back(t.spec());
    const Trace::Branch step_again = runs_again() ? repeated(d_.l.step) : d_.l.step;
    std::vector<bool> no_path;
    Recorded r = record(outer_, specs, [&](std::span<const Tensor> in) {
      return d_.with_gradients(step_again, in, &no_path);
    });

    const std::size_t results = carries_.size() + d_.outputs.size();
    const std::span<const Access> gradients = std::span(r.results).subspan(results);
    const std::vector<ValueId> arguments = r.program.arguments();
    const std::span<const ValueId> later = std::span(arguments).subspan(own, specs.size() - own);
    Parts parts = cut(r, later, gradients);
    // The outputs of a backward step: cotangents of carries, sums, cotangents of entries.
    Program& back = parts.second;
    std::vector<Access> ordered(gradients.begin(),
                                gradients.begin() + static_cast<std::ptrdiff_t>(vc.size()));
    append(ordered, gradients.last(uses.size()));
    append(ordered, gradients.subspan(vc.size(), ve.size()));
    for (const Access& a : ordered)
      back.add_output(a);
    back.forget_constants();
    const IdVector<ValueId, bool> read = back.read();

    // What each step keeps: its carries that the gradient reads, then computed values.
    std::vector<Access> kept;
    std::vector<int> kept_carry(all_carries(), kNone);
    const auto carry_of = [&](std::size_t argument) {
      const int place = argument < carries_.size() ? static_cast<int>(argument)
                        : argument < specs.size()  ? kNone
                                                   : operand_of(r.captures[argument - specs.size()]);
      return place < static_cast<int>(all_carries()) ? place : kNone;
    };
    for (std::size_t i = 0; i < arguments.size(); ++i)
      if (const int carry = carry_of(i); carry != kNone && read[arguments[i]]) {
        int& place = kept_carry[static_cast<std::size_t>(carry)];
        if (place == kNone)
          place = static_cast<int>(kept.size()), kept.push_back(parts.first.all_of(arguments[i]));
      }
    const std::size_t first_value = kept.size();
    for (const ValueId v : parts.kept)
      kept.push_back(parts.first.all_of(v));

    // The operands of a backward step. Carries: cotangents of carries, sums. Entries: kept values, entries of
    // the forward loop that it reads, cotangents of outputs.
    LoopGradient g;
    g.sums = uses.size();
    const std::size_t carries = vc.size() + uses.size();
    std::vector<int> place_of_entry(entries_.size(), kNone);
    for (std::size_t k = 0; k < entries_.size(); ++k)
      if (read[arguments[carries_.size() + k]]) {
        place_of_entry[k] = static_cast<int>(kept.size() + g.entries.size());
        g.entries.push_back(static_cast<int>(all_carries() + k));
      }
    const std::size_t first_cotangent = kept.size() + g.entries.size(), entries = first_cotangent + vo.size();
    std::vector<int> places;
    for (std::size_t i = 0; i < back.arguments().size(); ++i) {
      const auto entry = [&](std::size_t k) { places.push_back(static_cast<int>(carries + k)); };
      if (!read[back.arguments()[i]])
        places.push_back(kNone);
      else if (i >= arguments.size())
        entry(first_value + i - arguments.size());
      else if (const int carry = carry_of(i); carry != kNone)
        entry(static_cast<std::size_t>(kept_carry[static_cast<std::size_t>(carry)]));
      else if (i < own)
        entry(static_cast<std::size_t>(place_of_entry[i - carries_.size()]));
      else if (i < own + vc.size())
        places.push_back(static_cast<int>(i - own));
      else if (i < first_sum)
        entry(first_cotangent + i - own - vc.size());
      else if (i < specs.size())
        places.push_back(static_cast<int>(i - first_sum + vc.size()));
      else {
        places.push_back(static_cast<int>(carries + entries + g.others.size()));
        g.others.push_back(operand_of(r.captures[i - specs.size()]));
      }
    }
    g.backward = {.condition = {},
                  .step = {},
                  .steps = d_.l.steps,
                  .carries = {},
                  .outputs = {},
                  .entries = entries,
                  .reverse = !d_.l.reverse};
    for (std::size_t k = 0; k < ordered.size(); ++k)
      (k < carries ? g.backward.carries : g.backward.outputs).push_back(ordered[k].spec);
    BackwardStep step{back, {later.begin(), later.end()}, vc.size(), uses.size(), std::move(no_path)};
    d_.connected = step.connected(back);
    const auto made = std::make_shared<Callee>(std::move(back));
    made->operands = std::move(places);
    for (const Tensor& key : r.keys) {
      made->keys.push_back(static_cast<int>(carries + entries + g.others.size()));
      g.others.push_back(operand_of(key));
    }
    g.backward.step = made;

    return {std::move(g), std::move(r), std::move(parts.first), std::move(kept), std::move(step)};
  }
  // The number of arguments of a step with its gradient that are not those of a step.
  std::size_t unread(const GradientProgram& m) const { return m.r.arguments - step_.arguments; }
  void run_steps_again(GradientProgram& m) {
    m.g.name = d_.l.name, m.g.snapshots = d_.l.snapshots;
    m.g.forward = program(m.r, std::move(m.first), 0, m.kept, unread(m));
    if (acts(step_.program)) {
      const Recorded again = record(outer_, step_specs(), repeated(d_.l.step));
      m.g.step = program(again, again.program, 0, {});
    } else {
      m.g.step = program(step_, step_.program, 0, {});
    }
  }

  Tensors run_recorded() {
    GradientProgram m = make_gradient();
    LoopProgram forward;
    if (runs_again()) {
      run_steps_again(m);
      forward = program(step_, std::move(step_.program), d_.outputs.size(), {});
      add_condition(forward);
    } else {
      forward = program(m.r, std::move(m.first), d_.outputs.size(), m.kept, unread(m));
    }
    const Tensors x = operands();
    Tensors y = run_loop(x, std::move(forward));
    record_on_tapes(x, y, m);
    return y;
  }

  // Recorders see the operands that vary, and what is captured.
  void record_on_tapes(const Tensors& x, const Tensors& y, GradientProgram& m) {
    LoopGradient& g = m.g;
    Tensors inputs, own = carries_;
    append(own, std::span<const Tensor>(entries_));
    for (const std::size_t k : varying(d_.carries))
      inputs.push_back(carries_[k]);
    for (const std::size_t k : varying(d_.entries))
      inputs.push_back(entries_[k]);
    append(inputs, std::span<const Tensor>(d_.captured.values()));
    Tensors results(y.begin(), y.begin() + static_cast<std::ptrdiff_t>(carries_.size()));
    append(results, std::span(y).subspan(all_carries(), d_.outputs.size()));

    Tensors read;   // by the backward loop, if the values of all steps are kept
    if (!runs_again()) {
      const std::span<const Access> outputs =
          std::span(m.r.results).subspan(carries_.size(), d_.outputs.size());
      for (std::size_t k = 0; k < m.kept.size(); ++k) {   // those that are outputs are not kept twice
        const auto output =
            static_cast<std::size_t>(std::find(outputs.begin(), outputs.end(), m.kept[k]) - outputs.begin());
        read.push_back(y[all_carries() + (output < outputs.size() ? output : outputs.size() + k)]);
      }
      for (const int i : g.entries)
        read.push_back(x[static_cast<std::size_t>(i)]);
    }
    Tensors others;
    for (const int i : g.others)
      others.push_back(x[static_cast<std::size_t>(i)]);
    const Tensor steps = d_.l.condition ? y.back() : tensor(d_.l.steps);
    const auto shared = std::make_shared<const LoopGradient>(std::move(g));
    const auto first_order = [=, again = runs_again(), all = runs_again() ? x : Tensors()](
                                 const Derivative& d, const Tensors& dy, const LoopGradient& gradient) {
      Tensors in = d.with_sums(dy);
      if (again) return d.in_order(run_loop_gradient(steps, all, in, gradient));
      const auto cotangents =
          in.begin() + static_cast<std::ptrdiff_t>(varying(d.carries).size() + d.captured.size());
      in.insert(cotangents, read.begin(), read.end());
      append(in, std::span<const Tensor>(others));
      return d.in_order(run_loop(in, gradient.backward));
    };
    const auto backward = [=, d = d_, step = std::make_shared<const BackwardStep>(std::move(m.step))](
                              std::span<const Tensor> all) {
      Tensors dy;
      std::vector<bool> missing;
      for (std::size_t k = 0; k < all.size(); ++k) {
        if (!d.used[k]) continue;
        const bool is_carry = k < d.carries.size();
        const Spec spec = is_carry ? d.carries[k] : stacked(d.outputs[k - d.carries.size()], d.l.steps);
        missing.push_back(!all[k].defined());
        dy.push_back(all[k].defined() ? all[k] : zeros(spec.shape, spec.dtype));
      }
      const auto is_followed = [](const Tensor& t) { return followed(t); };
      const bool differentiates =
          thread_state.innermost && (std::any_of(dy.begin(), dy.end(), is_followed) ||
                                     std::any_of(inputs.begin(), inputs.end(), is_followed));
      const bool is_whole = std::find(missing.begin(), missing.end(), true) == missing.end();
      const bool has_derivative = differentiates && !d.l.condition;
      const auto gradients = [&](const Derivative& of, const LoopGradient& gradient) {
        std::vector<Gradient> dx = first_order(of, dy, gradient);
        if (differentiates) record_without_derivative(d.l.name, dx, inputs, dy);
        return dx;
      };
      if (is_whole) return has_derivative ? d.gradients(own, dy) : gradients(d, *shared);
      Reduced reduced = step->without(missing);
      Derivative some = d;
      if (has_derivative) {
        Tensors given;
        for (std::size_t k = 0, i = 0; k < all.size(); ++k) {
          if (!d.used[k]) continue;
          some.used[k] = !missing[i];
          if (k < d.carries.size() || some.used[k]) given.push_back(dy[i]);
          ++i;
        }
        return some.gradients(own, given);
      }
      some.connected = step->connected(reduced.program);
      LoopGradient gradient = *shared;
      gradient.backward.step = callee_like(*shared->backward.step, std::move(reduced.program));
      return gradients(some, gradient);
    };
    record_operation_accepting_none(
        d_.l.name, results, inputs, backward,
        [own, d = d_](std::span<const Tensor> given) { return d.tangents(own, given); });
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
  Loop own = l;
  own.condition = repeated(l.condition, repeats_), own.step = repeated(l.step, repeats_);
  return LoopPoint(*this, own, operands).run();
}

}   // namespace tapedeck::compiled
