// In: the programs of a loop, and its operands. Out: its results.
//
// Carries alternate between two buffers. Values of more than 64 bytes are read where they are. Large outputs
// are written in place if their size is a multiple of 64 bytes, and copied otherwise.
#include "compile/record/loop_program.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "compile/fuse/effects.h"
#include "compile/replay/loop_replay.h"
#include "compile/rewrite/unroll.h"
#include "core/bytes.h"
#include "core/format.h"
#include "core/storage.h"
#include "debug/text.h"
#include "op/recorder.h"
#include "transforms/snapshots.h"

namespace tapedeck::compiled {
namespace {

constexpr std::int64_t kMostBlockSteps = 32;

using TensorPointers = std::span<const Tensor* const>;

// Some of the steps of a loop.
struct Stretch {
  std::int64_t begin, end, of;
  std::size_t local_entries = 0;   // so many of the first tensors of entries are those of these steps alone
  bool local_outputs = false;      // the outputs are those of these steps alone
};

class Steps {
 public:
  Steps(const LoopProgram& l, const Stretch& s, TensorPointers x, std::span<Tensor> y)
      : l_(l), s_(s), y_(y), first_(l.reverse ? s.of - s.end : s.begin) {
    if (!is_one_step()) {
      for (const Spec& spec : l.carries)
        offsets_.push_back(std::exchange(per_buffer_, per_buffer_ + padded_bytes(spec)));
      carries_ = Arena(2 * per_buffer_);
      for (std::size_t i = 0; i < l.carries.size(); ++i)
        copy_bytes(x[i]->raw(), carry(i).at(0, buffer_).get(), l.carries[i].nbytes());
    }
    for (std::size_t i = 0; i < l.outputs.size(); ++i)
      outputs_.push_back(OutputSlot(y[l.carries.size() + i]).memory());
    const auto make = [&](std::optional<Part>& part, const Callee& callee, std::int64_t n,
                          std::vector<Target> targets) {
      part.emplace(callee, n, operands(callee, x), std::move(targets), keys(callee, x));
    };
    make(step_, step_of(l), 1, results(1));
    if (l.block && s.end - s.begin >= l.block_steps)
      make(block_, *l.block, l.block_steps, results(l.block_steps));
    if (l.condition) make(condition_, *l.condition, 1, {hold(0)});
  }

  // Returns the number of steps.
  std::int64_t run() {
    const std::int64_t n = l_.condition ? run_while() : run_all();
    if (is_one_step()) return n;
    for (std::size_t i = 0; i < l_.carries.size(); ++i)
      copy_bytes(carry(i).at(0, buffer_).get(), y_[i].raw(), l_.carries[i].nbytes());
    return n;
  }

 private:
  using Source = LoopReplay::Source;
  using Target = LoopReplay::Target;
  // A program of so many steps, and its replay.
  struct Part {
    Part(const Callee& callee, std::int64_t n, std::vector<Source> sources, std::vector<Target> targets,
         std::vector<random::Key> keys)
        : steps(n),
          workspace(callee.workspaces),
          replay(workspace->replay(0, callee.plan), std::move(sources), std::move(targets), std::move(keys)) {
    }

    std::int64_t steps;
    BorrowedWorkspace workspace;
    LoopReplay replay;
  };

  // Whether carries are read and written where they are.
  bool is_one_step() const { return !l_.condition && s_.end - s_.begin == 1; }
  static const Callee& step_of(const LoopProgram& l) { return l.checked ? *l.checked : *l.step; }

  std::int64_t run_all() {
    std::int64_t k = s_.begin;
    if (block_)
      for (; s_.end - k >= l_.block_steps; k += l_.block_steps)
        run(*block_, k);
    for (; k < s_.end; ++k)
      run(*step_, k);
    return k - s_.begin;
  }
  // A loop may have few steps, so the first ones run alone, as many as a block has. If the condition does not
  // hold after some step of a block, the block is dropped, and its steps run alone.
  std::int64_t run_while() {
    std::int64_t k = s_.begin;
    bool in_blocks = block_.has_value();
    for (bool holds = k < s_.end && goes_on(); holds && k < s_.end;) {
      if (in_blocks && k - s_.begin >= l_.block_steps && s_.end - k >= l_.block_steps) {
        run(*block_, k);
        in_blocks = held_before_last(l_.block_steps);
        if (in_blocks)
          k += l_.block_steps, holds = held(l_.block_steps - 1);
        else
          buffer_ = 1 - buffer_;   // the carries are those before the block
      } else {
        run(*step_, k++);
        holds = l_.checked ? held(0) : k < s_.end && goes_on();
      }
    }
    return k - s_.begin;
  }
  // Whether the condition held after step j of the last program.
  bool held(std::int64_t j) const { return holds_.at(j).get()[0] != std::byte{0}; }
  bool held_before_last(std::int64_t n) const {
    for (std::int64_t j = 0; j + 1 < n; ++j)
      if (!held(j)) return false;
    return true;
  }
  bool goes_on() {
    condition_->replay.run(0, buffer_);
    return held(0);
  }

  // Runs steps k, k + 1, ..., which are those of one program.
  void run(Part& part, std::int64_t k) {
    part.replay.run(l_.reverse ? s_.of - k - part.steps : k, buffer_);
    buffer_ = 1 - buffer_;
  }

  // The addresses of operands and results, by the lowest entry that a program reads or writes.

  Target carry(std::size_t i) const {
    return {.base = carries_.at(offsets_[i]), .per_buffer = per_buffer_, .is_padded = true};
  }
  Target hold(std::int64_t j) const { return {.base = holds_.at(j)}; }
  std::vector<Target> results(std::int64_t n) const {
    std::vector<Target> all;
    for (std::size_t i = 0; i < l_.carries.size(); ++i)
      all.push_back(is_one_step() ? Target{.base = OutputSlot(y_[i]).memory(), .is_padded = true} : carry(i));
    for (std::int64_t j = 0; j < n; ++j)
      for (std::size_t i = 0; i < l_.outputs.size(); ++i) {
        const std::int64_t bytes = l_.outputs[i].nbytes(), entry = l_.reverse ? n - 1 - j : j;
        all.push_back({.base = outputs_[i],
                       .offset = (entry - (s_.local_outputs ? first_ : 0)) * bytes,
                       .per_entry = bytes});
      }
    for (std::int64_t j = 0; l_.checked && j < n; ++j)
      all.push_back(hold(j));
    return all;
  }
  std::vector<Source> operands(const Callee& callee, TensorPointers x) const {
    const std::size_t carries = l_.carries.size();
    std::vector<Source> all;
    for (const int operand : callee.operands) {
      if (operand == kNone) {
        all.emplace_back();
        continue;
      }
      const auto i = static_cast<std::size_t>(operand);
      Source from{.base = ReadOnly(x[i]->raw())};
      if (i < carries && !is_one_step()) {
        const Target place = carry(i);
        from = {.base = place.base, .per_buffer = place.per_buffer};
      } else if (i >= carries && i < carries + l_.entries) {
        from.per_entry = entry_of(x[i]->spec()).nbytes();
        if (i < carries + s_.local_entries) from.offset = -first_ * from.per_entry;
      }
      all.push_back(from);
    }
    return all;
  }
  static std::vector<random::Key> keys(const Callee& callee, TensorPointers x) {
    std::vector<random::Key> all;
    for (const int i : callee.keys)
      all.push_back(key_at(x[static_cast<std::size_t>(i)]->raw()));
    return all;
  }

  const LoopProgram& l_;
  const Stretch s_;
  const std::span<Tensor> y_;
  const std::int64_t first_;   // the lowest index of an entry of these steps
  std::optional<Part> step_, block_, condition_;
  Arena carries_, holds_{kMostBlockSteps};   // holds_: by step of a program
  std::vector<std::int64_t> offsets_;        // by carry, in carries_
  std::int64_t per_buffer_ = 0;
  int buffer_ = 0;   // the one that holds the carries
  std::vector<Writable> outputs_;
};

std::vector<const Tensor*> pointers(Refs x) {
  std::vector<const Tensor*> all;
  for (int i = 0; i < x.size(); ++i)
    all.push_back(&x[i]);
  return all;
}

struct LoopAttrs {
  std::shared_ptr<const LoopProgram> program;
};
struct GradientAttrs {
  std::shared_ptr<const LoopGradient> gradient;
};

void run_loop_op(const Call& c, std::span<Tensor> y) {
  const Untraced untraced;
  const LoopProgram& l = *c.attrs<LoopAttrs>().program;
  const std::int64_t n = Steps(l, {0, l.steps, l.steps}, pointers(c.x), y).run();
  if (l.condition) *elements<std::int64_t>(y.back()) = n;
}
constexpr Op loop_op(Meaning meaning) {
  return {.name = "loop",
          .doc = "The results of a loop whose step is a program.",
          .args = {"operand"},
          .infer = [](const Call& c) { return c.attrs<LoopAttrs>().program->results(); },
          .forward = {run_loop_op, Outputs::fresh, KernelDtypes::all},
          .rule = Rule::none(),
          .meaning = meaning};
}
// kLoopWithEffect: a program of it acts, so that it runs even if nothing reads its results.
constexpr Op kLoop = loop_op(Meaning::other), kLoopWithEffect = loop_op(Meaning::effect);

// The backward pass of a loop that runs its steps again.
class BackwardPass {
 public:
  BackwardPass(const LoopGradient& g, std::int64_t steps, TensorPointers x, TensorPointers dy,
               std::span<Tensor> y)
      : g_(g), steps_(steps), x_(x), dy_(dy), y_(y) {
    for (std::size_t i = 0; i < g.backward.carries.size(); ++i)
      cotangents_.push_back(*dy[i]);
  }

  void run() {
    Tensors first;
    for (std::size_t i = 0; i < g_.step.carries.size(); ++i)
      first.push_back(*x_[i]);
    if (steps_ > 0 && g_.snapshots == 0)
      step_back(first, 0, steps_);
    else if (steps_ > 0)
      run_with_snapshots(first);
    for (std::size_t i = 0; i < cotangents_.size(); ++i) {
      if (steps_ == 0 && i + g_.sums >= cotangents_.size())   // a sum without terms begins as -0
        clear(y_[i]);
      else
        copy_bytes(cotangents_[i].raw(), y_[i].raw(), y_[i].nbytes());
    }
  }

 private:
  void run_with_snapshots(const Tensors& first) {
    require_few_runs(g_.name, steps_, g_.snapshots);
    std::vector<Tensors> kept = {first};
    for (Reversal order(steps_, g_.snapshots); order.goes_on();) {
      const Reversal::Part part = order.next();
      kept.resize(static_cast<std::size_t>(part.snapshot) + 1);
      Tensors state = part.from == part.to ? kept.back() : advance(kept.back(), part.from, part.to);
      if (part.keeps)
        kept.push_back(std::move(state));
      else
        step_back(state, part.to, part.to + 1);
    }
  }
  static Tensors of(std::span<const Spec> specs) {
    Tensors all;
    for (const Spec& s : specs)
      all.push_back(allocate(s));
    return all;
  }
  std::vector<const Tensor*> with_carries(const Tensors& carries) const {
    std::vector<const Tensor*> x(x_.begin(), x_.end());
    for (std::size_t i = 0; i < carries.size(); ++i)
      x[i] = &carries[i];
    return x;
  }
  Tensors advance(const Tensors& state, std::int64_t begin, std::int64_t end) const {
    Tensors y = of(g_.step.carries);
    Steps(g_.step, {begin, end, steps_}, with_carries(state), y).run();
    return y;
  }
  // Runs the steps from `begin` to `end`, and keeps what their gradients read; then computes these.
  void step_back(const Tensors& state, std::int64_t begin, std::int64_t end) {
    Tensors kept = of(g_.forward.carries);
    for (const Spec& s : g_.forward.outputs)
      kept.push_back(allocate(stacked(s, end - begin)));
    Steps(g_.forward, {begin, end, steps_, 0, true}, with_carries(state), kept).run();
    std::vector<const Tensor*> in;
    for (const Tensor& t : cotangents_)
      in.push_back(&t);
    for (std::size_t i = g_.forward.carries.size(); i < kept.size(); ++i)
      in.push_back(&kept[i]);
    for (const int i : g_.entries)
      in.push_back(x_[static_cast<std::size_t>(i)]);
    in.insert(in.end(), dy_.begin() + static_cast<std::ptrdiff_t>(cotangents_.size()), dy_.end());
    for (const int i : g_.others)
      in.push_back(x_[static_cast<std::size_t>(i)]);
    Tensors y = of(g_.backward.carries);
    y.insert(y.end(), y_.begin() + static_cast<std::ptrdiff_t>(cotangents_.size()), y_.end());
    const Stretch back = {steps_ - end, steps_ - begin, steps_, g_.forward.outputs.size()};
    Steps(g_.backward, back, in, y).run();
    y.resize(cotangents_.size());
    cotangents_ = std::move(y);
  }

  const LoopGradient& g_;
  const std::int64_t steps_;
  const TensorPointers x_, dy_;
  const std::span<Tensor> y_;
  Tensors cotangents_;
};

void run_gradient_op(const Call& c, std::span<Tensor> y) {
  const Untraced untraced;
  const LoopGradient& g = *c.attrs<GradientAttrs>().gradient;
  const std::vector<const Tensor*> all = pointers(c.x);
  const TensorPointers in(all);
  const std::size_t given =
      g.backward.carries.size() + g.backward.entries - g.forward.outputs.size() - g.entries.size();
  BackwardPass(g, *elements<std::int64_t>(c.x[0]), in.subspan(1, in.size() - 1 - given), in.last(given), y)
      .run();
}
constexpr Op gradient_op(Meaning meaning) {
  return {.name = "loop_gradient",
          .doc = "The gradient of a loop, whose steps run again.",
          .args = {"steps", "operand"},
          .infer = [](const Call& c) { return c.attrs<GradientAttrs>().gradient->backward.results(); },
          .forward = {run_gradient_op, Outputs::fresh, KernelDtypes::all},
          .rule = Rule::none(),
          .meaning = meaning};
}
constexpr Op kLoopGradient = gradient_op(Meaning::other),
             kLoopGradientWithEffect = gradient_op(Meaning::effect);

}   // namespace

std::vector<Spec> LoopProgram::results() const {
  std::vector<Spec> all = carries;
  for (const Spec& s : outputs)
    all.push_back(stacked(s, steps));
  if (condition) all.push_back({DType::i64, {}});
  if (all.empty() && acts()) all.push_back(kUnread);
  return all;
}

bool LoopProgram::acts() const {
  return compiled::acts(step->plan.program) || (condition && compiled::acts(condition->plan.program));
}

bool LoopProgram::uses_variables() const {
  return compiled::uses_variables(step->plan.program) ||
         (condition && compiled::uses_variables(condition->plan.program));
}

// Appends the condition to the step.
void LoopProgram::add_checked() {
  const Program& next = condition->plan.program;
  if (next.keys().size() > 0 || next.outputs()[0].spec != Spec{DType::boolean, {}} || !is_harmless(next))
    return;
  Program p = step->plan.program;
  std::vector<int> operands = step->operands;
  std::vector<Access> arguments;
  for (std::size_t i = 0; i < next.arguments().size(); ++i) {
    const ValueId v = next.arguments()[i];
    if (next[v].argument != i) return;
    const int at = condition->operands[i];
    if (at == kNone || static_cast<std::size_t>(at) < carries.size()) {
      arguments.push_back(at == kNone ? Access() : p.outputs()[static_cast<std::size_t>(at)]);
      continue;
    }
    const auto known =
        static_cast<std::size_t>(std::find(operands.begin(), operands.end(), at) - operands.begin());
    if (known < operands.size()) {
      arguments.push_back(p.all_of(p.arguments()[known]));
    } else {
      arguments.push_back(p.all_of(p.add_argument(next[v].spec)));
      operands.push_back(at);
    }
  }
  const auto made = std::make_shared<Callee>(followed_by(std::move(p), next, arguments));
  made->operands = std::move(operands), made->keys = step->keys;
  checked = made;
}

// Adds the program of several steps, if a step is so short that calling its program takes long beside it.
// With a condition, a block may run steps after the last one, whose results are dropped.
void LoopProgram::add_block() {
  constexpr std::size_t nodes = 160;
  constexpr std::int64_t bytes = 1024, inner_bytes = 16 << 10;
  if (uses_variables()) return;   // a store takes effect at the end of a program
  if (condition) add_checked();
  const Callee& one = checked ? *checked : *step;
  const Program& p = one.plan.program;
  if (condition && (!checked || !outputs.empty() || !is_harmless(p))) return;
  if (p.size() == 0 || 2 * p.size() > nodes) return;
  for (const Value& v : p.values())
    if (v.from != Value::From::nothing && v.spec.nbytes() > bytes) return;
  for (const DerivedKey& key : p.keys())
    if (key.by) return;
  for (const Node& node : p.nodes())   // each has memory of its own
    if (const OpNode* n = as<OpNode>(node))
      if (const CalledPrograms* called = called_programs(n->attrs.view()))
        if (called->arena_bytes() > inner_bytes) return;
  std::vector<StepArgument> arguments;
  for (std::size_t i = 0; i < p.arguments().size(); ++i) {
    if (p[p.arguments()[i]].argument != i) return;
    using Is = StepArgument::Is;
    const int at = one.operands[i];
    const auto k = static_cast<std::size_t>(at);
    arguments.push_back(at == kNone                    ? StepArgument{Is::same}
                        : k < carries.size()           ? StepArgument{Is::carry, k}
                        : k < carries.size() + entries ? StepArgument{Is::entry}
                                                       : StepArgument{Is::same});
  }
  block_steps = std::min({kMostBlockSteps, steps, static_cast<std::int64_t>(nodes / p.size())});
  if (block_steps < 2) return;
  block = callee_like(one, unrolled(p, arguments, carries.size(), block_steps, reverse));
}

namespace {
// The loop that a node runs; null if it runs none.
const LoopProgram* loop_of(const Node& node) {
  const OpNode* n = as<OpNode>(node);
  const bool is_loop = n && n->op->forward.run == run_loop_op;
  return is_loop ? static_cast<const LoopAttrs*>(n->attrs.view().data)->program.get() : nullptr;
}

// The loop with those outputs of a step of which wanted(k) is true.
template <class F> LoopProgram with_outputs(LoopProgram l, const F& wanted) {
  Program p = l.step->plan.program;
  const std::vector<Access> results = p.outputs();
  const std::vector<Spec> outputs = std::exchange(l.outputs, {});
  p.clear_outputs();
  for (std::size_t i = 0; i < results.size(); ++i) {
    const std::size_t carries = l.carries.size();
    if (i < carries || wanted(i - carries)) p.add_output(results[i]);
    if (i >= carries && wanted(i - carries)) l.outputs.push_back(outputs[i - carries]);
  }
  l.step = callee_like(*l.step, std::move(p));
  l.checked = {}, l.block = {}, l.block_steps = 0;
  l.add_block();
  return l;
}
}   // namespace

std::vector<InnerProgram> programs_of_loop(const OpNode& n) {
  std::vector<InnerProgram> all;
  const auto bytes = [](std::span<const Spec> specs) {
    std::int64_t sum = 0;
    for (const Spec& s : specs)
      sum += s.nbytes();
    return with_unit(sum);
  };
  const auto add = [&](const LoopProgram& l, std::string_view name, const std::string& times) {
    if (l.condition) all.push_back({"condition", l.condition->plan});
    all.push_back({fmt::format("{}, {}{}{}", name, times,
                               l.outputs.empty() ? "" : fmt::format(", {} of outputs each", bytes(l.outputs)),
                               l.block ? fmt::format(", in blocks of {}", l.block_steps) : ""),
                   l.step->plan});
  };
  constexpr auto unknown = std::numeric_limits<std::int64_t>::max();   // a while_loop without a maximum
  if (const LoopProgram* l = loop_of(n)) {
    add(*l, "step",
        l->steps == unknown ? "while the condition holds"
                            : fmt::format("{}{} times", l->condition ? "at most " : "", l->steps));
  } else if (n.op->forward.run == run_gradient_op) {
    const LoopGradient& g = *static_cast<const GradientAttrs*>(n.attrs.view().data)->gradient;
    const std::int64_t steps = g.forward.steps;
    if (g.snapshots)
      add(g.step, "step",
          fmt::format("with {} snapshots of {}{}", g.snapshots, bytes(g.step.carries),
                      steps == unknown ? ""
                                       : fmt::format(", {} times for {} steps",
                                                     steps > 0 ? least_runs(steps, g.snapshots) : 0, steps)));
    add(g.forward, "step", "again for its gradient");
    add(g.backward, "gradient of a step", "once for each");
  }
  return all;
}

Program without_unread_outputs(Program p) {
  const IdVector<ValueId, bool> read = p.read();
  const auto has_unread = [&](const Node& node) {
    const LoopProgram* l = loop_of(node);
    if (!l) return false;
    const std::span<const ValueId> out = std::get<OpNode>(node).out;
    const std::span<const ValueId> outputs = out.subspan(l->carries.size(), l->outputs.size());
    return std::any_of(outputs.begin(), outputs.end(), [&](ValueId v) { return !read[v]; });
  };
  if (std::none_of(p.nodes().begin(), p.nodes().end(), has_unread)) return p;
  auto [rest, nodes] = std::move(p).take_apart();
  for (Node& node : nodes) {
    if (has_unread(node)) {
      const LoopProgram& l = *loop_of(node);
      OpNode& n = std::get<OpNode>(node);
      const std::size_t carries = l.carries.size();
      const auto wanted = [&](std::size_t k) { return read[n.out[carries + k]]; };
      const LoopAttrs attrs{std::make_shared<const LoopProgram>(with_outputs(l, wanted))};
      std::vector<ValueId> out;
      for (std::size_t i = 0; i < n.out.size(); ++i)
        if (i < carries || i >= carries + l.outputs.size() || wanted(i - carries)) out.push_back(n.out[i]);
      if (out.size() < attrs.program->results().size()) out.push_back(rest.promise(kUnread));
      n.attrs = Attrs(attrs), n.out = std::move(out);
    }
    rest.define(std::move(node));
  }
  return std::move(rest);
}

Tensors run_loop(const Tensors& operands, LoopProgram l) {
  l.add_block();
  const RecordingScope unrecorded(nullptr);
  const Op& op = l.acts() ? kLoopWithEffect : kLoop;
  return op.run(operands, LoopAttrs{std::make_shared<const LoopProgram>(std::move(l))});
}

Tensors run_loop_gradient(const Tensor& steps, const Tensors& x, const Tensors& dy, LoopGradient g) {
  for (LoopProgram* l : {&g.step, &g.forward, &g.backward})
    l->add_block();
  const RecordingScope unrecorded(nullptr);
  Tensors in = {steps};
  in.insert(in.end(), x.begin(), x.end());
  in.insert(in.end(), dy.begin(), dy.end());
  const Op& op = g.forward.acts() || g.backward.acts() ? kLoopGradientWithEffect : kLoopGradient;
  return op.run(in, GradientAttrs{std::make_shared<const LoopGradient>(std::move(g))});
}

}   // namespace tapedeck::compiled
