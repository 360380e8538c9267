// In: arguments. Out: what the recorded function returns for them, by its plan.
#include "program/replay.h"

#include <algorithm>
#include <cstring>

#include "core/bytes.h"
#include "core/storage.h"
#include "kernels/layout/copy.h"
#include "kernels/linalg/matmul.h"
#include "op/run_kernel.h"
#include "tape/variable.h"
#include "tapedeck/ops/matmul.h"

namespace tapedeck::program {
namespace {

std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

void copy(const Tensor& from, std::byte* to) {
  if (from.size()) std::memcpy(to, from.raw(), static_cast<std::size_t>(from.nbytes()));
}

// A tensor of that spec in memory of somebody else; `owner` is kept as if it were part of that.
Tensor view(const Spec& spec, const Tensor& owner) {
  Tensor t = blank(spec);
  detail::Block* b = t.handle();
  b->buffer = owner.handle()->buffer;
  b->buffer->refs.fetch_add(1, std::memory_order_relaxed);
  return t;
}

// An op may read numbers to infer its outputs: to check indices, or to count what it finds.
void check_outputs(const Call& c, std::span<const Tensor> y) {
  const auto check = [&](const Tensor& t, const Spec& spec) {
    if (spec != t.spec())
      throw TraceError(describe(c, "gives " + to_string(spec) + " in a replay, and gave " +
                                       to_string(t.spec()) +
                                       " when it was recorded; keep it out of recorded functions"));
  };
  if (c.op.infer.one) return check(y[0], c.op.infer.one(c));
  const std::vector<Spec> specs = c.op.infer.many(c);
  for (std::size_t k = 0; k < y.size(); ++k)
    check(y[k], specs[k]);
}

// x is a tensor of that spec that nothing else shares, under a new id: it was one, or is a fresh one.
void make_own(Tensor& x, const Spec& spec) {
  if (x.defined() && x.spec() == spec && x.unique())
    renew(x);
  else
    x = allocate(spec);
}

// Whether a call allocates this result; others are arguments or constants.
bool is_allocated(const Value& result) {
  return result.from == Value::From::node || result.from == Value::From::part;
}

}   // namespace

Replay::Replay(const Plan& plan, Tensor arena, Tensor scratch)
    : plan_(plan),
      arena_(std::move(arena)),
      scratch_(std::move(scratch)),
      constants_(allocate({DType::u8, {std::max<std::int64_t>(plan.constant_bytes, 1)}})),
      values_(plan.program.values.size()),
      memory_(plan.program.values.size()),
      keys_(plan.program.keys.size()),
      outputs_(plan.program.values.size()) {
  std::memset(constants_.raw(), 0, static_cast<std::size_t>(constants_.nbytes()));
  nodes_.resize(plan.program.nodes.size(), {nullptr});
  for (const ProgramStep& step : plan.steps)
    if (!step.fused) nodes_[at(step.nodes[0])] = bound(plan.program.nodes[at(step.nodes[0])]);
  bind_constants();
}

// All elements of a value, and of its parts, lie there.
void Replay::bind(ValueId whole, std::byte* data) {
  const std::int64_t bytes = size_of(plan_.program.value(whole).spec.dtype);
  for (const auto& [v, first] : plan_.parts[at(whole)]) {
    memory_[at(v)] = data + first * bytes;
    if (values_[at(v)].defined()) detail::Bytes::of(*values_[at(v)].handle()) = memory_[at(v)];
  }
}
// The elements of `from` become those of a value.
void Replay::fill(ValueId whole, const Tensor& from) {
  switch (plan_.places[at(whole)].memory) {
    case Memory::copied:
      return copy(from, memory_[at(whole)]);
    case Memory::given:
      return bind(whole, from.raw());
    default:
      return;
  }
}

Tensor Replay::tensor_of(ValueId v) {
  Tensor& t = values_[at(v)];
  if (!t.defined()) t = view(plan_.program.value(v).spec, arena_);
  return t;
}

Replay::Bound Replay::bound(const Node& node) {
  Bound b{&node};
  for (std::size_t i = 0; i < node.in.size(); ++i) {
    if (node.in[i] != kNoValue)
      b.x.push_back(tensor_of(node.in[i]));
    else
      b.x.push_back(i < node.in_specs.size() ? shape_only(node.in_specs[i]) : Tensor());
  }
  for (const ValueId v : node.out)
    b.y.push_back(v == kNoValue ? Tensor() : tensor_of(v));
  if (node.key >= 0) b.attrs = node.attrs;
  return b;
}

void Replay::bind_constants() {
  for (Bound& b : nodes_)
    for (const Tensor& t : b.x)
      b.refs.push_back(&t);
  for (std::size_t v = 0; v < values_.size(); ++v) {
    const Place& place = plan_.places[v];
    const bool constant = plan_.program.values[v].from == Value::From::constant;
    if (place.memory == Memory::arena || place.memory == Memory::copied)
      bind(static_cast<ValueId>(v), (constant ? constants_ : arena_).raw() + place.offset);
    if (place.memory == Memory::output) allocated_.push_back(static_cast<ValueId>(v));
    if (constant) fill(static_cast<ValueId>(v), plan_.program.values[v].constant);
  }
}

void Replay::bind_call(std::span<const Tensor> arguments, std::span<const random::Key> keys,
                       std::vector<Tensor>& y) {
  for (std::size_t i = 0; i < arguments.size(); ++i)
    fill(plan_.program.arguments[i], arguments[i]);
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    const DerivedKey& k = plan_.program.keys[i];
    keys_[i] = k.argument >= 0 ? keys[at(k.argument)] : keys_[at(k.of)].split(k.part);
  }
  y.resize(plan_.program.outputs.size());
  for (std::size_t i = 0; i < y.size(); ++i) {
    const ValueId v = plan_.program.outputs[i];
    if (v == kNoValue || !is_allocated(plan_.program.value(v)) || outputs_[at(v)].defined()) continue;
    make_own(y[i], plan_.program.value(v).spec);
    if (plan_.places[at(v)].memory != Memory::output) continue;
    outputs_[at(v)] = y[i];
    bind(v, y[i].raw());
  }
}

void Replay::run(std::span<const Tensor> arguments, std::span<const random::Key> keys, std::vector<Tensor>& y,
                 std::span<const ReplayedStep> observed) {
  struct Forget {
    Replay& r;
    ~Forget() {
      r.held_.clear();
      r.pending_.clear();
      for (const ValueId v : r.allocated_)
        r.outputs_[at(v)] = {};
    }
  } const forget{*this};
  bind_call(arguments, keys, y);
  std::size_t group = 0;
  if (!observed.empty()) [[unlikely]]
    run_observed(observed);
  else
    for (const ProgramStep& step : plan_.steps)
      run_step(step, group);
  assign();   // from here on nothing throws
  results(arguments, y);
}

void Replay::run_step(const ProgramStep& step, std::size_t& group) {
  if (step.fused)
    plan_.groups[group++].run(memory_.data(), scratch_.raw());
  else
    run_node(nodes_[at(step.nodes[0])]);
}

void Replay::run_observed(std::span<const ReplayedStep> observed) {
  std::size_t group = 0;
  for (std::size_t s = 0; s < observed.size(); ++s)
    observe_step(observed[s], [&] { run_step(plan_.steps[s], group); });
}

void Replay::run_node(Bound& b) {
  switch (b.node->kind) {
    case Node::Kind::op:
      return run_op(b);
    case Node::Kind::map:
      return kernels::run_map(*b.node->map, {b.refs.data(), static_cast<int>(b.refs.size())}, b.y[0]);
    case Node::Kind::pull:
      return run_pull(b);
    case Node::Kind::pass:
      return run_pass(b);
    case Node::Kind::select:
      return kernels::copy_from(b.x[0], b.node->view, b.y[0]);
    case Node::Kind::add_product:
      return run_product(b);
    case Node::Kind::read:
      return read(b);
    case Node::Kind::store:
      return store(b);
    case Node::Kind::action:
      assign();
      std::vector<Tensor> y = b.node->action(b.x);
      for (std::size_t k = 0; k < b.node->out.size(); ++k)
        keep(b.node->out[k], std::move(y[k]));
      return;
  }
}

void Replay::run_op(Bound& b) {
  const Node& n = *b.node;
  if (n.key >= 0) std::memcpy(const_cast<void*>(b.attrs.view().data), &keys_[at(n.key)], sizeof(random::Key));
  const Call c{.op = *n.op,
               .raw_attrs = n.key >= 0 ? b.attrs.view() : n.attrs.view(),
               .x = {b.refs.data(), static_cast<int>(b.refs.size())}};
  check_outputs(c, b.y);
  if (n.op->forward.outputs != Outputs::own) return run_kernel(c, b.y);
  std::vector<Tensor> y;
  for (const Tensor& t : b.y)
    y.push_back(blank(t.spec()));
  run_kernel(c, y);
  for (std::size_t k = 0; k < y.size(); ++k)
    keep(n.out[k], std::move(y[k]));
}

// What is added to is copied first, if it lies elsewhere.
void Replay::run_product(Bound& b) {
  if (b.x[2].raw() != b.y[0].raw()) copy(b.x[2], b.y[0].raw());
  const auto [of_a, of_b] = *static_cast<const Transposed*>(b.node->attrs.view().data);
  kernels::matmul(b.x[0], b.x[1], {of_a, of_b}, b.y[0], true);
}

// The same.
void Replay::run_pull(Bound& b) {
  const Node& n = *b.node;
  const int inputs = n.vjp->inputs;
  auto before = b.x.begin() + inputs + 2;
  for (int i = 0; i < inputs; ++i)
    if (n.adds >> i & 1) {
      if (before->defined()) copy(*before, b.y[at(i)].raw());
      ++before;
    }
  kernels::run_vjp(*n.vjp, b.x[at(inputs) + 1], b.refs.data(), &b.x[at(inputs)], b.y.data(), n.adds);
}

void Replay::run_pass(Bound& b) {
  const Node& n = *b.node;
  const auto operands = n.in_specs.size();
  unsigned read = 0;
  for (std::size_t i = 0; i < operands; ++i)
    if (n.in[i] != kNoValue) read |= 1u << i;
  auto before = b.x.begin() + static_cast<std::ptrdiff_t>(operands);
  for (std::size_t k = 0; k < b.y.size(); ++k)
    if (n.adds >> k & 1) copy(*before++, b.y[k].raw());
  kernels::run_pass(*n.loops, n.attrs.view().data,
                    {.dtype = n.dtype,
                     .shape = n.shape,
                     .n = n.shape.size(),
                     .inputs = n.inputs,
                     .operands = static_cast<int>(operands),
                     .results = static_cast<int>(b.y.size()),
                     .gradients = n.gradients,
                     .read = read,
                     .x = b.refs.data(),
                     .out = b.y.data(),
                     .adds = n.adds,
                     .shifts = n.shifts.empty() ? nullptr : n.shifts.data(),
                     .directions = n.directions});
}

void Replay::read(const Bound& b) {
  detail::VariableCell& cell = *b.node->cell;
  detail::note_access(cell);
  const ValueId v = b.node->out[0];
  fill(v, cell.value);
  if (plan_.places[at(v)].held && plan_.places[at(v)].memory == Memory::given) held_.push_back(cell.value);
}

// Allocates what the variable will need, so that either all variables are assigned or none.
void Replay::store(const Bound& b) {
  detail::VariableCell& cell = *b.node->cell;
  detail::note_access(cell);
  const Tensor& value = b.x[0];
  if (cell.value.raw() == value.raw()) return;
  pending_.push_back({&b, cell.value.unique() ? Tensor() : allocate(value.spec())});
}
void Replay::assign() {
  for (auto& [store, fresh] : pending_) {
    const Tensor& value = store->x[0];
    Tensor& old = store->node->cell->value;
    if (fresh.defined())
      old = std::move(fresh);
    else
      renew(old);
    copy(value, old.raw());
  }
  pending_.clear();
}

// A tensor that came back becomes a value, until the end of the call.
void Replay::keep(ValueId v, Tensor returned) {
  if (v == kNoValue) return;
  if (plan_.places[at(v)].memory != Memory::returned) return fill(v, returned);
  bind(v, returned.raw());
  held_.push_back(std::move(returned));
}

void Replay::results(std::span<const Tensor> arguments, std::vector<Tensor>& y) const {
  for (std::size_t i = 0; i < y.size(); ++i) {
    const ValueId v = plan_.program.outputs[i];
    if (v == kNoValue) {
      y[i] = {};
      continue;
    }
    const Value& value = plan_.program.value(v);
    if (outputs_[at(v)].defined()) {
      y[i] = outputs_[at(v)];
    } else if (value.from == Value::From::argument) {
      y[i] = arguments[at(value.at)];
    } else if (value.from == Value::From::constant) {
      y[i] = value.constant;
    } else {
      if (y[i].size()) std::memcpy(y[i].raw(), memory_[at(v)], static_cast<std::size_t>(y[i].nbytes()));
    }
  }
}

}   // namespace tapedeck::program
