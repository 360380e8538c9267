// In: the programs of a step and of a condition. Out: a program of both, or of several steps, in which
// carries are values, so that what a call of a program costs is paid once for them.
#include "compile/rewrite/unroll.h"

#include <algorithm>

#include "compile/fuse/fusible.h"
#include "compile/ir/node.h"
#include "op/stacked_shapes.h"

namespace tapedeck::compiled {
namespace {

// The part of x that `a` is, if all of x is the value that `a` reads.
Access part_of(const Access& x, const Access& a) { return {x.of, x.first + a.first, a.spec}; }

// Appends the nodes of p. now: what its values are in `all`; those of nodes are added.
void append_nodes(Program& all, const Program& p, IdVector<ValueId, Access>& now) {
  for (const Node& node : p.nodes()) {
    Node copy = node;
    for_each_place(
        copy,
        [&](Access& a) {
          if (a.reads()) a = part_of(now[a.of], a);
        },
        [&](ValueId& v) {
          if (!v) return;
          const ValueId own = all.promise(p[v].spec);
          now[v] = all.all_of(own), v = own;
        });
    all.define(std::move(copy));
  }
}
void add_constants(Program& all, const Program& p, IdVector<ValueId, Access>& now) {
  for (const ValueId v : ids_of(p.values()))
    if (p[v].from == Value::From::constant) now[v] = all.all_of(all.add_constant(p[v].constant));
}

// Integers may divide by zero, or be out of range, except where they count.
bool is_harmless(const Program& p, const OpNode& n) {
  if (n.key || n.op->forward.outputs == Outputs::by_kernel) return false;
  if (logic_kernel(n)) return true;
  const auto is_real = [](const Spec& s) { return is_trainable(s.dtype); };
  const bool gives_reals =
      std::all_of(n.out.begin(), n.out.end(), [&](ValueId v) { return !v || is_real(p[v].spec); });
  switch (n.op->meaning) {
    case Meaning::add:
    case Meaning::subtract:
    case Meaning::rearrange:
    case Meaning::add_part:
      return true;
    case Meaning::cast:
      return gives_reals;
    case Meaning::effect:
    case Meaning::check:
      return false;
    case Meaning::other:
      if (!n.map) return false;
      [[fallthrough]];
    default:
      return gives_reals &&
             std::all_of(n.in.begin(), n.in.end(), [&](const Access& a) { return is_real(a.spec); });
  }
}

}   // namespace

Program unrolled(const Program& p, std::span<const StepArgument> arguments, std::size_t carries,
                 std::int64_t n, bool reverse) {
  using Is = StepArgument::Is;
  Program all;
  for (const DerivedKey& key : p.keys())
    all.add_key(key);
  IdVector<ValueId, Access> same(p.values().size());   // what a value of p is in each execution
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const ValueId v = p.arguments()[i];
    const Spec& spec = p[v].spec;
    same[v] = all.all_of(all.add_argument(arguments[i].is == Is::entry ? stacked(spec, n) : spec));
  }
  add_constants(all, p, same);

  std::vector<Access> carried, outputs;
  for (std::int64_t step = 0; step < n; ++step) {
    IdVector<ValueId, Access> now = same;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const ValueId v = p.arguments()[i];
      if (arguments[i].is == Is::carry && step > 0) now[v] = carried[arguments[i].carry];
      if (arguments[i].is == Is::entry)
        now[v] = {same[v].of, (reverse ? n - 1 - step : step) * p[v].spec.shape.size(), p[v].spec};
    }
    append_nodes(all, p, now);
    carried.clear();
    for (std::size_t k = 0; k < p.outputs().size(); ++k)
      (k < carries ? carried : outputs).push_back(part_of(now[p.outputs()[k].of], p.outputs()[k]));
  }
  for (const Access& a : carried)
    all.add_output(a);
  for (const Access& a : outputs)
    all.add_output(a);
  return all;
}

Program followed_by(Program p, const Program& next, std::span<const Access> arguments) {
  IdVector<ValueId, Access> now(next.values().size());
  for (std::size_t i = 0; i < arguments.size(); ++i)
    now[next.arguments()[i]] = arguments[i];
  add_constants(p, next, now);
  append_nodes(p, next, now);
  for (const Access& a : next.outputs())
    p.add_output(part_of(now[a.of], a));
  return p;
}

bool is_harmless(const Program& p) {
  return std::all_of(p.nodes().begin(), p.nodes().end(), [&](const Node& node) {
    if (const OpNode* n = as<OpNode>(node)) return is_harmless(p, *n);
    return as<JvpNode>(node) || as<VjpNode>(node) || as<SelectNode>(node) || as<ProductSum>(node);
  });
}

}   // namespace tapedeck::compiled
