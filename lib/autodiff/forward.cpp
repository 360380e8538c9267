// Forward mode. In: executions. Out: their tangents, computed at once by the op's rule and seen only by outer recorders.
#include "autodiff/forward.h"

#include "autodiff/pull_back.h"
#include "base/format.h"
#include "tapedeck/forward_accumulator.h"
#include "tapedeck/gradient_tape.h"
#include "tapedeck/ops/array.h"

namespace tapedeck {

Forward::Forward(std::span<const Tensor> primals, std::span<const Tensor> tangents) {
  if (primals.size() != tangents.size()) throw_error<ArgumentError>("forward accumulator: {} tangents for {} primals", tangents.size(), primals.size());
  for (std::size_t i = 0; i < primals.size(); ++i) {
    const Tensor &primal = primals[i], &tangent = tangents[i];
    if (primal.dtype() != tangent.dtype()) throw_error<DTypeError>("forward accumulator: the primal is {}, its tangent {}; use astype", primal.spec(), tangent.spec());
    if (primal.shape() != tangent.shape()) throw_error<ShapeError>("forward accumulator: the primal is {}, its tangent {}", primal.spec(), tangent.spec());
    if (slot_of(primal) >= 0) throw_error<ArgumentError>("forward accumulator: primal {}, {}, is given several times; add its tangents up", i, primal.spec());
    put(primal, tangent);
  }
}

void Forward::put(const Tensor& x, Tensor tangent) {
  reserve_names(1);
  std::int32_t slot = static_cast<std::int32_t>(tangents_.size());
  if (free_.empty()) {
    if (free_.capacity() == tangents_.size()) free_.reserve(2 * tangents_.size() + 8);   // so that a tensor's end never allocates
    tangents_.push_back({std::move(tangent), x.id(), 1u + x.handle()->copies});
  } else {
    slot = free_.back();
    free_.pop_back();
    tangents_[static_cast<std::size_t>(slot)] = {std::move(tangent), x.id(), 1u + x.handle()->copies};
  }
  name(x, slot);
}

void Forward::ended(std::int32_t slot) noexcept {
  Tangent& t = tangents_[static_cast<std::size_t>(slot)];
  if (--t.handles > 0) return;
  unname(t.id);
  free_.push_back(slot);
  const Tensor gone = std::move(t.value);   // may end other tensors, and come back here
}

const Tensor& Forward::tangent_of(const Tensor& x) const {
  static const Tensor none;
  const std::int32_t i = slot_of(x);
  return i < 0 ? none : tangents_[static_cast<std::size_t>(i)].value;
}

namespace {

// The vjp is linear in the cotangents u, so its gradient in u, with the tangents as weights, is what it is the transpose of.
void transpose_vjp(const Call& c, Refs dx, std::span<Tensor> dy) {
  if (!c.op.rule.vjp) throw_error<GradientError>("{}: this op must not be differentiated", c.op.name);
  GradientTape tape;
  std::vector<Tensor> u;
  std::vector<Gradient> cotangents;
  for (int k = 0; k < c.y.size(); ++k) {
    cotangents.emplace_back(u.emplace_back(ones_like(c.y[k])));
    if (is_trainable(u.back().dtype())) tape.watch(u.back());
  }
  std::vector<Gradient> back(static_cast<std::size_t>(c.x.size()));
  pull_back(c, cotangents, back);
  std::vector<Tensor> targets;
  GradientOptions options;
  for (int i = 0; i < dx.size(); ++i) {
    if (!dx[i].defined() || !back[static_cast<std::size_t>(i)].defined()) continue;
    targets.push_back(back[static_cast<std::size_t>(i)].dense());
    options.output_gradients.push_back(dx[i]);
  }
  if (targets.empty()) return;
  std::vector<Gradient> result = tape.gradient(targets, u, options);
  for (std::size_t k = 0; k < result.size(); ++k) if (result[k].defined()) dy[k] = std::move(result[k]).dense();
}

}  // namespace

void Forward::record(const Call& c, std::span<Tensor> y) {
  sweep_mail();
  std::vector<Tensor> held(static_cast<std::size_t>(c.x.size()));   // the rule's ops may move the list of tangents
  std::vector<const Tensor*> dx;
  bool any = false;
  for (int i = 0; i < c.x.size(); ++i) {
    Tensor& t = held[static_cast<std::size_t>(i)] = tangent_of(c.x[i]);
    dx.push_back(&t);
    any |= t.defined();
  }
  if (!any) return;
  std::vector<const Tensor*> refs_y;
  for (const Tensor& t : y) refs_y.push_back(&t);
  const Call call{.op = c.op, .raw_attrs = c.raw_attrs, .x = c.x, .y = {refs_y.data(), static_cast<int>(refs_y.size())}};
  std::vector<Tensor> dy(y.size());
  {
    const RecordingScope outside(outer());
    if (c.op.rule.jvp) c.op.rule.jvp(call, {dx.data(), c.x.size()}, dy);
    else transpose_vjp(call, {dx.data(), c.x.size()}, dy);
  }
  for (std::size_t k = 0; k < y.size(); ++k)
    if (dy[k].defined() && is_trainable(y[k].dtype()) && slot_of(y[k]) < 0) put(y[k], std::move(dy[k]));
}

ForwardAccumulator::ForwardAccumulator(const Tensor& primal, const Tensor& tangent) : ForwardAccumulator(std::span(&primal, 1), std::span(&tangent, 1)) {}
ForwardAccumulator::ForwardAccumulator(std::span<const Tensor> primals, std::span<const Tensor> tangents)
    : forward_(std::make_unique<Forward>(primals, tangents)) { forward_->enter(); }
ForwardAccumulator::~ForwardAccumulator() = default;
Tensor ForwardAccumulator::jvp(const Tensor& x) const { return forward_->tangent_of(x); }

}  // namespace tapedeck
