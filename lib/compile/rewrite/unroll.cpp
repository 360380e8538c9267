// In: the program of a step. Out: a program of several steps, in which carries are values, so that what a
// call of a program costs is paid once for them.
#include "compile/rewrite/unroll.h"

#include "compile/ir/node.h"
#include "op/stacked_shapes.h"

namespace tapedeck::compiled {
namespace {

// The part of x that `a` is, if all of x is the value that `a` reads.
Access part_of(const Access& x, const Access& a) { return {x.of, x.first + a.first, a.spec}; }

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
  for (const ValueId v : ids_of(p.values()))
    if (p[v].from == Value::From::constant) same[v] = all.all_of(all.add_constant(p[v].constant));

  std::vector<Access> carried, outputs;
  for (std::int64_t step = 0; step < n; ++step) {
    IdVector<ValueId, Access> now = same;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const ValueId v = p.arguments()[i];
      if (arguments[i].is == Is::carry && step > 0) now[v] = carried[arguments[i].carry];
      if (arguments[i].is == Is::entry)
        now[v] = {same[v].of, (reverse ? n - 1 - step : step) * p[v].spec.shape.size(), p[v].spec};
    }
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

}   // namespace tapedeck::compiled
