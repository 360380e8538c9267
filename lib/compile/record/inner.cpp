// In: functions that a recorded function calls by an op. Out: their programs, and the two parts of those that
// compute gradients.
#include "compile/record/loop_program.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "compile/fuse/effects.h"
#include "core/bytes.h"
#include "core/format.h"
#include "core/storage.h"
#include "op/recorder.h"
#include "tape/variable.h"

namespace tapedeck::compiled {

Callee::Callee(Program p) : plan(without_unread_outputs(std::move(p))) {
  if (plan.fault)
    throw_error<InternalError>("compile: the program of a branch or a loop is wrong: {}", *plan.fault);
}

std::shared_ptr<const Callee> callee_like(const Callee& other, Program p) {
  const auto made = std::make_shared<Callee>(std::move(p));
  made->operands = other.operands, made->keys = other.keys;
  return made;
}

void clear(Tensor& t) { std::memset(t.raw(), 0, static_cast<std::size_t>(t.nbytes())); }
Tensor zeros_of(const Spec& spec) {
  Tensor t = allocate(spec);
  clear(t);
  return t;
}

void CapturedSources::find(std::span<const Recorded> functions,
                           std::span<const std::shared_ptr<detail::VariableCell>> assigned,
                           Operands& operands) {
  if (!thread_state.innermost) return;
  std::set<std::uint64_t> known;
  std::set<const detail::VariableCell*> seen;
  Tensors values;   // of variables
  const auto add = [&](const std::shared_ptr<detail::VariableCell>& cell) {
    if (const Tensor& value = operands.value_of(cell); followed(value))
      variables_.emplace_back(cell), values.push_back(value);
  };
  for (const Recorded& r : functions)
    for (const Tracer::Capture& c : r.captures)
      if (!c.cell) {
        if (known.insert(c.tensor.id()).second && followed(c.tensor)) tensors_.push_back(c.tensor);
      } else if (seen.insert(c.cell.get()).second) {
        read_.reads.push_back({Variable(c.cell), c.cell->value.id()});
        add(c.cell);
      }
  for (const auto& cell : assigned)   // a function may read the value that it has assigned
    if (seen.insert(cell.get()).second) add(cell);
  values_ = tensors_;
  values_.insert(values_.end(), values.begin(), values.end());
}

bool CapturedSources::are_those_of(const CapturedSources& other) const {
  const auto same = [](const Tensor& a, const Tensor& b) { return a.id() == b.id(); };
  return std::equal(tensors_.begin(), tensors_.end(), other.tensors_.begin(), other.tensors_.end(), same) &&
         variables_ == other.variables_;
}

void watch(GradientTape& tape, std::span<const Source> sources) {
  for (const Source& s : sources)
    s.variable() ? tape.watch(*s.variable()) : tape.watch(s.tensor());
}

Recorded record(Tracer& outer, std::span<const Spec> arguments, const Trace::Branch& f,
                const InnerOptions& options) {
  const Recorder* const around = thread_state.innermost;
  const RecordingScope unrecorded(nullptr);
  Tensors x;
  for (const Spec& spec : arguments)
    x.push_back(zeros_of(spec));
  Tracer inner(outer, around, options);
  for (const Tensor& t : x)
    inner.add_argument(t);
  Recorded r{.program = {},
             .results = {},
             .defined = {},
             .captures = {},
             .keys = {},
             .stores = {},
             .arguments = x.size()};
  for (const Tensor& y : f(x)) {
    r.defined.push_back(y.defined());
    if (y.defined()) r.results.push_back(inner.result(y));
  }
  r.gradient = inner.gradient(), r.acts = inner.acts();
  r.stores = inner.stores();
  r.program = inner.leave();
  r.captures = inner.captures();
  r.keys = inner.captured_keys();
  return r;
}

std::string_view no_actions_now(bool takes_effect) {
  if (takes_effect && !thread_state.innermost) return {};
  return "is in a branch or a loop under a tape or an accumulator, which cannot record it; compute gradients "
         "inside of the branch or the step";
}

namespace {

class Reduction {
 public:
  Reduction(const Program& p, std::span<const ValueId> cotangents, const std::vector<bool>& missing)
      : from_(p), is_(p.values().size(), Is::independent), instead_(p.values().size()) {
    for (const ValueId v : ids_of(p.values()))
      instead_[v] = p.all_of(v);
    for (std::size_t k = 0; k < cotangents.size(); ++k)
      is_[cotangents[k]] = missing[k] ? Is::none : Is::there;
  }

  Reduced run() {
    auto [rest, nodes] = Program(from_).take_apart();
    program_ = std::move(rest);
    program_.clear_outputs();
    for (Node& node : nodes)
      std::visit([&](auto& n) { keep_or_drop(n); }, node);
    Reduced r;
    for (const Access& a : from_.outputs()) {
      r.is_zero.push_back(a.reads() && is_[a.of] == Is::none);
      program_.add_output(now(a));
    }
    r.program = std::move(program_);
    return r;
  }

 private:
  enum class Is : std::uint8_t { independent, there, none };

  Access now(const Access& a) {
    if (!a.reads()) return a;
    if (is_[a.of] == Is::none) return program_.all_of(program_.add_constant(zeros_of(a.spec)));
    const Access& b = instead_[a.of];
    return {b.of, b.first + a.first, a.spec};
  }
  bool is_none(const Access& a) const { return a.reads() && is_[a.of] == Is::none; }

  template <class N> void keep_or_drop(N& n) {
    bool any_there = false, any_none = false;
    const auto look = [&](const Access& a) {
      if (!a.reads()) return;
      any_there |= is_[a.of] == Is::there;
      any_none |= is_[a.of] == Is::none;
    };
    if constexpr (requires { n.in.begin(); })
      for (const Access& a : n.in)
        look(a);
    else if constexpr (requires { n.in; })
      look(n.in);
    constexpr bool sums = requires { n.results; };
    if constexpr (sums)
      for (auto& r : n.results)   // result = before + something
        if (is_none(r.before)) r.before = {};
    if (any_none && !any_there) return drop(n);
    if constexpr (std::is_same_v<N, OpNode>)
      if (any_none && n.op->meaning == Meaning::add_n) {
        std::erase_if(n.in, [&](const Access& a) { return is_none(a); });
        if (n.in.size() == 1) {
          instead_[n.out[0]] = now(n.in[0]);
          is_[n.out[0]] = Is::there;
          return;
        }
      }
    Node copy(std::move(n));
    bool depends = any_there;
    for_each_place(
        copy,
        [&](Access& a) {
          depends |= a.reads() && is_[a.of] == Is::there;
          a = now(a);
        },
        [](ValueId) {});
    if (depends) for_each_result(copy, [&](ValueId v) { is_[v] = Is::there; });
    program_.define(std::move(copy));
  }
  // A node whose cotangents are all none.
  template <class N> void drop(N& n) {
    if constexpr (requires { n.results; }) {
      for (auto& r : n.results) {
        if (!r.value) continue;
        is_[r.value] = r.before.reads() ? is_[r.before.of] : Is::none;
        if (r.before.reads()) instead_[r.value] = now(r.before);
      }
    } else if constexpr (requires { n.out.begin(); }) {
      for (const ValueId v : n.out)
        if (v) is_[v] = Is::none;
    } else if constexpr (requires { n.out; }) {
      is_[n.out] = Is::none;
    }
  }

  const Program& from_;
  Program program_;
  IdVector<ValueId, Is> is_;
  IdVector<ValueId, Access> instead_;   // what a value is read as
};

}   // namespace

Reduced without_cotangents(const Program& p, std::span<const ValueId> cotangents,
                           const std::vector<bool>& missing) {
  return Reduction(p, cotangents, missing).run();
}

Parts cut(const Recorded& r, std::span<const ValueId> from, std::span<const Access> results_of_second) {
  const Program& p = r.program;
  IdVector<ValueId, bool> later(p.values().size()), is_kept(p.values().size());
  for (const ValueId v : from)
    later[v] = true;
  IdVector<NodeId, bool> in_second(p.size());
  for (const NodeId n : ids_of(p.nodes())) {
    if (r.gradient && n >= r.gradient && acts(p[n])) in_second[n] = true;
    for_each_operand(p[n], [&](const Access& a) {
      if (later[a.of]) in_second[n] = true;
    });
    if (in_second[n]) for_each_result(p[n], [&](ValueId v) { later[v] = true; });
  }
  Parts parts;
  const auto keep = [&](const Access& a) {
    if (a.reads() && !later[a.of] && p[a.of].from == Value::From::node && !is_kept[a.of])
      is_kept[a.of] = true, parts.kept.push_back(a.of);
  };
  for (const NodeId n : ids_of(p.nodes()))
    if (in_second[n]) for_each_operand(p[n], keep);
  for (const Access& a : results_of_second)
    keep(a);
  const auto part = [&](bool second) {
    auto [program, nodes] = Program(p).take_apart();
    if (second)
      for (const ValueId v : parts.kept)
        program.make_argument(v);
    for (const NodeId n : ids_of(nodes))
      if (in_second[n] == second) program.define(std::move(nodes[n]));
    return std::move(program);
  };
  parts.first = part(false), parts.second = part(true);
  return parts;
}

}   // namespace tapedeck::compiled
