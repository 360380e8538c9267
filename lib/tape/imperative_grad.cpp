// Reverse mode over a tape. In: targets, their gradients, sources. Out: the gradient of the targets' sum for
// each source.
//
// An *op* is a TapeEntry; a *tensor* is a slot. Four steps:
//   filter   Walks back from the targets. Counts how often the ops that it finds use each tensor, and how
//            many outputs of each op are used. An op without used outputs is ready.
//   seed     Adds ones, or the given output gradients, as the first terms of the targets.
//   drain    Removes a ready op, sums the terms of its outputs, runs its rule, adds the resulting terms to
//            its inputs, and decrements the uses of these. A tensor without uses left is complete; an op
//            whose used outputs are all complete is ready.
//   collect  Sums the terms of each source, and returns these gradients.
//
// An output without a term counts as zeros; an op whose outputs all have no term is skipped. The terms of a
// tensor are summed at once when it is complete, or early when they are many and large, so that they never
// take much more memory than min_aggregate_bytes. Each op runs once: bookkeeping is linear in the size of the
// tape, in time and memory. Tensors that the entries of a consumed tape have saved are released as soon as
// the rules have run. `arrival` is called during the pass, when the gradient of a watched source is final.
//
// A pass may compute with many cotangents at once: each gradient then has one more leading axis. Rules batch
// over this axis, or run once per cotangent. If tensors are watched that are not sources, ops whose inputs
// depend on no source are first left out of the pass, even if they have produced a source. If the pass is not
// recorded, ops whose inputs depend on sources only by derivatives of zeros, such as the masks of maxima in
// second derivatives, are left out, too; a source without any other term then gets zeros.
#include "tape/imperative_grad.h"

#include "core/format.h"
#include "op/observer.h"
#include "op/pull_back.h"
#include "tape/backprop.h"
#include "tape/rule_arguments.h"

namespace tapedeck {

std::vector<Gradient> imperative_grad(const VSpace& space, Tape& tape, std::span<const Tensor> targets,
                                      std::span<const Tensor> sources, const GradientOptions& options,
                                      const PassOptions& pass) {
  Backprop backprop(space, tape, targets, sources, options, pass);
  if (backprop.may_leave_out()) backprop.leave_out();
  backprop.filter();
  backprop.seed();
  if (pass.arrival)
    backprop.drain<true>();
  else
    backprop.drain<false>();
  std::vector<Gradient> result;
  for (const Tensor& s : sources)
    result.push_back(backprop.collect(s));
  return result;
}

void Backprop::filter() {
  CachedVector<std::int32_t> stack, found;
  const auto visit = [&](Slot s) {
    const std::int32_t p = producer(s);
    if (p < 0 || pending(p) >= 0) return;
    pending(p) = 0;
    stack.push_back(p);
  };
  for (const Tensor& t : targets_)
    if (const Slot s = tape_.slot_of(t); takes_part(s)) visit(s);
  while (!stack.empty()) {
    const std::int32_t k = found.emplace_back(stack.back());
    stack.pop_back();
    for (const Slot x : tape_.entries()[k].x()) {
      if (!takes_part(x)) continue;
      visit(x);
      if (tensor(x).usages++ == 0 && producer(x) >= 0) ++pending(producer(x));
    }
  }
  for (const std::int32_t k : found)
    if (pending(k) == 0) ready_.push_back(k);
}

void Backprop::seed() {
  for (std::size_t i = 0; i < targets_.size(); ++i)
    if (const Slot s = tape_.slot_of(targets_[i]); takes_part(s))
      tensor(s).add_term(output_gradient(i), space_, options_);
}

template <bool arrivals> void Backprop::drain() {
  while (!ready_.empty()) {
    if constexpr (arrivals) prioritize();
    const std::int32_t k = ready_.back();
    ready_.pop_back();
    TapeEntry& e = tape_.entries()[k];
    run<arrivals>(e);
    if (tape_.used && !pass_.keep_entries) e.drop_kept();
  }
}

Gradient Backprop::collect(const Tensor& source) {
  if (const Slot s = tape_.slot_of(source); s >= 0) {
    const Gradient& sum = tensor(s).sum_terms(space_);
    if (!sum.defined() && tensor(s).gets_zeros) return space_.zeros(gradient_spec(source.spec()));
    return sum;
  }
  // The tape does not track the source, which may be a target itself: its gradient is then the output
  // gradient.
  std::vector<Gradient> terms;
  for (std::size_t i = 0; i < targets_.size(); ++i)
    if (targets_[i].id() == source.id() && is_trainable(source.dtype())) terms.push_back(output_gradient(i));
  return terms.size() > 1 ? space_.aggregate(terms) : terms.empty() ? Gradient() : terms[0];
}

template <bool arrivals> inline void Backprop::run(TapeEntry& e) {
  Gradient one_dy;
  std::vector<Gradient> more_dy(e.outputs > 1 ? static_cast<std::size_t>(e.outputs) : 0);
  const std::span<Gradient> dy =
      e.outputs > 1 ? std::span<Gradient>(more_dy) : std::span<Gradient>(&one_dy, 1);
  bool any = false;
  const std::span<const Slot> outputs = e.y();
  for (std::size_t k = 0; k < dy.size(); ++k) {
    if (!takes_part(outputs[k]) || tensor(outputs[k]).stopped) continue;
    TensorState& y = tensor(outputs[k]);
    y.sum_terms(space_);
    dy[k] = y.is_source ? y.first : std::exchange(y.first, {});
    any |= dy[k].defined();
  }
  if (any) run_rule(e, dy);
  for (const Slot x : e.x())
    if (takes_part(x)) release<arrivals>(x);
}

inline void Backprop::run_rule(TapeEntry& e, std::span<Gradient> dy) {
  prepare(e, dy);
  const Rule& rule = e.op->rule;
  const RuleArguments arguments(e);
  const std::span<Gradient> dx = arguments.dx();
  const std::span<const Slot> inputs = e.x();
  std::uint64_t wanted = 0;
  for (std::size_t i = 0; i < inputs.size() && i < 64; ++i) {
    if (!takes_part(inputs[i])) continue;
    wanted |= std::uint64_t{1} << i;
    if (i < 8 && (rule.adds >> i & 1) && tensor(inputs[i]).first.defined()) [[unlikely]]
      dx[i] = term_to_add_to(rule, inputs[i], dy);
  }
  const Call call{
      .op = *e.op, .raw_attrs = e.attrs.view(), .x = arguments.x(), .y = arguments.y(), .wanted = wanted};
  const auto run_vjp = [&] {
    if (pass_.directions && !rule.stacks)
      run_once_per_cotangent(call, dy, dx, pass_.directions);
    else
      pull_back(call, dy, dx);
  };
  if (thread_state.observer) [[unlikely]]
    observe_rule({name_of(e), call, true, tape_.origin_of(e), &tape_, tape_.id_of(e)}, dy, dx,
                 std::ref(run_vjp));
  else
    run_vjp();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!takes_part(inputs[i]) || !dx[i].defined()) continue;
    check(e, i, dx[i]);
    tensor(inputs[i]).add_term(std::move(dx[i]), space_, options_);
  }
}

// Converts the cotangents and the saved outputs to the form that the rule accepts.
[[gnu::always_inline]] inline void Backprop::prepare(TapeEntry& e, std::span<Gradient> dy) {
  const Rule& rule = e.op->rule;
  if (!rule.vjp) throw_error<GradientError>("{}: this op must not be differentiated", e.op->name);
  const std::span<Tensor> kept_y = e.kept_y();
  for (std::size_t k = 0; k < dy.size(); ++k) {
    if (!dy[k].defined() && !rule.accepts_none && is_trainable(kept_y[k].dtype()))
      dy[k] = zeros_of(gradient_spec(kept_y[k].spec()));
    if (dy[k].slices() && !rule.passes_slices) dy[k] = dy[k].dense();
  }
  // A single output that was not saved has dy's spec, which is enough for an elementwise rule with one
  // cotangent.
  if (!kept_y[0].defined() && (rule.reads_shapes || pass_.directions))
    kept_y[0] = shape_only(tape_.spec(e.y()[0]));
}

// Returns the gradient accumulated for a tensor if the rule may add its own term to it in place: a single
// dense term that has no other owner. Returns none if the vjp runs as ops, which cannot accumulate in place:
// adding would then sum term by term instead of all terms at once.
[[gnu::noinline]] Gradient Backprop::term_to_add_to(const Rule& rule, Slot s, std::span<const Gradient> dy) {
  TensorState& t = tensor(s);
  if (options_.aggregation != Aggregation::add_n || (pass_.directions && !rule.stacks) || !dy[0].is_dense())
    return {};
  if (rule.kind != RuleKind::linear && (thread_state.innermost || pass_.directions)) return {};
  if (!t.first.is_dense() || !t.first.tensor().unique() || !t.more.empty()) return {};
  if (t.narrow || is_half(t.first.tensor().dtype())) return {};   // halves are summed in f32
  return std::exchange(t.first, {});
}

inline void Backprop::check(TapeEntry& e, std::size_t i, const Gradient& dx) const {
  const Spec& x = tape_.spec(e.x()[i]);
  const IndexedSlices* slices = dx.slices();
  const DType dtype = slices ? slices->values.dtype() : dx.tensor().dtype();
  const Shape& shape = slices ? (slices->dense_shape ? *slices->dense_shape : x.shape) : dx.tensor().shape();
  if (dtype != x.dtype || (pass_.directions ? gradient_spec(x).shape != shape : shape != x.shape))
      [[unlikely]]
    throw_error<GradientError>("{}: the rule's gradient of input {} is {}, the input is {}", name_of(e), i,
                               Spec{dtype, shape}, pass_.directions ? gradient_spec(x) : x);
  if (!slices && !dx.tensor().has_values() && shape.size()) [[unlikely]]
    throw_error<GradientError>(
        "{}: the rule's gradient of input {} is a tensor whose data was not kept; a rule declares the inputs "
        "and outputs that it reads, as by Rule::custom({{.x = 0b1, .y = true}}, …)",
        name_of(e), i);
}

template <bool arrivals> inline void Backprop::release(Slot s) {
  if (--tensor(s).usages > 0) return;
  const std::int32_t p = producer(s);
  if (p >= 0 && --pending(p) == 0) ready_.push_back(p);
  if constexpr (arrivals)
    if (p < 0) arrive(s);
}

}   // namespace tapedeck
