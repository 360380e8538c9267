// In: arguments. Out: the results of the compiled function, computed by its plan.
#include "compile/replay/replay.h"

#include <algorithm>
#include <cstring>

#include "core/bytes.h"
#include "core/format.h"
#include "core/visit.h"
#include "kernels/layout/copy.h"
#include "kernels/linalg/matmul.h"
#include "op/execute.h"
#include "tape/variable.h"

namespace tapedeck::compiled {
namespace {

// Kernels use one tensor type for operands and results. This is the only place where read-only memory becomes
// that of a tensor; kernels do not write to operands.
std::byte*& memory_of(Tensor& result) { return detail::Bytes::of(*result.handle()); }
const std::byte*& read_memory_of(Tensor& operand) {
  return const_cast<const std::byte*&>(memory_of(operand));
}

// Copies the accumulator to y, unless it is there already.
void begin_sum(const Tensor& before, Tensor& y) {
  if (before.address() != y.address()) copy_elements(before, y);
}

void check_outputs(const Call& c, std::span<const Tensor> y) {
  const auto check = [&](const Tensor& t, const Spec& spec) {
    if (spec.dtype != t.dtype() || spec.shape != t.shape())
      throw TraceError(c.describe("returns " + to_string(spec) + " in a replay, but returned " +
                                  to_string(t.spec()) +
                                  " when it was recorded; keep it out of compiled functions"));
  };
  if (c.op.infer.one) return check(y[0], c.op.infer.one(c));
  const std::vector<Spec> specs = c.op.infer.many(c);
  for (std::size_t k = 0; k < y.size(); ++k)
    check(y[k], specs[k]);
}

}   // namespace

std::uint64_t integer_at(const std::byte* p, DType dtype) {
  return visit_stored(dtype, [&]<class T>(T x) -> std::uint64_t {
    std::memcpy(&x, p, sizeof x);
    if constexpr (std::is_integral_v<T>)
      return static_cast<std::uint64_t>(x);
    else
      return 0;
  });
}

Replay::Replay(const Plan& plan, Arena arena, Arena scratch)
    : plan_(plan),
      arena_(std::move(arena)),
      scratch_(std::move(scratch)),
      constants_(plan.constant_bytes ? Arena(plan.constant_bytes) : Arena()),
      memory_(plan.program.values().size()),
      reads_(plan.program.values().size()),
      writes_(plan.program.values().size()),
      keys_(plan.program.keys().size()) {
  groups_.reserve(plan.groups.size());
  for (const Group& group : plan.groups)
    groups_.emplace_back(group, scratch_.at(0));
  for (const Step& step : plan.steps)
    if (step.fused)
      how_.push_back(How::group);
    else
      add_node(step.nodes[0]);
  bind_fixed();
  use_values();
  add_outputs();
  for (const ValueId v : plan.program.arguments())
    argument_bytes_.push_back(plan.program[v].spec.nbytes());
}

void Replay::add_node(NodeId id) {
  const Node& node = plan_.program[id];
  if (std::optional<SmallNode> small = SmallNode::of(plan_.program, node)) {
    how_.push_back(How::small);
    small_.push_back(std::move(*small));
  } else {
    how_.push_back(How::bound);
    add_bound(node);
  }
}

// Tensors without memory, which bind() sets later.
Tensor Replay::operand(const Access& a) { return a.reads() ? arena_.view(a.spec) : shape_only(a.spec); }
Tensor Replay::result(ValueId v) { return v ? arena_.view(plan_.program[v].spec) : Tensor(); }

void Replay::add_bound(const Node& node) {
  Bound b;
  b.node = &node;
  for_each_place(
      node, [&](const Access& a) { b.x.push_back(operand(a)); },
      [&](ValueId v) { b.y.push_back(result(v)); });
  for (const Tensor& t : b.x)   // these stay in place when b is moved
    b.refs.push_back(&t);
  if (const OpNode* n = as<OpNode>(node)) {
    if (n->key) b.attrs = n->attrs;
    if (const CalledPrograms* programs = called_programs(n->attrs.view())) b.call = programs->prepare();
  }
  bound_.push_back(std::move(b));
}

// Sets the pointers of each group and node to its operands and results, or registers them to be set in each
// call.
void Replay::use_values() {
  for (BoundGroup& group : groups_)
    group.for_each_pointer(
        [&](ValueId v, std::int64_t first_byte, const std::byte*& p) { read_at(v, first_byte, p); },
        [&](ValueId v, std::byte*& p) { write_at(v, p); });
  Next next;
  std::size_t step = 0;
  for (const Step& s : plan_.steps) {
    const How how = how_[step++];
    if (how == How::group) continue;
    Places* const small = how == How::small ? &small_[next.small++].at : nullptr;
    Bound* const bound = small ? nullptr : &bound_[next.bound++];
    std::size_t x = 0, y = 0;
    for_each_place(
        plan_.program[s.nodes[0]],
        [&](const Access& a) {
          if (a.reads())
            read_at(a.of, a.first * size_of(a.spec.dtype), small ? small->x[x] : read_memory_of(bound->x[x]));
          ++x;
        },
        [&](ValueId v) {
          if (v) write_at(v, small ? small->y[y] : memory_of(bound->y[y]));
          ++y;
        });
  }
}
bool Replay::is_fixed(ValueId v) const { return is_own(v) || plan_.program[v].from == Value::From::constant; }
void Replay::read_at(ValueId v, std::int64_t first_byte, const std::byte*& pointer) {
  if (is_fixed(v))
    pointer = memory_.read[v].get() + first_byte;
  else
    reads_[v].push_back({&pointer, first_byte});
}
void Replay::write_at(ValueId v, std::byte*& pointer) {
  if (is_fixed(v))
    pointer = memory_.write[v].get();
  else
    writes_[v].push_back(&pointer);
}

void Replay::bind(ValueId v, ReadOnly m) {
  memory_.bind(v, m);
  for (const Use& u : reads_[v])
    *u.pointer = m.get() + u.first_byte;
}
void Replay::bind(ValueId v, Writable m) {
  memory_.bind(v, m);
  for (std::byte** const pointer : writes_[v])
    *pointer = m.get();
  for (const Use& u : reads_[v])
    *u.pointer = m.get() + u.first_byte;
}

// Provides the elements of a value that no kernel writes to its home: copies `from`, or borrows its memory.
void Replay::fill(ValueId v, const std::byte* from, std::int64_t bytes) {
  switch (plan_.homes[v].in) {
    case Home::In::arena:
    case Home::In::constants:
      return copy_bytes(from, memory_.write[v].get(), bytes);
    case Home::In::borrowed:
    case Home::In::returned:
      return bind(v, ReadOnly(from));
    default:
      return;
  }
}

void Replay::bind_fixed() {
  for (const ValueId v : ids_of(plan_.homes)) {
    const Home& home = plan_.homes[v];
    if (home.in == Home::In::arena) bind(v, arena_.at(home.offset));
    if (home.in == Home::In::constants) bind(v, constants_.at(home.offset));
    if (const Value& value = plan_.program[v]; value.from == Value::From::constant)
      fill(v, value.constant.raw());
  }
}

// A result is the tensor of an argument, a constant or another result if the function returned that tensor
// itself. Otherwise it is a new tensor, in memory that is allocated, taken from y, or shared with one of
// these.
void Replay::add_outputs() {
  const Program& p = plan_.program;
  IdVector<ValueId, std::size_t> stored_in(p.values().size(), p.outputs().size());   // size(): none yet
  for (std::size_t i = 0; i < p.outputs().size(); ++i) {
    const Access& a = p.outputs()[i];
    const auto [first, is_given] = p.identities()[i];
    Output& out = outputs_.emplace_back(Output{.access = &a, .bytes = a.spec.nbytes()});
    if (first < i) {
      out.how = Output::How::repeated, out.of = first;
    } else if (!a.reads()) {
      out.how = Output::How::none;
    } else if (const Value& value = p[a.of]; p.is_all(a) && value.from != Value::From::node) {
      out.how = is_given ? Output::How::given : Output::How::shares_given;
      if (value.from == Value::From::argument)
        out.of = value.argument;
      else
        out.constant = &value.constant;
    } else if (plan_.homes[a.of].in != Home::In::output || !p.is_all(a)) {
      out.how = Output::How::copied;
    } else if (stored_in[a.of] < i) {
      out.how = Output::How::shares, out.of = stored_in[a.of];
    } else {
      out.how = Output::How::computed;
      stored_in[a.of] = i;
    }
  }
}

void Replay::bind_output(Output& out, std::span<const Tensor> arguments, Tensor* given) {
  const auto outside = [&]() -> const Tensor& { return out.constant ? *out.constant : arguments[out.of]; };
  switch (out.how) {
    case Output::How::none:
    case Output::How::repeated:
      return;
    case Output::How::given:
      out.result = outside();
      return;
    case Output::How::shares_given:
      out.result = share(outside());
      return;
    case Output::How::shares:
      out.result = share(outputs_[out.of].result);
      return;
    case Output::How::computed:
    case Output::How::copied:
      break;
  }
  const bool was_given = given && given->defined();
  const OutputSlot slot(out.result, given, out.access->spec);
  out.taken = was_given && !given->defined();
  if (out.how == Output::How::computed) bind(out.access->of, slot.memory());
}

void Replay::run(std::span<const Tensor> arguments, std::span<const random::Key> keys, std::vector<Tensor>& y,
                 std::span<const ReplayedStep> observed) {
  struct Forget {
    Replay& r;
    std::vector<Tensor>& y;
    bool done = false;
    ~Forget() {
      r.held_.clear();
      r.pending_.clear();
      if (!done) r.give_back(y);
    }
  } forget{*this, y};
  for (std::size_t i = 0; i < arguments.size(); ++i)
    fill(plan_.program.arguments()[i], arguments[i].raw());
  bind_keys(keys, [&](std::size_t i) { return arguments[i].raw(); });
  for (std::size_t i = 0; i < outputs_.size(); ++i)
    bind_output(outputs_[i], arguments, i < y.size() ? &y[i] : nullptr);
  run_steps(observed);
  y.resize(outputs_.size());
  assign();   // nothing throws after this
  results(y);
  forget.done = true;
}

void Replay::run_at(std::span<const ReadOnly> arguments, std::span<const random::Key> keys,
                    std::span<const Writable> y) {
  const EndOfCall end{*this};
  for (std::size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].get()) fill(plan_.program.arguments()[i], arguments[i].get(), argument_bytes_[i]);
  for (std::size_t i = 0; i < outputs_.size(); ++i)
    if (outputs_[i].how == Output::How::computed) bind(outputs_[i].access->of, y[i]);
  const auto argument = [&](std::size_t i) { return arguments[i].get(); };
  run_bound(keys, argument);
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    const Output& out = outputs_[i];
    if (out.how == Output::How::none || out.how == Output::How::computed) continue;
    const std::byte* const from = out.how == Output::How::repeated || out.how == Output::How::shares
                                      ? y[out.of].get()
                                  : out.how == Output::How::copied ? place_of(*out.access)
                                  : out.constant                   ? constant_of(out)
                                                                   : argument(out.of);
    copy_bytes(from, y[i].get(), out.bytes);
  }
}

const std::byte* Replay::constant_of(const Output& out) const { return out.constant->raw(); }

void Replay::run_steps(std::span<const ReplayedStep> observed) {
  if (!observed.empty()) [[unlikely]]
    return run_observed(observed);
  Next next;
  for (const How how : how_)
    run_step(how, next);
}

// After an exception: returns the tensors that were taken from y.
void Replay::give_back(std::vector<Tensor>& y) {
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    Output& out = outputs_[i];
    if (out.taken) y[i] = std::move(out.result);
    out.result = {}, out.taken = false;
  }
}

void Replay::run_step(How how, Next& next) {
  switch (how) {
    case How::group:
      return groups_[next.group++].run();
    case How::small:
      return small_[next.small++].run();
    case How::bound:
      return run_node(bound_[next.bound++]);
  }
}

void Replay::run_observed(std::span<const ReplayedStep> observed) {
  Next next;
  for (std::size_t s = 0; s < observed.size(); ++s)
    observe_step(observed[s], [&] { run_step(how_[s], next); });
}

void Replay::run_node(Bound& b) {
  std::visit([&](const auto& n) { run(n, b); }, *b.node);
}

void Replay::run(const OpNode& n, Bound& b) {
  if (n.uses_variables) assign();
  if (b.call) return b.call->run({b.refs.data(), static_cast<int>(b.refs.size())}, b.y);
  if (n.key) b.attrs.key() = keys_[n.key];
  const Call c{.op = *n.op,
               .raw_attrs = n.key ? b.attrs.view() : n.attrs.view(),
               .x = {b.refs.data(), static_cast<int>(b.refs.size())}};
  if (!infers_from_shapes(n)) check_outputs(c, b.y);
  if (n.op->forward.outputs != Outputs::by_kernel) return run_kernel(c, b.y);
  std::vector<Tensor> y;
  for (const Tensor& t : b.y)
    y.push_back(blank(t.spec()));
  const std::vector<Tensor> x = has_effect(*n.op) ? b.x : copies(b.x);
  std::vector<const Tensor*> refs;
  for (const Tensor& t : x)
    refs.push_back(&t);
  run_kernel({.op = c.op, .raw_attrs = c.raw_attrs, .x = {refs.data(), static_cast<int>(refs.size())}}, y);
  keep(*b.node, n.out, std::move(y));
}

void Replay::run(const JvpNode& n, Bound& b) {
  kernels::run_map(*n.map, {b.refs.data(), static_cast<int>(b.refs.size())}, b.y[0]);
}

void Replay::run(const VjpNode& n, Bound& b) {
  const std::size_t inputs = n.inputs();
  Tensor dx[kernels::kFusedInputs];
  unsigned adds = 0;
  for (std::size_t k = 0; k < n.results.size(); ++k) {
    const VjpNode::Result& r = n.results[k];
    bool has_sum = r.before.reads();
    if (has_sum) begin_sum(b.x[inputs + 2 + k], b.y[k]);
    for (std::size_t i = 0; i < inputs; ++i) {
      if (!(r.inputs >> i & 1)) continue;
      dx[i] = b.y[k];
      if (std::exchange(has_sum, true)) adds |= 1u << i;
    }
  }
  kernels::run_vjp(*n.kernel, b.x[inputs + 1], b.refs.data(), &b.x[inputs], dx, adds);
}

void Replay::run(const UserMapNode& n, Bound& b) {
  unsigned read = 0, adds = 0;
  for (std::size_t i = 0; i < n.in.size(); ++i)
    if (n.in[i].reads()) read |= 1u << i;
  for (std::size_t k = 0; k < n.results.size(); ++k) {
    if (!n.results[k].before.reads()) continue;
    adds |= 1u << k;
    begin_sum(b.x[n.in.size() + k], b.y[k]);
  }
  kernels::run_pass(*n.loops, n.closure.view().data,
                    {.dtype = n.dtype,
                     .shape = *n.shape,
                     .n = n.shape->size(),
                     .inputs = n.inputs,
                     .operands = static_cast<int>(n.in.size()),
                     .results = static_cast<int>(b.y.size()),
                     .gradients = n.gradients,
                     .read = read,
                     .x = b.refs.data(),
                     .out = b.y.data(),
                     .adds = adds,
                     .shifts = n.shifts.empty() ? nullptr : n.shifts.data(),
                     .directions = n.directions});
}

void Replay::run(const SelectNode& n, Bound& b) { kernels::copy_from(b.x[0], *n.view, b.y[0]); }

void Replay::run(const ProductSum& n, Bound& b) {
  begin_sum(b.x[2], b.y[0]);
  kernels::matmul(b.x[0], b.x[1], {n.transposed.transpose_a, n.transposed.transpose_b}, b.y[0], true);
}

void Replay::run(const ReadNode& n, Bound&) {
  fill(n.out, n.cell->value.raw());
  const Home& home = plan_.homes[n.out];
  if (home.held && home.in == Home::In::borrowed) held_.push_back(n.cell->value);
}

// Allocates the memory that the variable will need, so that either all variables are assigned or none.
void Replay::run(const StoreNode& n, Bound& b) {
  const Tensor& value = b.x[0];
  if (n.cell->value.raw() == value.raw()) return;
  pending_.push_back({&b, n.cell->value.unique() ? Tensor() : allocate(value.spec())});
}
void Replay::assign() {
  for (auto& [store, fresh] : pending_) {
    const Tensor& value = store->x[0];
    Tensor& old = std::get<StoreNode>(*store->node).cell->value;
    if (fresh.defined())
      old = std::move(fresh);
    else
      renew(old);
    copy_elements(value, old);
  }
  pending_.clear();
}

void Replay::run(const ActionNode& n, Bound& b) {
  assign();
  keep(*b.node, n.out, n.action(n.op ? copies(b.x) : b.x, n.key ? keys_[n.key] : n.constant_key));
}

// Copies of tensors for user code, which may keep them, whereas the memory of values is reused.
std::vector<Tensor> Replay::copies(std::span<const Tensor> x) const {
  std::vector<Tensor> own;
  for (const Tensor& t : x)
    own.push_back(t.has_values() ? copy_of(t) : t);
  return own;
}

// Makes the tensors that a kernel or an action returned the results of a node.
void Replay::keep(const Node& node, std::span<const ValueId> out, std::vector<Tensor> y) {
  if (y.size() != out.size())
    throw_error<TraceError>(
        "compile: {} returns {} results in a replay, but returned {} when it was recorded", name_of(node),
        y.size(), out.size());
  for (std::size_t k = 0; k < y.size(); ++k) {
    const bool was = static_cast<bool>(out[k]);
    if (y[k].defined() != was || (was && y[k].spec() != plan_.program[out[k]].spec))
      throw_error<TraceError>("compile: result {} of {} is {} in a replay, but was {} when it was recorded",
                              k, name_of(node), y[k].defined() ? to_string(y[k].spec()) : "undefined",
                              was ? to_string(plan_.program[out[k]].spec) : "undefined");
    keep(out[k], std::move(y[k]));
  }
}

// Makes a returned tensor the value v, until the end of the call.
void Replay::keep(ValueId v, Tensor returned) {
  if (!v) return;
  fill(v, returned.raw());
  if (plan_.homes[v].in == Home::In::returned) held_.push_back(std::move(returned));
}

void Replay::results(std::vector<Tensor>& y) {
  for (std::size_t i = 0; i < y.size(); ++i) {
    Output& out = outputs_[i];
    if (out.how == Output::How::repeated) {
      y[i] = y[out.of];
      continue;
    }
    y[i] = std::move(out.result);
    out.taken = false;
    if (out.how != Output::How::copied) continue;
    const Access& a = *out.access;
    copy_bytes(place_of(a), y[i].raw(), out.bytes);
  }
}

}   // namespace tapedeck::compiled
