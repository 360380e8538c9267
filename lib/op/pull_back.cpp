// In: a call and its cotangents. Out: gradients, by the rule's vjp on the conjugates of complex values.
#include "op/pull_back.h"

#include "core/storage.h"
#include "core/trace.h"
#include "op/primitives.h"
#include "op/recorded_rule.h"
#include "op/widened_copies.h"

namespace tapedeck {
namespace {

// Tensors that were not saved are undefined or shape-only.
bool has_complex_values(const Tensor& x) { return x.defined() && is_complex(x.dtype()) && x.has_values(); }
bool any_complex_values(Refs x) {
  for (int i = 0; i < x.size(); ++i)
    if (has_complex_values(x[i])) return true;
  return false;
}

// Whether any tensor is complex or has a storage dtype.
bool any_special(Refs x) {
  static_assert(DType::c64 < DType::c128 &&
                !is_computed(static_cast<DType>(static_cast<int>(DType::c128) + 1)));
  bool any = false;
  for (int i = 0; i < x.size(); ++i)
    any |= x[i].defined() && x[i].handle()->dtype >= DType::c64;
  return any;
}

// A list of tensors in which the complex ones are replaced by their conjugates.
class Conjugated {
 public:
  explicit Conjugated(Refs x) {
    tensors_.reserve(static_cast<std::size_t>(x.size()));
    for (int i = 0; i < x.size(); ++i)
      pointers_.push_back(has_complex_values(x[i]) ? &tensors_.emplace_back(conj(x[i])) : &x[i]);
  }
  Refs refs() const { return {pointers_.data(), static_cast<int>(pointers_.size())}; }

 private:
  std::vector<Tensor> tensors_;
  std::vector<const Tensor*> pointers_;
};

// Out of line, so that real rules do not pay for the lists.
[[gnu::noinline]] void run_conjugated(const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
  const Conjugated x(c.x), y(c.y);
  c.op.rule.vjp({.op = c.op, .raw_attrs = c.raw_attrs, .x = x.refs(), .y = y.refs(), .wanted = c.wanted}, dy,
                dx);
}

void run_rule(const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
  if (!any_special(c.x) && !any_special(c.y)) [[likely]]
    c.op.rule.vjp(c, dy, dx);
  else if (rule_runs_widened(c.op) && (any_stored(c.x) || any_stored(c.y)))
    pull_back_widened(c, dy, dx);
  else if (any_complex_values(c.x) || any_complex_values(c.y))
    run_conjugated(c, dy, dx);
  else
    c.op.rule.vjp(c, dy, dx);
}

// Records the ops of the rule, or, if the rule reads numbers of its inputs, the whole rule as an action. The
// results of an action are new tensors: the rule may return one of its arguments, and another one in the next
// call.
[[gnu::noinline]] void pull_back_recorded(const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
  std::vector<Tensor> given;
  const auto add = [&](std::span<const Gradient> list) {
    for (const Gradient& g : list)
      given.push_back(g.is_dense() ? g.tensor() : Tensor());
  };
  const bool adds = c.op.rule.adds && !c.op.rule.by_partials();   // the rule adds to gradients in dx
  given.reserve(dy.size() + dx.size());
  add(dy);
  if (adds) add(dx);
  const auto rule = [&] { run_rule(c, dy, dx); };
  if (thread_state.trace->attempt(std::ref(rule))) return;
  const auto again = [wanted = c.wanted, n = dy.size(), inputs = dx.size(), adds](
                         const Call& call, std::span<const Tensor> now) {
    std::vector<Gradient> from(now.begin(), now.begin() + static_cast<std::ptrdiff_t>(n)), to(inputs);
    if (adds) to.assign(now.begin() + static_cast<std::ptrdiff_t>(n), now.end());
    run_rule({call.op, call.raw_attrs, call.x, call.y, wanted}, from, to);
    std::vector<Tensor> gradients;
    for (Gradient& g : to)
      gradients.push_back(g.defined() ? std::move(g).dense() : Tensor());
    return gradients;
  };
  std::vector<Tensor> gradients;
  for (Gradient& g : dx) {
    if (g.defined()) g = thread_state.innermost ? g.dense() : share(g.dense());
    gradients.push_back(g.defined() ? g.tensor() : Tensor());
  }
  record_rule(c, given, gradients, again);
}

}   // namespace

void pull_back(const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
  if (thread_state.trace) [[unlikely]]
    pull_back_recorded(c, dy, dx);
  else
    run_rule(c, dy, dx);
}

}   // namespace tapedeck
