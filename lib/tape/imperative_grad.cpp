// Reverse mode over a tape. In: targets, their gradients, sources. Out: the gradient of the targets' sum for
// each source.
//
// An *op* is one TapeEntry; a *tensor* is one slot. We walk back from the *targets*, counting for every
// tensor how often the ops found use it, and for every op how many of its outputs are used (filter). Ops
// whose outputs nobody uses are ready; targets get ones or the given gradients (seed). Then we take a ready
// op, sum the gradient terms of each of its outputs, let its rule turn them into terms for its inputs, and
// count the uses of the inputs down; a tensor without uses left lets its producer become ready, once all
// outputs of that op are complete (drain). What remains for the *sources* is the result (collect). An output
// that got nothing counts as zeros; an op of which no output got anything is passed over. Several terms for
// one tensor are kept and summed in one pass when its uses are done, or early when they are many and large,
// so that they never take much more memory than min_aggregate_bytes. Each op runs once: time and memory of
// the bookkeeping are linear in the tape, and the peak of gradient memory is that of the terms that wait.
// Entries of a tape that is used up are freed as soon as they have run. Who wants it is told of a watched
// source as soon as its uses are done: nothing more comes to it, while the pass goes on.
//
// A pass may carry many cotangents at once: each gradient then has one more axis in front. Rules let it
// through, or are run for one cotangent after the other. Where tensors are watched that nobody asks for, ops
// that lead to no source are left out first.
#include "tape/imperative_grad.h"

#include <algorithm>

#include "core/format.h"
#include "core/storage.h"
#include "op/observer.h"
#include "op/pull_back.h"
#include "op/stacked.h"
#include "tapedeck/ops/slice.h"

namespace tapedeck {
namespace {

class Backprop {
 public:
  Backprop(const VSpace& space, Tape& tape, std::span<const Tensor> targets, std::span<const Tensor> sources,
           const GradientOptions& options, const Pass& pass)
      : space_(space),
        tape_(tape),
        targets_(targets),
        sources_(sources),
        options_(options),
        pass_(pass),
        tensors_(tape.slots()),
        pending_(static_cast<std::size_t>(tape.entries().end()), kNotNeeded) {
    for (const Tensor& s : sources)
      if (const Slot slot = tape.slot_of(s); slot >= 0) tensor(slot).is_source = true;
    for (const Tensor& s : pass.stops)
      if (const Slot slot = tape.slot_of(s); slot >= 0)
        tensor(slot).stopped = true, tensor(slot).left_out = !tensor(slot).is_source;
  }

  // Takes all tensors that depend on no source out of the pass.
  void leave_out() {
    CachedVector<std::int32_t> stack;   // ~k: the producers of what k takes are done
    const auto visit = [&](Slot s) {
      const std::int32_t p = producer(s);
      if (p < 0)
        tensor(s).left_out = !tensor(s).is_source;
      else if (pending(p) != kSeen)
        stack.push_back(p);
    };
    for (const Tensor& t : targets_)
      if (const Slot s = tape_.slot_of(t); s >= 0) visit(s);
    while (!stack.empty()) {
      const std::int32_t top = stack.back(), k = top < 0 ? ~top : top;
      TapeEntry& e = tape_.entries()[k];
      stack.pop_back();
      if (top >= 0) {
        if (std::exchange(pending(k), kSeen) == kSeen) continue;
        stack.push_back(~k);
        for (const Slot x : e.x())
          if (x >= 0) visit(x);
        continue;
      }
      bool leads = false;
      for (const Slot x : e.x())
        leads |= takes_part(x);
      if (!leads)
        for (const Slot y : e.y())
          if (y >= 0 && !tensor(y).is_source) tensor(y).left_out = true;
    }
  }

  void filter() {
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

  void seed() {
    for (std::size_t i = 0; i < targets_.size(); ++i)
      if (const Slot s = tape_.slot_of(targets_[i]); takes_part(s)) accumulate(s, output_gradient(i));
  }

  // tells: whether somebody waits for sources.
  template <bool tells> [[gnu::noinline]] void drain() {
    while (!ready_.empty()) {
      if constexpr (tells) hasten();
      const std::int32_t k = ready_.back();
      ready_.pop_back();
      TapeEntry& e = tape_.entries()[k];
      pull_back<tells>(e);
      if (tape_.used && !pass_.keep_entries) e.drop_kept();
    }
  }

  Gradient collect(const Tensor& source) {
    if (const Slot s = tape_.slot_of(source); s >= 0) return sum_terms(s);
    // A target that the tape does not know still is its own derivative.
    std::vector<Gradient> terms;
    for (std::size_t i = 0; i < targets_.size(); ++i)
      if (targets_[i].id() == source.id() && is_trainable(source.dtype()))
        terms.push_back(output_gradient(i));
    return terms.size() > 1 ? space_.aggregate(terms) : terms.empty() ? Gradient() : terms[0];
  }

 private:
  static constexpr std::int32_t kNotNeeded = -1, kSeen = -2;

  struct TensorState {
    std::int32_t usages = 0;
    std::uint32_t further : 29 = 0;   // terms that have come after the first
    std::uint32_t is_source : 1 = false, stopped : 1 = false, left_out : 1 = false;
    Gradient first;   // most tensors get one term
    std::vector<Gradient> more;
  };

  TensorState& tensor(Slot s) { return tensors_[static_cast<std::size_t>(s)]; }
  std::int32_t& pending(std::int32_t entry) { return pending_[static_cast<std::size_t>(entry)]; }

  bool takes_part(Slot s) const { return s >= 0 && !tensors_[static_cast<std::size_t>(s)].left_out; }
  std::int32_t producer(Slot s) { return tensor(s).stopped ? -1 : tape_.producer(s); }
  /// What the gradient of such a tensor looks like in this pass.
  Spec gradient_spec(const Spec& s) const {
    return pass_.directions ? Spec{s.dtype, behind({pass_.directions}, s.shape)} : s;
  }

  Gradient output_gradient(std::size_t i) const {
    if (i < options_.output_gradients.size() && options_.output_gradients[i].defined())
      return options_.output_gradients[i];
    return space_.ones(targets_[i].spec());
  }

  // Sums what has come for a tensor into one term and returns it.
  const Gradient& sum_terms(Slot s) {
    TensorState& t = tensor(s);
    if (!t.more.empty()) [[unlikely]]
      sum_terms(t);
    return t.first;
  }
  [[gnu::noinline]] void sum_terms(TensorState& t) {
    t.more.insert(t.more.begin(), std::move(t.first));
    t.first = space_.aggregate(t.more);
    t.more.clear();
  }

  void accumulate(Slot s, Gradient&& g) {
    TensorState& t = tensor(s);
    if (t.first.defined()) [[unlikely]]
      accumulate_further(t, std::move(g));
    else
      t.first = std::move(g);
  }
  [[gnu::noinline]] void accumulate_further(TensorState& t, Gradient&& g) {
    ++t.further;
    const std::int64_t nbytes = space_.nbytes(g);
    t.more.push_back(std::move(g));
    if (options_.aggregation == Aggregation::accumulate_n) sum_terms(t);
    if (options_.aggregation == Aggregation::tree) sum_pairs(t);
    if (options_.aggregation != Aggregation::add_n) return;
    const std::size_t count = t.more.size() + 1;
    if (count >= options_.min_aggregate_count &&
        static_cast<std::int64_t>(count) * nbytes > options_.min_aggregate_bytes)
      sum_terms(t);
  }

  // The last two are sums of as many terms as often as the number of all terms is even.
  void sum_pairs(TensorState& t) {
    for (std::uint32_t n = t.further + 1; n % 2 == 0; n /= 2) {
      if (t.more.size() == 1) return sum_terms(t);
      Gradient pair[] = {std::move(t.more[t.more.size() - 2]), std::move(t.more.back())};
      t.more.pop_back();
      t.more.back() = space_.aggregate(std::span<Gradient>(pair));
    }
  }

  template <bool tells> void pull_back(TapeEntry& e) {
    Gradient one_dy;
    std::vector<Gradient> more_dy(e.outputs > 1 ? static_cast<std::size_t>(e.outputs) : 0);
    const std::span<Gradient> dy =
        e.outputs > 1 ? std::span<Gradient>(more_dy) : std::span<Gradient>(&one_dy, 1);
    bool any = false;
    const std::span<const Slot> outputs = e.y();
    for (std::size_t k = 0; k < dy.size(); ++k) {
      if (!takes_part(outputs[k]) || tensor(outputs[k]).stopped) continue;
      sum_terms(outputs[k]);
      TensorState& y = tensor(outputs[k]);
      dy[k] = y.is_source ? y.first : std::exchange(y.first, {});
      any |= dy[k].defined();
    }
    if (any) run_rule(e, dy);
    for (const Slot x : e.x())
      if (takes_part(x)) release<tells>(x);
  }

  void run_rule(TapeEntry& e, std::span<Gradient> dy) {
    const Rule& rule = e.op->rule;
    if (!rule.vjp) throw_error<GradientError>("{}: this op must not be differentiated", e.op->name);
    const std::span<Tensor> kept_x = e.kept_x(), kept_y = e.kept_y();
    for (std::size_t k = 0; k < dy.size(); ++k) {
      if (!dy[k].defined() && !rule.accepts_none && is_trainable(kept_y[k].dtype()))
        dy[k] = zeros_of(gradient_spec(kept_y[k].spec()));
      if (dy[k].slices() && !rule.passes_slices) dy[k] = dy[k].dense();
    }
    // A single output of which nothing was kept has dy's spec; elementwise rules need no more than that, if
    // dy is one alone.
    if (!kept_y[0].defined() && (rule.reads_shapes || pass_.directions))
      kept_y[0] = hollow(tape_.spec(e.y()[0]));

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
      if (!takes_part(inputs[i]) || i >= 64) continue;
      wanted |= std::uint64_t{1} << i;
      if (i < 8 && (rule.adds >> i & 1) && tensor(inputs[i]).first.defined()) [[unlikely]]
        dx[i] = term_to_add_to(rule, inputs[i], dy);
    }
    const Tensor* one_y = &kept_y[0];
    std::vector<const Tensor*> more_y;
    if (dy.size() > 1)
      for (const Tensor& t : kept_y)
        more_y.push_back(&t);
    const Refs y(dy.size() > 1 ? more_y.data() : &one_y, e.outputs);

    const Call call{.op = *e.op, .raw_attrs = e.attrs.view(), .x = {x, e.inputs}, .y = y, .wanted = wanted};
    const auto pull_back = [&] {
      if (pass_.directions && !rule.stacks)
        pull_back_each(call, dy, dx);
      else
        tapedeck::pull_back(call, dy, dx);
    };
    if (thread_state.observer) [[unlikely]]
      show_rule({name_of(e), call, true, tape_.place_of(e)}, dy, dx, pull_back);
    else
      pull_back();
    for (std::size_t i = 0; i < n; ++i) {
      if (!takes_part(inputs[i]) || !dx[i].defined()) continue;
      check(e, i, dx[i]);
      accumulate(inputs[i], std::move(dx[i]));
    }
  }

  // A term of a tensor that its next one can be added to, in the memory of the first: all that there is so
  // far, which nobody else has. Where passes add and somebody may record, so that ops take their place, terms
  // are summed at once instead.
  [[gnu::noinline]] Gradient term_to_add_to(const Rule& rule, Slot s, std::span<const Gradient> dy) {
    TensorState& t = tensor(s);
    if (options_.aggregation != Aggregation::add_n || (pass_.directions && !rule.stacks) || !dy[0].is_dense())
      return {};
    if (rule.kind != RuleKind::linear && (thread_state.innermost || pass_.directions)) return {};
    if (!t.first.is_dense() || !t.first.tensor().unique() || !t.more.empty()) return {};
    return std::exchange(t.first, {});
  }

  // A rule that takes one cotangent at a time.
  void pull_back_each(const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
    const std::size_t count = static_cast<std::size_t>(pass_.directions);
    std::vector<std::vector<Tensor>> rows_dy(dy.size()), rows_dx(dx.size());
    for (std::size_t k = 0; k < dy.size(); ++k)
      if (dy[k].defined()) rows_dy[k] = unstack(std::move(dy[k]).dense());
    for (std::size_t j = 0; j < count; ++j) {
      std::vector<Gradient> one_dy(dy.size()), one_dx(dx.size());
      for (std::size_t k = 0; k < dy.size(); ++k)
        if (!rows_dy[k].empty()) one_dy[k] = std::move(rows_dy[k][j]);
      tapedeck::pull_back(c, one_dy, one_dx);
      for (std::size_t i = 0; i < dx.size(); ++i)
        if (one_dx[i].defined()) rows_dx[i].push_back(std::move(one_dx[i]).dense());
    }
    for (std::size_t i = 0; i < dx.size(); ++i) {
      if (rows_dx[i].empty()) continue;
      if (rows_dx[i].size() != count)
        throw_error<GradientError>("{}: the rule's gradient of input {} is none for some cotangents only",
                                   c.op.name, i);
      dx[i] = stack(rows_dx[i]);
    }
  }

  void check(const TapeEntry& e, std::size_t i, const Gradient& dx) const {
    const Spec& x = tape_.spec(const_cast<TapeEntry&>(e).x()[i]);
    const IndexedSlices* slices = dx.slices();
    const DType dtype = slices ? slices->values.dtype() : dx.tensor().dtype();
    const Shape& shape =
        slices ? (slices->dense_shape ? *slices->dense_shape : x.shape) : dx.tensor().shape();
    if (dtype != x.dtype || (pass_.directions ? gradient_spec(x).shape != shape : shape != x.shape))
        [[unlikely]]
      throw_error<GradientError>("{}: the rule's gradient of input {} is {}, the input is {}", name_of(e), i,
                                 Spec{dtype, shape}, x);
  }

  template <bool tells> void release(Slot s) {
    if (--tensor(s).usages > 0) return;
    const std::int32_t p = producer(s);
    if (p >= 0 && --pending(p) == 0) ready_.push_back(p);
    if constexpr (tells)
      if (p < 0) arrive(s);
  }

  // Of the ops that the last one has made ready, those that give a source its last term, and do nothing else,
  // go first: it arrives sooner, and no sum is another one.
  void hasten() {
    const std::size_t waiting = std::exchange(waiting_, ready_.size() - 1);
    std::stable_partition(
        ready_.begin() + static_cast<std::ptrdiff_t>(waiting), ready_.end(), [this](std::int32_t k) {
          const std::span<const Slot> x = tape_.entries()[k].x();
          return !(x.size() == 1 && takes_part(x[0]) && producer(x[0]) < 0 && tensor(x[0]).usages == 1);
        });
  }

  void arrive(Slot s) {
    if (!tensor(s).is_source) return;
    if (numbers_.empty()) {
      numbers_.resize(tensors_.size());
      for (std::size_t i = sources_.size(); i-- > 0;)
        if (const Slot source = tape_.slot_of(sources_[i]); source >= 0)
          numbers_[static_cast<std::size_t>(source)] = i;
    }
    (*pass_.arrival)(numbers_[static_cast<std::size_t>(s)], sum_terms(s));
  }

  const Tensor& zeros_of(const Spec& spec) {
    if (!zeros_.defined() || zeros_.spec() != spec) zeros_ = space_.zeros(spec);
    return zeros_;
  }

  const VSpace& space_;
  Tape& tape_;
  std::span<const Tensor> targets_, sources_;
  const GradientOptions& options_;
  const Pass& pass_;
  CachedVector<TensorState> tensors_;    // by slot
  CachedVector<std::int32_t> pending_;   // by entry: outputs that are used and not complete
  CachedVector<std::int32_t> ready_;
  Tensor zeros_;                       // the last ones that were needed
  std::vector<std::size_t> numbers_;   // of sources, by slot, where one has arrived
  std::size_t waiting_ = 0;            // ready ops that have waited for one turn, where sources arrive
};

}   // namespace

std::vector<Gradient> imperative_grad(const VSpace& space, Tape& tape, std::span<const Tensor> targets,
                                      std::span<const Tensor> sources, const GradientOptions& options,
                                      const Pass& pass) {
  Backprop backprop(space, tape, targets, sources, options, pass);
  if (tape.options().watch_all || pass.directions) backprop.leave_out();
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

}   // namespace tapedeck
