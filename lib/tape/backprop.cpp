// The optional parts of a backward pass: leaving ops out, and reporting the gradients of sources during the
// pass.
#include "tape/backprop.h"

#include <algorithm>

namespace tapedeck {

Backprop::Backprop(const VSpace& space, Tape& tape, std::span<const Tensor> targets,
                   std::span<const Tensor> sources, const GradientOptions& options, const PassOptions& pass)
    : space_(space),
      tape_(tape),
      targets_(targets),
      sources_(sources),
      options_(options),
      pass_(pass),
      leaves_out_zeros_(tape.has_zeros && !pass.arrival && !thread_state.innermost),
      tensors_(tape.slots()),
      pending_(static_cast<std::size_t>(tape.entries().end()), kNotNeeded) {
  for (const Tensor& s : sources) {
    const Slot slot = tape.slot_of(s);
    if (slot < 0 || tensor(slot).is_source) continue;
    tensor(slot).is_source = true;
    if (tape.producer(slot) < 0) ++watched_sources_;
  }
  for (const Tensor& s : pass.stops)
    if (const Slot slot = tape.slot_of(s); slot >= 0)
      tensor(slot).stopped = true, tensor(slot).left_out = !tensor(slot).is_source;
}

// Takes all tensors that depend on no source out of the pass, and the producers of sources that depend on no
// other source. Depth first: ~k on the stack stands for entry k after its inputs were visited.
void Backprop::leave_out() {
  CachedVector<std::int32_t> stack, with_zeros;
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
    bool any_leads = false;
    for (std::size_t i = 0; i < e.x().size(); ++i)
      any_leads |= leads(e, i);
    if (any_leads) continue;
    if (leaves_out_zeros_ && e.op->rule.zero_in) with_zeros.push_back(k);
    for (const Slot y : e.y())
      if (y >= 0) tensor(y).stopped = true, tensor(y).left_out = !tensor(y).is_source;
  }
  hand_out_zeros(with_zeros);
}

// Marks the sources that reach an op that was left out because its derivative is zeros: they get zeros.
void Backprop::hand_out_zeros(std::span<const std::int32_t> entries) {
  CachedVector<std::int32_t> stack;
  for (const std::int32_t k : entries)
    stack.push_back(k);
  while (!stack.empty()) {
    const std::int32_t k = stack.back();
    stack.pop_back();
    for (const Slot x : tape_.entries()[k].x()) {
      if (!takes_part(x)) continue;
      tensor(x).gets_zeros = true;
      if (const std::int32_t p = producer(x); p >= 0 && std::exchange(pending(p), kGetsZeros) != kGetsZeros)
        stack.push_back(p);
    }
  }
}

// Among the ops that have become ready since the last call, those that only complete a source run first. The
// order of summation is unchanged.
void Backprop::prioritize() {
  const std::size_t seen = std::exchange(passed_over_, ready_.size() - 1);
  const auto completes_a_source = [this](std::int32_t k) {
    const std::span<const Slot> x = tape_.entries()[k].x();
    return x.size() == 1 && takes_part(x[0]) && producer(x[0]) < 0 && tensor(x[0]).usages == 1;
  };
  std::stable_partition(ready_.begin() + static_cast<std::ptrdiff_t>(seen), ready_.end(),
                        [&](std::int32_t k) { return !completes_a_source(k); });
}

void Backprop::arrive(Slot s) {
  if (!tensor(s).is_source) return;
  if (source_index_.empty()) {
    source_index_.resize(tensors_.size());
    for (std::size_t i = sources_.size(); i-- > 0;)
      if (const Slot source = tape_.slot_of(sources_[i]); source >= 0)
        source_index_[static_cast<std::size_t>(source)] = i;
  }
  (*pass_.arrival)(source_index_[static_cast<std::size_t>(s)], tensor(s).sum_terms(space_));
}

Gradient Backprop::output_gradient(std::size_t i) const {
  if (i < options_.output_gradients.size() && options_.output_gradients[i].defined()) {
    const Gradient& given = options_.output_gradients[i];
    if (const IndexedSlices* s = given.slices(); s && !s->dense_shape)
      return IndexedSlices{s->values, s->indices, targets_[i].shape()};
    return given;
  }
  return space_.ones(targets_[i].spec());
}

const Tensor& Backprop::zeros_of(const Spec& spec) {
  if (!zeros_.defined() || zeros_.spec() != spec) zeros_ = space_.zeros(spec);
  return zeros_;
}

}   // namespace tapedeck
