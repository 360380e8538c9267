// Branches of recorded functions. In: functions of tensors, and the index of one of them, which a replay
// computes. Out: the results of that function, recorded as one op whose attributes hold a program for each
// function.
//
// Every function is recorded by itself, in an inner recording (Tracer). What it captures becomes an operand
// of the op; the value that it gives a variable is a result of the op, which is then assigned. The derivative
// of a function is a function of its operands and of the cotangents, recorded like any other. It is then cut
// in two: the nodes that do not depend on the cotangents belong to the function itself, which returns what
// the others read as additional results. So nothing is computed twice, and nothing is kept that no gradient
// reads.
#include <algorithm>
#include <map>

#include "compile/fuse/effects.h"
#include "compile/record/derivatives.h"
#include "core/bytes.h"
#include "core/format.h"
#include "core/host_view.h"
#include "core/storage.h"
#include "kernels/layout/copy.h"
#include "op/recorder.h"
#include "tape/record_operation.h"
#include "tape/variable.h"
#include "tapedeck/control.h"
#include "tapedeck/ops/array.h"
#include "transforms/zero_gradients.h"

namespace tapedeck::compiled {
namespace {

using Function = Trace::Branch;

struct Side {
  std::shared_ptr<const Callee> callee;
  /// By result of the op: the index of the output of the program; kNone if this side has no such result; -2 -
  /// i for operand i.
  std::vector<int> results;
};
class Branches final : public CalledPrograms {
 public:
  Branches(std::vector<Side> sides, std::vector<Spec> results)
      : sides(std::move(sides)), results(std::move(results)) {}
  std::unique_ptr<PreparedCall> prepare() const override;
  std::int64_t arena_bytes() const override {
    std::int64_t most = 0;
    for (const Side& side : sides)
      most = std::max(most, side.callee->plan.arena_bytes + side.callee->plan.scratch_bytes);
    return most;
  }

  const std::vector<Side> sides;
  const std::vector<Spec> results;
};
const Branches& branches(const Call& c) {
  return static_cast<const Branches&>(*c.attrs<CallAttrs>().programs);
}

std::size_t selected(const Tensor& index, std::size_t sides) {
  if (index.dtype() == DType::boolean) return *elements<std::uint8_t>(index) ? 0 : 1;
  const Untraced untraced;
  return BranchIndex(index).among(sides);
}

class PreparedBranch final : public PreparedCall {
 public:
  explicit PreparedBranch(const Branches& all) : all_(all), lists_(all.sides.size()) {
    for (std::size_t i = 0; i < lists_.size(); ++i) {
      const Callee& callee = *all.sides[i].callee;
      lists_[i].x.resize(callee.operands.size());
      lists_[i].keys.resize(callee.keys.size());
      lists_[i].out.resize(callee.plan.program.outputs().size());
    }
  }

  void run(Refs x, std::span<Tensor> y) override {
    const Untraced untraced;   // the index is an operand, and its numbers are those of this call
    const std::size_t number = selected(x[0], lists_.size());
    const Side& side = all_.sides[number];
    const Callee& callee = *side.callee;
    Lists& lists = lists_[number];
    for (std::size_t i = 0; i < lists.x.size(); ++i)
      if (const int from = callee.operands[i]; from != kNone) lists.x[i] = ReadOnly(x[1 + from].raw());
    for (std::size_t k = 0; k < y.size(); ++k)
      if (const int from = side.results[k]; from >= 0)
        lists.out[static_cast<std::size_t>(from)] = OutputSlot(y[k]).memory();
      else if (from != kNone)
        copy_elements(x[1 + (-2 - from)], y[k]);
    for (std::size_t i = 0; i < lists.keys.size(); ++i)
      lists.keys[i] = key_at(x[1 + callee.keys[i]].raw());
    workspace_.replay(number, callee.plan).run_at(lists.x, lists.keys, lists.out);
  }

 private:
  // The arguments, keys and results of a side.
  struct Lists {
    std::vector<ReadOnly> x;
    std::vector<random::Key> keys;
    std::vector<Writable> out;
  };
  const Branches& all_;
  std::vector<Lists> lists_;
  Workspace workspace_;   // of all sides, of which one runs at a time
};

std::unique_ptr<PreparedCall> Branches::prepare() const { return std::make_unique<PreparedBranch>(*this); }

void run_branch(const Call& c, std::span<Tensor> y) { PreparedBranch(branches(c)).run(c.x, y); }

constexpr Op branch_op(Meaning meaning) {
  return {.name = "branch",
          .doc = "The results of one of several programs.",
          .args = {"index", "operand"},
          .infer = [](const Call& c) { return branches(c).results; },
          .forward = {run_branch, Outputs::fresh, KernelDtypes::all},
          .rule = Rule::none(),
          .meaning = meaning};
}
// kBranchWithEffect: a program of it acts, so that it runs even if nothing reads its results.
constexpr Op kBranch = branch_op(Meaning::other), kBranchWithEffect = branch_op(Meaning::effect);

Tensors run_op(const Tensor& index, const Tensors& operands, std::vector<Side> sides,
               std::vector<Spec> specs) {
  const bool acts = std::any_of(sides.begin(), sides.end(),
                                [](const Side& s) { return compiled::acts(s.callee->plan.program); });
  if (specs.empty() && !acts) return {};
  if (specs.empty()) specs.push_back(kUnread);
  for (Side& s : sides)
    s.results.resize(specs.size(), kNone);
  Tensors x = {index};
  x.insert(x.end(), operands.begin(), operands.end());
  const RecordingScope unrecorded(nullptr);
  const Op& op = acts ? kBranchWithEffect : kBranch;
  return op.run(x, CallAttrs{std::make_shared<const Branches>(std::move(sides), std::move(specs))});
}

// The specs of the results, which all branches share.
std::vector<Spec> specs_of(std::string_view name, std::span<const Recorded> sides) {
  std::vector<Spec> specs;
  for (const Access& a : sides[0].results)
    specs.push_back(a.spec);
  for (const Recorded& r : sides.subspan(1)) {
    if (r.defined.size() != sides[0].defined.size())
      detail::throw_results(name, r.defined.size(), sides[0].defined.size());
    for (std::size_t k = 0; k < r.defined.size(); ++k)
      if (r.defined[k] != sides[0].defined[k])
        throw_error<ArgumentError>("{}: output {} is undefined in one branch only", name, k);
    for (std::size_t k = 0; k < specs.size(); ++k)
      if (r.results[k].spec != specs[k])
        throw_changed(r.results[k].spec, specs[k],
                      fmt::format("{}: output {} is {} in one branch and {} in another", name, k, specs[k],
                                  r.results[k].spec));
  }
  return specs;
}

// The functions of one branch point, with what is needed for their derivatives.
struct Choice : Differentiated {
  std::string name;
  std::vector<Function> functions;
  Tensor index;
  Tensors x;                      // the operands that are arguments of the functions
  std::vector<Spec> specs = {};   // by defined result

  // f(x...) and its gradients, as a function of x... and the cotangents of its trainable results.
  Tensors with_gradients(const Function& f, std::span<const Tensor> in) const {
    Tensors y;
    for (Gradient& g : gradients(f, in, UnconnectedGradients::zero, y))
      y.push_back(std::move(g).dense());
    return y;
  }
  // The gradients alone.
  Function gradient_of(const Function& f) const {
    return [*this, f = Tracer::repeated(f, Tracer::Repeats::all)](std::span<const Tensor> in) {
      Tensors all = with_gradients(f, in);
      return Tensors(all.end() - static_cast<std::ptrdiff_t>(sources()), all.end());
    };
  }
  // The tangents of the trainable results, as a function of x... and the tangents of the sources in `given`.
  Function tangent_of(const Function& f, std::vector<std::size_t> given) const {
    return [*this, f = Tracer::repeated(f, Tracer::Repeats::calls),
            given = std::move(given)](std::span<const Tensor> in) {
      Tensors all = tangents(f, given, in, UnconnectedGradients::zero);
      std::erase_if(all, [](const Tensor& t) { return !t.defined(); });
      return all;
    };
  }
};

// Calls one of the functions, which run those of a branch point again, in a recording or not.
Tensors choose(const Choice& c, std::span<const Tensor> x, std::span<const Function> functions) {
  c.captured.require_current(c.name);
  if (thread_state.trace) return thread_state.trace->branch(c.name, c.index, x, functions, false);
  return functions[selected(c.index, functions.size())](x);
}

// The backward pass of a branch point: its programs, and the tensors that they read but for the cotangents.
struct Backward {
  std::vector<Side> sides;
  std::vector<Program> programs = {};                  // of the sides
  std::vector<std::vector<ValueId>> cotangents = {};   // their arguments that are cotangents
  std::vector<Spec> specs;
  Tensors read;   // the operands of the op, of which the last ones, the cotangents, are missing
};

// A branch point while it is recorded.
class BranchPoint {
 public:
  BranchPoint(Tracer& outer, std::string_view name, const Tensor& index, std::span<const Tensor> operands,
              std::span<const Function> functions, bool assigns)
      : outer_(outer),
        c_{{.operands = operands.size()},
           std::string(name),
           {functions.begin(), functions.end()},
           index,
           {operands.begin(), operands.end()}} {
    for (const Tensor& t : c_.x)
      specs_x_.push_back(t.spec());
    record_sides(assigns);
    specs_ = specs_of(name, sides_);
    for (const Spec& s : specs_)
      c_.trainable.push_back(is_trainable(s.dtype));
    c_.specs = specs_;
    for (const Tensor& t : c_.x)
      given_.push_back(operands_.of(t));
    for (const Recorded& r : sides_)
      for (const Tracer::Capture& capture : r.captures)
        operands_.of(capture);
    for (const Recorded& r : sides_)
      for (const auto& [cell, value] : r.stores)
        if (std::find(cells_.begin(), cells_.end(), cell) == cells_.end())
          cells_.push_back(cell), operands_.of(operands_.value_of(cell));
    find_sources();
  }

  Tensors run() {
    if (acts()) return with_undefined(outer_.act_by([&] { return run_alone(); }));
    Tensors y =
        c_.sources() && std::find(c_.trainable.begin(), c_.trainable.end(), true) != c_.trainable.end()
            ? run_recorded()
            : run_alone();
    for (std::size_t k = 0; k < cells_.size(); ++k)
      Variable(cells_[k]).assign(y[specs_.size() + k]);
    return with_undefined(std::move(y));
  }

 private:
  // If one of the functions takes actions, the programs of all use variables: a variable that only one of
  // them changes keeps its value in the others.
  void record_sides(bool assigns) {
    InnerOptions options{.no_actions = no_actions_now(assigns)};
    const auto record_all = [&] {
      sides_.clear();
      for (const Function& f : c_.functions)
        sides_.push_back(record(outer_, specs_x_, f, options));
    };
    record_all();
    options.uses_variables = acts() && outer_.uses_variables();
    if (options.uses_variables) record_all();
    for (Recorded& r : sides_)
      if (!assigns || options.uses_variables) r.stores.clear();
  }
  bool acts() const {
    return std::any_of(sides_.begin(), sides_.end(), [](const Recorded& r) { return r.acts; });
  }
  Tensors with_undefined(Tensors y) const {
    y.resize(specs_.size());
    Tensors all;
    for (std::size_t k = 0, next = 0; k < sides_[0].defined.size(); ++k)
      all.push_back(sides_[0].defined[k] ? std::move(y[next++]) : Tensor());
    return all;
  }
  // What recorders follow: operands, captured tensors, and variables.
  void find_sources() {
    if (!thread_state.innermost) return;
    for (std::size_t i = 0; i < c_.x.size(); ++i)
      if (followed(c_.x[i])) c_.wanted.push_back(i), inputs_.push_back(c_.x[i]);
    c_.captured.find(sides_, cells_, operands_);
    inputs_.insert(inputs_.end(), c_.captured.values().begin(), c_.captured.values().end());
  }
  void set_operands_of(Callee& callee, std::vector<int> given, const Recorded& r) {
    set_operands(callee, std::move(given), r, [&](const auto& x) { return operands_.of(x); });
  }

  // Adds the results and the assigned values to the outputs of a program. Returns the results of the op.
  std::vector<int> add_outputs(Program& p, std::span<const Access> results, const Recorded& r) {
    std::vector<int> places;
    int next = 0;
    for (const Access& a : results)
      p.add_output(a), places.push_back(next++);
    for (const auto& cell : cells_) {
      const auto at =
          std::find_if(r.stores.begin(), r.stores.end(), [&](const auto& s) { return s.first == cell; });
      if (at == r.stores.end())
        places.push_back(-2 - operands_.of(operands_.value_of(cell)));
      else
        p.add_output(at->second), places.push_back(next++);
    }
    return places;
  }
  std::vector<Spec> specs_with_stores() const {
    std::vector<Spec> all = specs_;
    for (const auto& cell : cells_)
      all.push_back(cell->value.spec());
    return all;
  }

  Tensors run_alone() {
    std::vector<Side> sides;
    for (Recorded& r : sides_) {
      std::vector<int> results = add_outputs(r.program, r.results, r);
      r.program.forget_constants();
      const auto callee = std::make_shared<Callee>(std::move(r.program));
      set_operands_of(*callee, given_, r);
      sides.push_back({callee, std::move(results)});
    }
    return run_op(c_.index, operands_.list(), std::move(sides), specs_with_stores());
  }

  Tensors run_recorded() {
    std::vector<Spec> specs = specs_x_;   // of the operands and the cotangents
    for (std::size_t k = 0; k < specs_.size(); ++k)
      if (c_.trainable[k]) specs.push_back(specs_[k]);
    std::vector<Side> forward;
    std::vector<Spec> forward_specs = specs_with_stores();
    struct Half {
      Parts parts;
      Recorded r;
      std::vector<std::size_t> kept;   // the results of the op that its kept values are
    };
    const std::size_t first_kept = forward_specs.size();
    std::vector<Half> halves;
    for (const Function& f : c_.functions) {
      Recorded r =
          record(outer_, specs, [&](std::span<const Tensor> in) { return c_.with_gradients(f, in); });
      const std::span<const Access> all = r.results;
      std::vector<ValueId> dy(r.program.arguments().begin() + static_cast<std::ptrdiff_t>(specs_x_.size()),
                              r.program.arguments().begin() + static_cast<std::ptrdiff_t>(specs.size()));
      Parts parts = cut(r, dy, all.subspan(specs_.size()));
      std::vector<int> results = add_outputs(parts.first, all.first(specs_.size()), r);
      results.resize(forward_specs.size(), kNone);   // what other sides keep
      int next = static_cast<int>(parts.first.outputs().size());
      std::vector<std::size_t> kept;
      for (const ValueId v : parts.kept) {
        parts.first.add_output(parts.first.all_of(v));
        // One branch runs, so branches share results of equal specs.
        std::size_t k = first_kept;
        while (k < forward_specs.size() && (forward_specs[k] != parts.first[v].spec || results[k] != kNone))
          ++k;
        if (k == forward_specs.size()) forward_specs.push_back(parts.first[v].spec), results.push_back(kNone);
        results[k] = next++;
        kept.push_back(k);
      }
      Program p = parts.first;
      p.forget_constants();
      const auto callee = std::make_shared<Callee>(std::move(p));
      std::vector<int> given = given_;
      given.resize(specs.size(), kNone);
      set_operands_of(*callee, std::move(given), r);
      forward.push_back({callee, std::move(results)});
      halves.push_back({std::move(parts), std::move(r), std::move(kept)});
    }
    for (Side& s : forward)
      s.results.resize(forward_specs.size(), kNone);
    const Tensors operands = operands_.list();
    Tensors y = run_op(c_.index, operands, std::move(forward), forward_specs);

    // The operands of the backward pass: those operands and kept values that it reads, then the cotangents.
    const auto back = std::make_shared<Backward>();
    std::map<std::size_t, int> places;   // of operands and, behind them, of results
    const auto place = [&](std::size_t i) {
      const auto [at, is_new] = places.try_emplace(i, static_cast<int>(back->read.size()));
      if (is_new) back->read.push_back(i < operands.size() ? operands[i] : y[i - operands.size()]);
      return at->second;
    };
    std::vector<std::shared_ptr<Callee>> callees;
    for (Half& h : halves) {
      Program& p = h.parts.second;
      for (const Access& a : std::span<const Access>(h.r.results).subspan(specs_.size()))
        p.add_output(a);
      p.forget_constants();
      const IdVector<ValueId, bool> read = p.read();
      std::vector<int> arguments;   // kCotangent + k: cotangent k
      const std::size_t n = h.r.program.arguments().size();
      for (std::size_t i = 0; i < p.arguments().size(); ++i) {
        if (!read[p.arguments()[i]])
          arguments.push_back(kNone);
        else if (i < specs_x_.size())
          arguments.push_back(place(static_cast<std::size_t>(given_[i])));
        else if (i < specs.size())
          arguments.push_back(kCotangent + static_cast<int>(i - specs_x_.size()));
        else if (i < n)
          arguments.push_back(place(static_cast<std::size_t>(operands_.of(h.r.captures[i - specs.size()]))));
        else
          arguments.push_back(place(operands.size() + h.kept[i - n]));
      }
      const std::vector<ValueId>& all = h.r.program.arguments();
      back->cotangents.emplace_back(all.begin() + static_cast<std::ptrdiff_t>(specs_x_.size()),
                                    all.begin() + static_cast<std::ptrdiff_t>(specs.size()));
      back->programs.push_back(p);
      callees.push_back(std::make_shared<Callee>(std::move(p)));
      callees.back()->operands = std::move(arguments);
      for (const Tensor& key : h.r.keys)
        callees.back()->keys.push_back(place(static_cast<std::size_t>(operands_.of(key))));
    }
    for (const auto& callee : callees) {
      for (int& i : callee->operands)
        if (i >= kCotangent) i = i - kCotangent + static_cast<int>(back->read.size());
      std::vector<int> results(c_.sources());
      for (std::size_t k = 0; k < results.size(); ++k)
        results[k] = static_cast<int>(k);
      back->sides.push_back({callee, std::move(results)});
    }
    for (const Tensor& t : inputs_)
      back->specs.push_back(t.spec());
    y.resize(specs_.size() + cells_.size());
    record_on_tapes(y, back);
    return y;
  }

  void record_on_tapes(std::span<const Tensor> y, const std::shared_ptr<const Backward>& back) {
    const auto c = std::make_shared<const Choice>(c_);
    Tensors results(y.begin(), y.begin() + static_cast<std::ptrdiff_t>(specs_.size()));
    record_operation_accepting_none(
        c->name, results, inputs_,
        [c, back, inputs = inputs_](std::span<const Tensor> dy) {
          Tensors given, all, in = c->x;
          Choice used = *c;
          std::vector<bool> missing;
          for (std::size_t k = 0; k < dy.size(); ++k) {
            used.trainable[k] = c->trainable[k] && dy[k].defined();
            if (used.trainable[k]) given.push_back(dy[k]);
            if (!c->trainable[k]) continue;
            missing.push_back(!dy[k].defined());
            all.push_back(dy[k].defined() ? dy[k] : zeros(c->specs[k].shape, c->specs[k].dtype));
          }
          in.insert(in.end(), given.begin(), given.end());
          const bool differentiates = std::any_of(given.begin(), given.end(), followed) ||
                                      std::any_of(inputs.begin(), inputs.end(), followed);
          Tensors dx;
          if (differentiates) {
            std::vector<Function> gradients;
            for (const Function& f : c->functions)
              gradients.push_back(used.gradient_of(f));
            dx = choose(used, in, gradients);
          } else {
            Tensors read = back->read;
            read.insert(read.end(), all.begin(), all.end());
            std::vector<Side> sides = back->sides;
            for (std::size_t k = 0; given.size() < all.size() && k < sides.size(); ++k)
              sides[k].callee =
                  callee_like(*sides[k].callee,
                              without_cotangents(back->programs[k], back->cotangents[k], missing).program);
            dx = run_op(c->index, read, std::move(sides), back->specs);
          }
          return std::vector<Gradient>(dx.begin(), dx.end());
        },
        [c](std::span<const Tensor> tangents) {
          std::vector<std::size_t> given;
          Tensors in = c->x;
          for (std::size_t s = 0; s < tangents.size(); ++s)
            if (tangents[s].defined()) given.push_back(s), in.push_back(tangents[s]);
          std::vector<Function> functions;
          for (const Function& f : c->functions)
            functions.push_back(c->tangent_of(f, given));
          Tensors some = choose(*c, in, functions), all;
          for (std::size_t k = 0, next = 0; k < c->trainable.size(); ++k)
            all.push_back(c->trainable[k] ? std::move(some[next++]) : Tensor());
          return all;
        });
  }

  static constexpr int kCotangent = 1 << 30;
  Tracer& outer_;
  Choice c_;
  std::vector<Spec> specs_x_, specs_;
  std::vector<Recorded> sides_;
  Operands operands_;
  std::vector<int> given_;                                     // by argument of the functions: the operand
  std::vector<std::shared_ptr<detail::VariableCell>> cells_;   // that a side assigns
  Tensors inputs_;   // of the operation that tapes record: operands, captured tensors, values of variables
};

}   // namespace

std::vector<InnerProgram> programs_of_branch(const OpNode& n) {
  std::vector<InnerProgram> all;
  if (n.op->forward.run == run_branch)
    for (const Side& side : static_cast<const Branches&>(*called_programs(n.attrs.view())).sides)
      all.push_back({fmt::format("branch {}", all.size()), side.callee->plan});
  return all;
}

std::vector<Tensor> Tracer::branch(std::string_view name, const Tensor& index,
                                   std::span<const Tensor> operands, std::span<const Branch> branches,
                                   bool assigns) {
  if (is_silent()) return branches[selected(index, branches.size())](operands);
  std::vector<Branch> own;
  for (const Branch& f : branches)
    own.push_back(repeated(f, repeats_));
  return BranchPoint(*this, name, index, operands, own, assigns).run();
}

}   // namespace tapedeck::compiled
