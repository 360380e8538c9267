// In: what the thread computes while a function runs. Out: a program.
//
// Tensors are found by their ids. One that is not known was there before the recording, or is made of numbers
// on the host, and is a constant; anything else that no op made cannot be repeated, and is refused.
#include "program/recording.h"

#include <algorithm>
#include <cstring>

#include "core/format.h"
#include "core/storage.h"
#include "program/listing.h"
#include "tape/variable.h"

namespace tapedeck::program {
namespace {

template <class T> class Restored {
 public:
  Restored(T& place, T value) : place_(place), before_(std::exchange(place, value)) {}
  ~Restored() { place_ = before_; }
  Restored(const Restored&) = delete;

 private:
  T& place_;
  T before_;
};

// Above the ids of all tensors that there are.
std::uint64_t next_tensor_id() {
  thread_state.next_id = thread_state.end_id;
  return shape_only(Spec{DType::f32, {}}).id();
}

// Whether an op's attributes begin with the key of its random numbers.
bool begins_with_key(const Op& op) {
  for (const OpFamily& family : op_families())
    if (family.name == "random" || family.name == "distributions")
      if (&op >= family.ops.data() && &op < family.ops.data() + family.ops.size()) return true;
  return false;
}

}   // namespace

Recording::Recording(std::string name) : name_(std::move(name)), first_id_(next_tensor_id()) {
  thread_state.trace = this;
}
Recording::~Recording() { thread_state.trace = nullptr; }

ValueId Recording::add_value(Value v) {
  program_.values.push_back(std::move(v));
  return static_cast<ValueId>(program_.values.size()) - 1;
}
void Recording::name_value(const Tensor& y, ValueId v) {
  ids_[y.id()] = v;
  named_.push_back(y.id());
}

void Recording::add_argument(const Tensor& x) {
  const auto at = static_cast<std::int32_t>(program_.arguments.size());
  ValueId v = find(x);   // the same tensor may be several arguments
  if (v == kNoValue)
    name_value(x, v = add_value({.spec = x.spec(), .from = Value::From::argument, .at = at}));
  program_.arguments.push_back(v);
}
void Recording::add_key(const random::Key& key) {
  const auto at = static_cast<std::int32_t>(program_.keys.size());
  program_.keys.push_back({.argument = at});
  keys_.try_emplace({key.seed, key.stream}, at);
}

ValueId Recording::find(const Tensor& x) const {
  const auto at = ids_.find(x.id());
  return at == ids_.end() ? kNoValue : at->second;
}
bool Recording::is_constant(ValueId v) const {
  while (program_.value(v).from == Value::From::part)
    v = program_.value(v).whole;
  return program_.value(v).from == Value::From::constant;
}

// A copy of what is made now, since tapes treat tensors that others hold in other ways.
ValueId Recording::add_constant(const Tensor& x) {
  const ValueId v = add_value(
      {.spec = x.spec(), .from = Value::From::constant, .constant = is_recorded(x) ? copy_of(x) : x});
  name_value(x, v);
  return v;
}

ValueId Recording::value_of(const Tensor& x, std::string_view reader) {
  if (const ValueId v = find(x); v != kNoValue) return v;
  const bool is_unknown = is_recorded(x) && !host_.contains(x.id());
  if (is_unknown && opaque_)
    *opaque_ = true;
  else if (is_unknown)
    throw_error<TraceError>(
        "{}: {} reads {}, which was made during the recording, but neither by an op nor of numbers; make it "
        "outside of the function, or pass it as an argument",
        name_, reader, x.spec());
  return add_constant(x);
}

ValueId Recording::value_before(const Tensor& y) {
  const ValueId v = find(y);
  return v == kNoValue ? add_constant(y) : v;
}

void Recording::add_node(Node node, std::span<const Tensor> y) {
  const auto at = static_cast<std::int32_t>(program_.nodes.size());
  for (const Tensor& t : y) {
    const ValueId v = t.defined() ? add_value({.spec = t.spec(), .at = at}) : kNoValue;
    node.out.push_back(v);
    if (v != kNoValue) name_value(t, v);
  }
  program_.nodes.push_back(std::move(node));
}

std::int32_t Recording::key_of(const Call& c) const {
  if (!c.raw_attrs.data || !begins_with_key(c.op)) return -1;
  random::Key key;
  std::memcpy(&key, c.raw_attrs.data, sizeof key);
  const auto at = keys_.find({key.seed, key.stream});
  return at == keys_.end() ? -1 : at->second;
}

void Recording::run(const Call& c, std::span<Tensor> y, void (*kernel)(const Call&, std::span<Tensor>)) {
  if (blind_) return kernel(c, y);
  if (opaque_ && *opaque_) return kernel(c, y);
  if (c.op.forward.outputs == Outputs::own)
    run_composite(c, y, kernel);
  else
    run_kernel(c, y, kernel);
}

Node Recording::node_of(const Call& c) {
  Node node{.kind = Node::Kind::op, .op = &c.op, .attrs = c.raw_attrs, .key = key_of(c)};
  for (int i = 0; i < c.x.size(); ++i)
    node.in.push_back(value_of(c.x[i], c.op.name));
  return node;
}

// What a node of constants gives is constant.
void Recording::add_op(Node node, std::span<const Tensor> y) {
  const bool constant =
      node.key < 0 && std::all_of(node.in.begin(), node.in.end(), [&](ValueId v) { return is_constant(v); });
  if (!constant) return add_node(std::move(node), y);
  for (const Tensor& t : y)
    add_constant(t);
}

void Recording::run_kernel(const Call& c, std::span<Tensor> y,
                           void (*kernel)(const Call&, std::span<Tensor>)) {
  Node node = node_of(c);
  {
    const Restored blind(blind_, true);
    const Restored call(call_, &c);
    map_ = nullptr;
    kernel(c, y);
  }
  node.map = map_;
  add_op(std::move(node), y);
}

bool Recording::attempt(const std::function<void()>& f) {
  if (blind_ || (opaque_ && *opaque_)) {
    f();
    return true;
  }
  const std::size_t values = program_.values.size(), nodes = program_.nodes.size(), named = named_.size();
  bool opaque = false;
  {
    const Restored inner(opaque_, &opaque);
    f();
  }
  if (!opaque) return true;
  for (std::size_t i = named; i < named_.size(); ++i)
    ids_.erase(named_[i]);
  named_.resize(named);
  program_.nodes.resize(nodes);
  program_.values.resize(values);
  return false;
}

void Recording::become(std::span<const Tensor> x, std::span<const Tensor> y, Action action) {
  Node node{.kind = Node::Kind::action, .action = std::move(action)};
  for (const Tensor& t : x)
    node.in.push_back(value_of(t, "a derivative"));
  add_node(std::move(node), y);
}

// The ops that the kernel is made of, or one node where it does more than that.
void Recording::run_composite(const Call& c, std::span<Tensor> y,
                              void (*kernel)(const Call&, std::span<Tensor>)) {
  Node node = node_of(c);
  const bool is_made_of_ops = attempt([&] {
    const Restored call(call_, &c);
    kernel(c, y);
    for (const Tensor& t : y)
      if (find(t) == kNoValue) *opaque_ = true;
  });
  if (!is_made_of_ops) add_op(std::move(node), y);
}

void Recording::mapped(const kernels::MapKernel& kernel, Refs x, const Tensor& y) {
  if (blind_) {
    if (!call_ || call_->x.size() != x.size()) return;
    for (int i = 0; i < x.size(); ++i)
      if (x[i].id() != call_->x[i].id()) return;
    map_ = &kernel;
    return;
  }
  if (opaque_ && *opaque_) return;
  Node node{.kind = Node::Kind::map, .map = &kernel};
  for (int i = 0; i < x.size(); ++i)
    node.in.push_back(value_of(x[i], "a derivative"));
  add_node(std::move(node), {&y, 1});
}

void Recording::pulled(const Op& op, const kernels::VjpKernel& kernel, const Tensor& dy,
                       const Tensor* const* x, const Tensor& y, const Tensor* dx, unsigned adds) {
  if (blind_) return;
  const int n = kernel.inputs;
  Node node{.kind = Node::Kind::pull, .op = &op, .vjp = &kernel, .adds = adds};
  unsigned read = 0;
  for (int i = 0; i < n; ++i)
    if (dx[i].defined()) read |= kernel.reads[i];
  const auto add_input = [&](const Tensor& t, bool is_read) {
    node.in.push_back(is_read ? value_of(t, "a gradient") : kNoValue);
    node.in_specs.push_back(t.spec());
  };
  for (int i = 0; i < n; ++i)
    add_input(*x[i], read >> i & 1);
  add_input(y, read >> n & 1);
  add_input(dy, true);
  const auto first_of = [&](int i) {   // of the gradients that are the same tensor
    int k = 0;
    while (!dx[k].defined() || dx[k].handle() != dx[i].handle())
      ++k;
    return k;
  };
  for (int i = 0; i < n; ++i)
    if (adds >> i & 1) node.in.push_back(first_of(i) < i ? kNoValue : value_before(dx[i]));
  const auto at = static_cast<std::int32_t>(program_.nodes.size());
  for (int i = 0; i < n; ++i) {
    ValueId v = kNoValue;
    if (dx[i].defined()) {
      const int first = first_of(i);
      v = first < i ? node.out[static_cast<std::size_t>(first)] : add_value({.spec = dx[i].spec(), .at = at});
      name_value(dx[i], v);
    }
    node.out.push_back(v);
  }
  program_.nodes.push_back(std::move(node));
}

void Recording::passed(const kernels::UserLoops& loops, const Attrs& f, const kernels::PassTensors& pass) {
  if (blind_) return;
  Node node{.kind = Node::Kind::pass, .attrs = f, .adds = pass.adds, .loops = &loops};
  node.inputs = pass.inputs;
  node.gradients = pass.gradients;
  node.shape = pass.shape;
  node.dtype = pass.dtype;
  node.directions = pass.directions;
  if (pass.shifts) node.shifts.assign(pass.shifts, pass.shifts + pass.operands);
  for (int i = 0; i < pass.operands; ++i) {
    const bool read = pass.read >> i & 1;
    node.in.push_back(read ? value_of(*pass.x[i], "a map") : kNoValue);
    node.in_specs.push_back(pass.x[i]->defined() ? pass.x[i]->spec() : Spec{pass.dtype, pass.shape});
  }
  for (int k = 0; k < pass.results; ++k)
    if (pass.adds >> k & 1) node.in.push_back(value_before(pass.out[k]));
  add_node(std::move(node), {pass.out, static_cast<std::size_t>(pass.results)});
}

void Recording::shared(const Tensor& y, const Tensor& x, std::int64_t first) {
  if (blind_) return;
  const ValueId v = find(x);
  if (v == kNoValue) {
    if (!is_recorded(x) || host_.contains(x.id())) host_.insert(y.id());
    return;
  }
  const bool same = first == 0 && program_.value(v).spec == y.spec();
  name_value(y,
             same ? v : add_value({.spec = y.spec(), .from = Value::From::part, .whole = v, .first = first}));
}
void Recording::selected(const Tensor& y, const Tensor& x, const kernels::StridedView& view) {
  if (blind_ || (opaque_ && *opaque_)) return;
  if (const ValueId v = find(x); v != kNoValue && !is_constant(v))
    add_node({.kind = Node::Kind::select, .op = &call_->op, .in = {v}, .view = view}, {&y, 1});
}
void Recording::made(const Tensor& y) {
  if (!blind_) host_.insert(y.id());
}

void Recording::looked_at(const Tensor& x, std::string_view reader) {
  if (blind_) return;
  ValueId v = find(x);
  if (v == kNoValue || is_constant(v)) return;
  if (opaque_) {
    *opaque_ = true;
    return;
  }
  while (program_.value(v).from == Value::From::part)
    v = program_.value(v).whole;
  const Value& value = program_.value(v);
  std::string by = "an argument";
  if (value.from == Value::From::node) {
    by = "computed by " + name_of(program_.nodes[static_cast<std::size_t>(value.at)]);
  }
  if (!reader.empty())
    throw_error<TraceError>(
        "{}: {} reads the numbers of {}, {}, on the host, where a replay would see those of the recording; "
        "use where, or do this outside of the recorded function, which a loop or branch may call",
        name_, reader, x.spec(), by);
  throw_error<TraceError>(
      "{}: the numbers of {}, {}, are read on the host, where a replay would see those of the recording; use "
      "where, or do this outside of the recorded function",
      name_, x.spec(), by);
}

void Recording::made(detail::VariableCell& cell) {
  if (blind_) return;
  made_variables_ = true;
  ids_.erase(cell.value.id());
}

void Recording::read(detail::VariableCell& cell, const Tensor& value) {
  if (blind_) return;
  ValueId v = find(cell.value);
  if (v == kNoValue) {
    add_node({.kind = Node::Kind::read, .cell = cell.shared_from_this()}, {&cell.value, 1});
    v = find(cell.value);
  }
  name_value(value, v);
}

void Recording::assigned(detail::VariableCell& cell) {
  if (blind_) return;
  const ValueId v = value_of(cell.value, "a variable");
  std::erase_if(stores_, [&](const auto& s) { return s.first.get() == &cell; });
  stores_.emplace_back(cell.shared_from_this(), v);
}

void Recording::flush_stores() {
  for (auto& [cell, v] : stores_)
    program_.nodes.push_back({.kind = Node::Kind::store, .in = {v}, .cell = std::move(cell)});
  stores_.clear();
}

std::vector<Tensor> Recording::act(std::vector<Tensor> x, Action action) {
  Node node{.kind = Node::Kind::action, .action = action};
  if (!blind_) {
    flush_stores();
    for (const Tensor& t : x)
      node.in.push_back(value_of(t, "an action"));
  }
  std::vector<Tensor> y;
  {
    const Restored blind(blind_, true);
    const Restored none(thread_state.trace, static_cast<Trace*>(nullptr));
    y = action(x);
  }
  if (!blind_) add_node(std::move(node), y);
  return y;
}

void Recording::split(const random::Key& key, std::uint64_t i, const random::Key& part) {
  if (blind_) return;
  const auto of = keys_.find({key.seed, key.stream});
  if (of == keys_.end()) return;
  const auto at = static_cast<std::int32_t>(program_.keys.size());
  if (keys_.try_emplace({part.seed, part.stream}, at).second)
    program_.keys.push_back({.of = of->second, .part = i});
}

Program Recording::finish(std::span<const Tensor> outputs) {
  for (const Tensor& y : outputs)
    program_.outputs.push_back(y.defined() ? value_of(y, "the result") : kNoValue);
  flush_stores();
  thread_state.trace = nullptr;
  return std::move(program_);
}

}   // namespace tapedeck::program
