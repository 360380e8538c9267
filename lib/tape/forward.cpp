// Forward mode. In: ops that were executed. Out: tangents of their outputs, computed immediately by the rule
// of each op. Ops that compute a tangent are recorded by outer recorders only.
#include "tape/forward.h"

#include <algorithm>

#include "core/format.h"
#include "core/storage.h"
#include "core/trace.h"
#include "op/primitives.h"
#include "op/pull_back.h"
#include "op/recorded_rule.h"
#include "op/stacked_shapes.h"
#include "op/widened_copies.h"
#include "tape/tape.h"
#include "tapedeck/forward_accumulator.h"

namespace tapedeck {

void Forward::check(const Tensor& primal, const Tensor& tangent) const {
  if (!primal.defined()) throw ArgumentError("forward accumulator: a primal is undefined");
  if (!tangent.defined())
    throw_error<ArgumentError>("forward accumulator: the tangent of {} is undefined", primal.spec());
  if (primal.dtype() != tangent.dtype())
    throw_error<DTypeError>("forward accumulator: the primal is {}, its tangent {}; use astype",
                            primal.spec(), tangent.spec());
  if (!stacked_) {
    if (primal.shape() != tangent.shape())
      throw_error<ShapeError>("forward accumulator: the primal is {}, its tangent {}", primal.spec(),
                              tangent.spec());
    return;
  }
  if (tangent.ndim() != primal.ndim() + 1 ||
      tangent.shape() != behind_extra(tangent, primal.ndim(), primal.shape()))
    throw_error<ShapeError>(
        "forward accumulator: the primal is {}, its stack of tangents {}; it must have one more axis, in "
        "front",
        primal.spec(), tangent.spec());
  if (directions_ >= 0 && tangent.shape()[0] != directions_)
    throw_error<ShapeError>(
        "forward accumulator: the tangent of {} has {} directions, but earlier ones have {}", primal.spec(),
        tangent.shape()[0], directions_);
}

void Forward::watch(const Tensor& primal, const Tensor& tangent) {
  check(primal, tangent);
  if (!is_trainable(primal.dtype()))
    return warn(
        fmt::format("forward accumulator: a primal is {}, which has no derivative", name_of(primal.dtype())));
  drain_ended();
  if (const std::int32_t slot = slot_of(primal); slot >= 0) {
    Tensor sum;
    {
      const RecordingScope outside(entered() ? outer() : thread_state.innermost);
      sum = add(tangent_of(primal), tangent);
    }
    tangents_[static_cast<std::size_t>(slot)].value = std::move(sum);
  } else {
    put(primal, tangent);
  }
  if (stacked_) directions_ = tangent.shape()[0];
}

void Forward::put(const Tensor& x, Tensor tangent) {
  reserve_ids(1);
  std::int32_t slot = static_cast<std::int32_t>(tangents_.size());
  if (free_.empty()) {
    if (free_.capacity() == tangents_.size())
      free_.reserve(2 * tangents_.size() + 8);   // so that releasing a tensor never allocates
    tangents_.push_back({std::move(tangent), x.id(), 1u + x.handle()->copies});
  } else {
    slot = free_.back();
    free_.pop_back();
    tangents_[static_cast<std::size_t>(slot)] = {std::move(tangent), x.id(), 1u + x.handle()->copies};
  }
  assign_slot(x, slot);
}

void Forward::ended(std::int32_t slot) noexcept {
  Tangent& t = tangents_[static_cast<std::size_t>(slot)];
  if (--t.handles > 0) return;
  drop_id(t.id);
  free_.push_back(slot);
  const Tensor gone = std::move(t.value);   // may release other tensors, and so call this function again
}

const Tensor& Forward::tangent_of(const Tensor& x) const {
  static const Tensor none;
  const std::int32_t i = slot_of(x);
  return i < 0 ? none : tangents_[static_cast<std::size_t>(i)].value;
}

Tensor Forward::zeros_for(const Spec& x) const {
  return zeros(stacked_ ? behind({directions_}, x.shape) : x.shape, x.dtype);
}

void Forward::read(detail::VariableCell& cell, Tensor& value) {
  if (const Tensor tangent = tangent_of(cell.handle); tangent.defined()) put(value, tangent);
}

void transpose_vjp(const Call& c, Refs dx, std::span<Tensor> dy) {
  if (!c.op.rule.vjp) throw_error<GradientError>("{}: this op must not be differentiated", c.op.name);
  Shape front;
  std::uint64_t wanted = 0;
  for (int i = 0; i < dx.size(); ++i) {
    if (!dx[i].defined()) continue;
    if (i < 64) wanted |= std::uint64_t{1} << i;
    front = extra_of(dx[i], c.x[i].ndim());
  }
  GradientTape tape;
  std::vector<Tensor> u;      // cotangents of the outputs that have derivatives
  std::vector<int> outputs;   // the indices of these outputs
  std::vector<Gradient> cotangents;
  for (int k = 0; k < c.y.size(); ++k) {
    const Tensor one = ones(behind(front, c.y[k].shape()), c.y[k].dtype());
    cotangents.emplace_back(one);
    if (!is_trainable(one.dtype())) continue;
    tape.watch(u.emplace_back(one));
    outputs.push_back(k);
  }
  std::vector<Gradient> back(static_cast<std::size_t>(c.x.size()));
  pull_back({.op = c.op, .raw_attrs = c.raw_attrs, .x = c.x, .y = c.y, .wanted = wanted}, cotangents, back);
  std::vector<Tensor> targets;
  GradientOptions options;
  for (int i = 0; i < dx.size(); ++i) {
    if (!dx[i].defined() || !back[static_cast<std::size_t>(i)].defined()) continue;
    targets.push_back(back[static_cast<std::size_t>(i)].dense());
    options.output_gradients.push_back(dx[i]);
  }
  if (targets.empty()) return;
  std::vector<Gradient> result = tape.gradient(targets, u, options);
  for (std::size_t j = 0; j < result.size(); ++j)
    if (result[j].defined()) dy[static_cast<std::size_t>(outputs[j])] = std::move(result[j]).dense();
}

namespace {

void run_jvp(const Call& c, Refs dx, std::span<Tensor> dy) {
  if (c.op.rule.jvp && (any_stored(c.x) || any_stored(c.y)) && rule_runs_widened(c.op)) [[unlikely]]
    push_forward_widened(c, dx, dy);
  else if (c.op.rule.jvp)
    c.op.rule.jvp(c, dx, dy);
  else
    transpose_vjp(c, dx, dy);
}

// Records the ops of the rule, or, if the rule reads numbers of its inputs, the whole rule as an action.
[[gnu::noinline]] void push_forward_recorded(const Call& c, Refs dx, std::span<Tensor> dy) {
  const auto rule = [&] { run_jvp(c, dx, dy); };
  if (thread_state.trace->attempt(std::ref(rule))) return;
  std::vector<Tensor> tangents;
  for (int i = 0; i < dx.size(); ++i)
    tangents.push_back(dx[i]);
  for (Tensor& t : dy)   // which may be one of the tangents dx
    if (t.defined() && !thread_state.innermost) t = share(t);
  record_rule(c, tangents, dy, [n = dy.size()](const Call& call, std::span<const Tensor> given) {
    std::vector<const Tensor*> refs;
    for (const Tensor& t : given)
      refs.push_back(&t);
    std::vector<Tensor> y(n);
    run_jvp(call, {refs.data(), static_cast<int>(refs.size())}, y);
    return y;
  });
}

}   // namespace

void push_forward(const Call& c, Refs dx, std::span<Tensor> dy) {
  if (thread_state.trace) [[unlikely]]
    push_forward_recorded(c, dx, dy);
  else
    run_jvp(c, dx, dy);
}

namespace {

// Runs the rule once per direction, for ops that do not support stacks.
void push_one_by_one(const Call& c, Refs dx, std::span<Tensor> dy, std::int64_t directions) {
  std::vector<std::vector<Tensor>> rows_dx(static_cast<std::size_t>(dx.size())), results(dy.size());
  for (int i = 0; i < dx.size(); ++i)
    if (dx[i].defined()) rows_dx[static_cast<std::size_t>(i)] = unstack(dx[i], 0);
  for (std::int64_t j = 0; j < directions; ++j) {
    const Tensor none;
    std::vector<Tensor> one(dy.size());
    std::vector<const Tensor*> refs;
    refs.reserve(rows_dx.size());
    for (const std::vector<Tensor>& rows : rows_dx)
      refs.push_back(rows.empty() ? &none : &rows[static_cast<std::size_t>(j)]);
    push_forward(c, {refs.data(), dx.size()}, one);
    for (std::size_t k = 0; k < dy.size(); ++k)
      results[k].push_back(std::move(one[k]));
  }
  for (std::size_t k = 0; k < dy.size(); ++k) {
    const Tensor& y = c.y[static_cast<int>(k)];
    if (directions == 0 && is_trainable(y.dtype())) dy[k] = zeros(behind({0}, y.shape()), y.dtype());
    if (std::none_of(results[k].begin(), results[k].end(), [](const Tensor& t) { return t.defined(); }))
      continue;
    for (Tensor& t : results[k])
      if (!t.defined()) t = zeros(y.shape(), y.dtype());
    dy[k] = stack(results[k], 0);
  }
}

}   // namespace

void push_stacks_forward(const Call& c, Refs dx, std::span<Tensor> dy, std::int64_t directions) {
  for (int k = 0; k < c.y.size(); ++k)
    if (c.y[k].ndim() >= Shape::kMaxRank && is_trainable(c.y[k].dtype()))
      throw_error<ShapeError>(
          "{}: an output is {}; stacked tangents have one more axis, and tensors have at most {}; use "
          "reverse mode, or one tangent at a time",
          c.op.name, c.y[k].spec(), Shape::kMaxRank);
  const Rule& rule = c.op.rule;
  if (!rule.stacks || (rule.kind == RuleKind::custom && !rule.vjp && !rule.jvp_stacks))
    push_one_by_one(c, dx, dy, directions);
  else if (rule.kind != RuleKind::custom || rule.jvp_stacks)
    push_forward(c, dx, dy);
  else
    transpose_vjp(c, dx, dy);   // the jvp of a custom rule accepts one tangent only
}

// Throws unless dy, the tangent of y, has y's spec, with the axes `front` of stacked tangents before it.
static void require_tangent(const Op& op, std::size_t k, const Tensor& y, const Tensor& dy,
                            const Shape& front) {
  if (dy.dtype() == y.dtype() &&
      (front.ndim() ? dy.shape() == behind(front, y.shape()) : dy.shape() == y.shape()))
    return;
  throw_error<GradientError>("{}: the rule's tangent of output {} is {}, it should be {}", op.name, k,
                             dy.spec(), Spec{y.dtype(), behind(front, y.shape())});
}

void Forward::record(const Call& c, std::span<Tensor> y) {
  drain_ended();
  // Copies of the tangents: ops of the rule may add tangents, which reallocates tangents_.
  std::vector<Tensor> held(static_cast<std::size_t>(c.x.size()));
  std::vector<const Tensor*> dx;
  bool any = false;
  for (int i = 0; i < c.x.size(); ++i) {
    Tensor& t = held[static_cast<std::size_t>(i)] = tangent_of(c.x[i]);
    dx.push_back(&t);
    any |= t.defined();
  }
  if (!any) return;
  std::vector<const Tensor*> refs_y;
  for (const Tensor& t : y)
    refs_y.push_back(&t);
  const Call call{
      .op = c.op, .raw_attrs = c.raw_attrs, .x = c.x, .y = {refs_y.data(), static_cast<int>(refs_y.size())}};
  std::vector<Tensor> dy(y.size());
  {
    const RecordingScope outside(outer());
    if (stacked_)
      push_stacks_forward(call, {dx.data(), c.x.size()}, dy, directions_);
    else
      push_forward(call, {dx.data(), c.x.size()}, dy);
  }
  for (std::size_t k = 0; k < y.size(); ++k) {
    if (!dy[k].defined() || !is_trainable(y[k].dtype())) continue;
    require_tangent(c.op, k, y[k], dy[k], stacked_ ? Shape{directions_} : Shape{});
    if (slot_of(y[k]) < 0) put(y[k], std::move(dy[k]));
  }
}

ForwardAccumulator::ForwardAccumulator(const Source& primal, const Tensor& tangent, ForwardOptions options)
    : ForwardAccumulator(Sources(primal), std::span(&tangent, 1), options) {}
ForwardAccumulator::ForwardAccumulator(const Sources& primals, std::span<const Tensor> tangents,
                                       ForwardOptions options)
    : forward_(std::make_unique<Forward>(options.stacked)) {
  const std::span<const Source> all = primals.all();
  if (all.size() != tangents.size())
    throw_error<ArgumentError>("forward accumulator: {} tangents for {} primals", tangents.size(),
                               all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Tensor& primal = tensor_of(all[i]);
    if (primal.defined() && forward_->tracks(primal))
      throw_error<ArgumentError>(
          "forward accumulator: primal {}, {}, is given several times; add its tangents up", i,
          primal.spec());
    forward_->watch(primal, tangents[i]);
  }
  forward_->enter();
}
ForwardAccumulator::~ForwardAccumulator() = default;

void ForwardAccumulator::watch(const Source& primal, const Tensor& tangent) {
  require_inside(*forward_, "accumulator", "watch");
  forward_->watch(tensor_of(primal), tangent);
}

void ForwardAccumulator::stop() {
  require_inside(*forward_, "accumulator", "stop");
  if (!forward_->entered()) throw GradientError("stop: this accumulator is not recording");
  forward_->leave();
}
void ForwardAccumulator::start() {
  require_inside(*forward_, "accumulator", "start");
  if (forward_->entered()) throw GradientError("start: this accumulator is recording already");
  forward_->enter();
}
bool ForwardAccumulator::recording() const { return forward_->entered(); }

Gradient ForwardAccumulator::jvp_of(const Source& source, UnconnectedGradients unconnected) const {
  require_inside(*forward_, "accumulator", "jvp");
  const Tensor& x = tensor_of(source);
  if (!x.defined()) throw ArgumentError("jvp: the tensor is undefined");
  check_mode("jvp", unconnected);
  const Tensor& tangent = forward_->tangent_of(x);
  if (tangent.defined()) return tangent;
  if (unconnected == UnconnectedGradients::zero) return forward_->zeros_for(x.spec());
  return Gradient::none("tangent",
                        "it does not depend on a primal of this accumulator, or was computed while the "
                        "accumulator did not record, or by an op without a derivative",
                        x.spec(), source.variable() ? &*source.variable() : nullptr);
}
std::vector<Gradient> ForwardAccumulator::jvps_of(const Sources& xs, UnconnectedGradients unconnected) const {
  std::vector<Gradient> result;
  for (const Source& x : xs.all())
    result.push_back(jvp_of(x, unconnected));
  return result;
}

}   // namespace tapedeck
