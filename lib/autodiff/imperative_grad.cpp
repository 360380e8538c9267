// Reverse mode over a tape. In: targets, their gradients, sources. Out: the gradient of the targets' sum for each source.
//
// An *op* is one TapeEntry; a *tensor* is one slot. We walk back from the *targets*, counting for every tensor how often the
// ops found use it, and for every op how many of its outputs are used (filter). Ops whose outputs nobody uses are ready; targets
// get ones or the given gradients (seed). Then we take a ready op, sum the gradient terms of each of its outputs, let its rule
// turn them into terms for its inputs, and count the uses of the inputs down; a tensor without uses left lets its producer
// become ready, once all outputs of that op are complete (drain). What remains for the *sources* is the result (collect).
// An output that got nothing counts as zeros; an op of which no output got anything is passed over. Several terms for one tensor
// are kept and summed in one pass when its uses are done, or early when they are many and large, so that they never take much
// more memory than min_aggregate_bytes. Each op runs once: time and memory of the bookkeeping are linear in the tape, and the
// peak of gradient memory is that of the terms that wait. Entries of a tape that is used up are freed as soon as they have run.
#include "autodiff/imperative_grad.h"

#include "autodiff/pull_back.h"
#include "base/format.h"
#include "tensor/storage.h"

namespace tapedeck {
namespace {

class Backprop {
 public:
  Backprop(const VSpace& space, Tape& tape, std::span<const Tensor> targets, std::span<const Tensor> sources, const GradientOptions& options)
      : space_(space), tape_(tape), targets_(targets), sources_(sources), options_(options), tensors_(tape.slots()),
        pending_(static_cast<std::size_t>(tape.entries().end()), kNotNeeded) {
    for (const Tensor& s : sources)
      if (const Slot slot = tape.slot_of(s); slot >= 0) tensor(slot).is_source = true;
  }

  void filter() {
    CachedVector<std::int32_t> stack, found;
    const auto visit = [&](Slot s) {
      const std::int32_t p = tape_.producer(s);
      if (p < 0 || pending(p) != kNotNeeded) return;
      pending(p) = 0;
      stack.push_back(p);
    };
    for (const Tensor& t : targets_)
      if (const Slot s = tape_.slot_of(t); s >= 0) visit(s);
    while (!stack.empty()) {
      const std::int32_t k = found.emplace_back(stack.back());
      stack.pop_back();
      for (const Slot x : tape_.entries()[k].x()) {
        if (x < 0) continue;
        visit(x);
        if (tensor(x).usages++ == 0 && tape_.producer(x) >= 0) ++pending(tape_.producer(x));
      }
    }
    for (const std::int32_t k : found) if (pending(k) == 0) ready_.push_back(k);
  }

  void seed() {
    for (std::size_t i = 0; i < targets_.size(); ++i)
      if (const Slot s = tape_.slot_of(targets_[i]); s >= 0) accumulate(s, output_gradient(i));
  }

  void drain() {
    while (!ready_.empty()) {
      const std::int32_t k = ready_.back();
      ready_.pop_back();
      TapeEntry& e = tape_.entries()[k];
      pull_back(e);
      if (tape_.used) e.drop_kept();
    }
  }

  Gradient collect(const Tensor& source) {
    if (const Slot s = tape_.slot_of(source); s >= 0) return sum_terms(s);
    // A target that the tape does not know still is its own derivative.
    std::vector<Gradient> terms;
    for (std::size_t i = 0; i < targets_.size(); ++i)
      if (targets_[i].id() == source.id() && is_trainable(source.dtype())) terms.push_back(output_gradient(i));
    return terms.size() > 1 ? space_.aggregate(terms) : terms.empty() ? Gradient() : terms[0];
  }

 private:
  static constexpr std::int32_t kNotNeeded = -1;

  struct TensorState {
    std::int32_t usages = 0;
    bool is_source = false;
    Gradient first;                // most tensors get one term
    std::vector<Gradient> more;
  };

  TensorState& tensor(Slot s) { return tensors_[static_cast<std::size_t>(s)]; }
  std::int32_t& pending(std::int32_t entry) { return pending_[static_cast<std::size_t>(entry)]; }

  Gradient output_gradient(std::size_t i) const {
    if (i < options_.output_gradients.size() && options_.output_gradients[i].defined()) return options_.output_gradients[i];
    return space_.ones(targets_[i].spec());
  }

  // Sums what has come for a tensor into one term and returns it.
  const Gradient& sum_terms(Slot s) {
    TensorState& t = tensor(s);
    if (!t.more.empty()) {
      t.more.insert(t.more.begin(), std::move(t.first));
      t.first = space_.aggregate(t.more);
      t.more.clear();
    }
    return t.first;
  }

  void accumulate(Slot s, Gradient g) {
    TensorState& t = tensor(s);
    if (!t.first.defined()) {
      t.first = std::move(g);
      return;
    }
    const std::int64_t nbytes = space_.nbytes(g);
    t.more.push_back(std::move(g));
    const std::size_t count = t.more.size() + 1;
    if (count >= options_.min_aggregate_count && static_cast<std::int64_t>(count) * nbytes > options_.min_aggregate_bytes) sum_terms(s);
  }

  void pull_back(TapeEntry& e) {
    Gradient one_dy;
    std::vector<Gradient> more_dy(e.outputs > 1 ? static_cast<std::size_t>(e.outputs) : 0);
    const std::span<Gradient> dy = e.outputs > 1 ? std::span<Gradient>(more_dy) : std::span<Gradient>(&one_dy, 1);
    bool any = false;
    const std::span<const Slot> outputs = e.y();
    for (std::size_t k = 0; k < dy.size(); ++k) {
      if (outputs[k] < 0) continue;
      sum_terms(outputs[k]);
      TensorState& y = tensor(outputs[k]);
      dy[k] = y.is_source ? y.first : std::exchange(y.first, {});
      any |= dy[k].defined();
    }
    if (any) run_rule(e, dy);
    for (const Slot x : e.x()) if (x >= 0) release(x);
  }

  void run_rule(TapeEntry& e, std::span<Gradient> dy) {
    const Rule& rule = e.op->rule;
    if (!rule.vjp) throw_error<GradientError>("{}: this op must not be differentiated", e.op->name);
    const std::span<Tensor> kept_x = e.kept_x(), kept_y = e.kept_y();
    for (std::size_t k = 0; k < dy.size(); ++k) {
      if (!dy[k].defined() && !rule.accepts_none && is_trainable(kept_y[k].dtype())) dy[k] = zeros_of(kept_y[k].spec());
      if (dy[k].slices() && !rule.passes_slices) dy[k] = dy[k].dense();
    }
    // A single output of which nothing was kept has dy's spec; elementwise rules need no more than that.
    if (!kept_y[0].defined() && rule.reads_shapes) kept_y[0] = hollow(tape_.spec(e.y()[0]));

    const std::span<const Slot> inputs = e.x();
    const std::size_t n = inputs.size();
    const Tensor* few_x[kMaxInputs];
    Gradient few_dx[kMaxInputs];
    std::vector<const Tensor*> more_x(n > kMaxInputs ? n : 0);
    std::vector<Gradient> more_dx(n > kMaxInputs ? n : 0);
    const Tensor** x = n > kMaxInputs ? more_x.data() : few_x;
    const std::span<Gradient> dx(n > kMaxInputs ? more_dx.data() : few_dx, n);
    std::uint64_t wanted = 0;
    for (std::size_t i = 0; i < n; ++i) {
      x[i] = &kept_x[i];
      if (inputs[i] >= 0 && i < 64) wanted |= std::uint64_t{1} << i;
    }
    const Tensor* one_y = &kept_y[0];
    std::vector<const Tensor*> more_y;
    if (dy.size() > 1) for (const Tensor& t : kept_y) more_y.push_back(&t);
    const Refs y(dy.size() > 1 ? more_y.data() : &one_y, e.outputs);

    tapedeck::pull_back({.op = *e.op, .raw_attrs = e.attrs.view(), .x = {x, e.inputs}, .y = y, .wanted = wanted}, dy, dx);
    for (std::size_t i = 0; i < n; ++i) {
      if (inputs[i] < 0 || !dx[i].defined()) continue;
      check(e, i, dx[i]);
      accumulate(inputs[i], std::move(dx[i]));
    }
  }

  void check(const TapeEntry& e, std::size_t i, const Gradient& dx) const {
    const Spec& x = tape_.spec(const_cast<TapeEntry&>(e).x()[i]);
    const IndexedSlices* slices = dx.slices();
    const DType dtype = slices ? slices->values.dtype() : dx.tensor().dtype();
    const Shape& shape = slices ? (slices->dense_shape ? *slices->dense_shape : x.shape) : dx.tensor().shape();
    if (dtype != x.dtype || shape != x.shape) [[unlikely]]
      throw_error<GradientError>("{}: the rule's gradient of input {} is {}, the input is {}", e.op->name, i, Spec{dtype, shape}, x);
  }

  void release(Slot s) {
    if (--tensor(s).usages > 0) return;
    const std::int32_t p = tape_.producer(s);
    if (p >= 0 && --pending(p) == 0) ready_.push_back(p);
  }

  const Tensor& zeros_of(const Spec& spec) {
    if (!zeros_.defined() || zeros_.spec() != spec) zeros_ = space_.zeros(spec);
    return zeros_;
  }

  const VSpace& space_;
  Tape& tape_;
  std::span<const Tensor> targets_, sources_;
  const GradientOptions& options_;
  CachedVector<TensorState> tensors_;      // by slot
  CachedVector<std::int32_t> pending_;     // by entry: outputs that are used and not complete
  CachedVector<std::int32_t> ready_;
  Tensor zeros_;                          // the last ones that were needed
};

}  // namespace

std::vector<Gradient> imperative_grad(const VSpace& space, Tape& tape, std::span<const Tensor> targets, std::span<const Tensor> sources,
                                      const GradientOptions& options) {
  Backprop backprop(space, tape, targets, sources, options);
  backprop.filter();
  backprop.seed();
  backprop.drain();
  std::vector<Gradient> result;
  for (const Tensor& s : sources) result.push_back(backprop.collect(s));
  return result;
}

}  // namespace tapedeck
