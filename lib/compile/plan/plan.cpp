// In: a program. Out: its plan.
#include "compile/plan/plan.h"

#include <algorithm>

#include "compile/ir/verify.h"
#include "compile/plan/verify.h"
#include "compile/rewrite/product_sums.h"
#include "compile/rewrite/sums.h"

namespace tapedeck::compiled {

bool returns_memory(const Node& n) {
  const OpNode* op = as<OpNode>(n);
  return as<ActionNode>(n) || (op && op->op->forward.outputs == Outputs::by_kernel);
}

std::int64_t padded_bytes(const Spec& spec) { return lines(spec.nbytes()) + kLine; }

Plan::Plan(Program recorded) : program(std::move(recorded)) {
  if ((fault = verify(program))) return;
  program = with_product_sums(std::move(program));
  if ((fault = verify(program))) return;
  program = with_sums_of_two(std::move(program));
  if ((fault = verify(program))) return;
  make();
  fault = verify(*this);
}

void Plan::make() {
  passes = std::make_unique<const Passes>(program);
  steps = schedule(program, *passes, find_live(program));
  lives = find_lives(program, steps);
  homes = find_homes(program, steps, lives);
  IdVector<ValueId, bool> kept(homes.size());
  for (const ValueId v : ids_of(homes))
    kept[v] = homes[v].in != Home::In::registers;
  for (const Step& step : steps) {
    if (!step.fused) continue;
    groups.emplace_back(program, *passes, step, kept);
    scratch_bytes = std::max(scratch_bytes, groups.back().scratch_bytes());
  }
  arrange(*this);
}

}   // namespace tapedeck::compiled
