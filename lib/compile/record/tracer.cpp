// In: what the thread computes while a function runs. Out: a program.
//
// Tensors are found by their ids. One that is not known was there before the recording, or is made of numbers
// on the host, and is a constant; anything else that no op made cannot be repeated, and is refused.
#include "compile/record/tracer.h"

#include <algorithm>
#include <atomic>
#include <bit>

#include "core/format.h"
#include "core/storage.h"
#include "tape/variable.h"

namespace tapedeck::compiled {
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

// Sources of keys differ between all recordings, so that a key that one of them has left behind is no key of
// another.
std::uint64_t next_source() {
  static std::atomic<std::uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

}   // namespace

Tracer::Tracer(std::string name, bool captures)
    : name_(std::move(name)), captures_(captures), first_id_(next_tensor_id()) {
  thread_state.trace = this;
}
Tracer::~Tracer() { thread_state.trace = nullptr; }

std::uint32_t& Tracer::place_of(std::uint64_t id) {
  const std::size_t most = 64 * (accesses_.size() + 1024);   // far beyond it there are gaps
  if (id < first_id_ || id - first_id_ >= most) return others_[id];
  if (id - first_id_ >= recorded_.size()) recorded_.resize(2 * (id - first_id_) + 1024);
  return recorded_[id - first_id_];
}
void Tracer::name(const Tensor& y, const Access& a) {
  accesses_.push_back(a);
  others_.erase(y.id());   // where it was beyond the recorded ones before
  place_of(y.id()) = static_cast<std::uint32_t>(accesses_.size());
  named_.push_back(y.id());
}
ValueId Tracer::new_value(const Tensor& y) {
  const ValueId v = program_.promise(y.spec());
  name(y, program_.all_of(v));
  return v;
}

void Tracer::add_argument(const Tensor& x) {
  if (const Access* known = find(x)) return program_.repeat_argument(known->of);
  name(x, program_.all_of(program_.add_argument(x.spec())));
}
random::Key Tracer::add_key(const random::Key& key) {
  const std::uint64_t source = next_source();
  keys_[source] = program_.add_key({.number = program_.keys().size()});
  return random::KeyAccess::from(key, source);
}

const Access* Tracer::find(const Tensor& x) const {
  const std::uint64_t id = x.id();
  std::uint32_t place = id >= first_id_ && id - first_id_ < recorded_.size() ? recorded_[id - first_id_] : 0;
  if (!place && !others_.empty())
    if (const auto at = others_.find(id); at != others_.end()) place = at->second;
  return place ? &accesses_[place - 1] : nullptr;
}

// A copy of what is made now, since tapes treat tensors that others hold in other ways.
Access Tracer::add_constant(const Tensor& x) {
  const Access a = program_.all_of(program_.add_constant(is_recorded(x) ? copy_of(x) : x));
  name(x, a);
  return a;
}

Access Tracer::access_to(const Tensor& x, std::string_view reader) {
  if (const Access* known = find(x)) return *known;
  const bool is_unknown = is_recorded(x) && !host_.contains(x.id());
  if (is_unknown && opaque_)
    *opaque_ = true;
  else if (is_unknown)
    throw_error<TraceError>(
        "{}: {} reads {}, which was made during the recording, but neither by an op nor of numbers; make it "
        "outside of the function, or pass it as an argument{}",
        name_, reader, x.spec(), place());
  if (!is_recorded(x) && !captures_)
    throw_error<TraceError>(
        "{}: {} reads {}, which is no argument and would be a constant; pass it as an argument, make it a "
        "variable, or compile with captures{}",
        name_, reader, x.spec(), place());
  return add_constant(x);
}

Access Tracer::accumulator(const Tensor& y) {
  const Access* known = find(y);
  return known ? *known : add_constant(y);
}

// Where the function is: "; it comes after #11 exp, #12 mul".
std::string Tracer::place() const {
  std::string text;
  const std::size_t n = program_.size();
  for (std::size_t k = n - std::min<std::size_t>(n, 2); k < n; ++k)
    text +=
        fmt::format("{} #{} {}", text.empty() ? "; it comes after" : ",", k, name_of(program_[NodeId(k)]));
  return text;
}

// A key that is an argument, or split from one.
KeyId Tracer::key_of(const random::Key& key) const {
  const auto at = keys_.find(random::KeyAccess::source(key));
  return at == keys_.end() ? KeyId() : at->second;
}
KeyId Tracer::key_of(const Call& c) const {
  if (!c.raw_attrs.type || !c.raw_attrs.type->key) return {};
  return key_of(c.raw_attrs.type->key(const_cast<void*>(c.raw_attrs.data)));
}

void Tracer::run(const Call& c, std::span<Tensor> y, void (*kernel)(const Call&, std::span<Tensor>)) {
  if (blind_ || is_given_up()) return kernel(c, y);
  if (c.op.forward.outputs == Outputs::own)
    run_composite(c, y, kernel);
  else
    run_kernel(c, y, kernel);
}

std::vector<Access> Tracer::operands_of(const Call& c) {
  std::vector<Access> in;
  in.reserve(static_cast<std::size_t>(c.x.size()));
  for (int i = 0; i < c.x.size(); ++i)
    in.push_back(access_to(c.x[i], c.op.name));
  return in;
}

// What a node of constants gives is constant.
void Tracer::add_op(OpNode node, std::span<const Tensor> y) {
  if (!node.key &&
      std::all_of(node.in.begin(), node.in.end(), [&](const Access& a) { return is_constant(a); })) {
    for (const Tensor& t : y)
      add_constant(t);
    return;
  }
  for (const Tensor& t : y)
    node.out.push_back(new_value(t));
  program_.define(std::move(node));
}

void Tracer::run_kernel(const Call& c, std::span<Tensor> y, void (*kernel)(const Call&, std::span<Tensor>)) {
  OpNode node{.op = &c.op, .attrs = c.raw_attrs, .key = key_of(c), .in = operands_of(c)};
  {
    const Restored blind(blind_, true);
    const Restored call(call_, &c);
    map_ = nullptr;
    kernel(c, y);
  }
  node.map = map_;
  add_op(std::move(node), y);
}

bool Tracer::attempt(const std::function<void()>& f) {
  if (blind_ || is_given_up()) {
    f();
    return true;
  }
  const Program::Mark before = program_.mark();
  const std::size_t named = named_.size();
  bool opaque = false;
  {
    const Restored inner(opaque_, &opaque);
    f();
  }
  if (!opaque) return true;
  for (std::size_t i = named; i < named_.size(); ++i)
    forget(named_[i]);
  named_.resize(named);
  program_.back_to(before);
  return false;
}

void Tracer::become(std::span<const Tensor> x, std::span<const Tensor> y, const random::Key& key,
                    KeyedAction action) {
  ActionNode node{.action = std::move(action), .key = key_of(key), .constant_key = key};
  for (const Tensor& t : x)
    node.in.push_back(access_to(t, "a derivative"));
  for (const Tensor& t : y)
    node.out.push_back(t.defined() ? new_value(t) : ValueId());
  program_.define(std::move(node));
}

// The ops that the kernel is made of, or one node where it does more than that.
void Tracer::run_composite(const Call& c, std::span<Tensor> y,
                           void (*kernel)(const Call&, std::span<Tensor>)) {
  OpNode node{.op = &c.op, .attrs = c.raw_attrs, .key = key_of(c), .in = operands_of(c)};
  const bool is_made_of_ops = attempt([&] {
    const Restored call(call_, &c);
    kernel(c, y);
    for (const Tensor& t : y)
      if (!find(t)) *opaque_ = true;
  });
  if (!is_made_of_ops) add_op(std::move(node), y);
}

void Tracer::on_map(const kernels::MapKernel& kernel, Refs x, const Tensor& y) {
  if (blind_) {
    if (!call_ || call_->x.size() != x.size()) return;
    for (int i = 0; i < x.size(); ++i)
      if (x[i].id() != call_->x[i].id()) return;
    map_ = &kernel;
    return;
  }
  if (is_given_up()) return;
  MapNode node{.map = &kernel};
  for (int i = 0; i < x.size(); ++i)
    node.in.push_back(access_to(x[i], "a derivative"));
  node.out = new_value(y);
  program_.define(std::move(node));
}

void Tracer::on_vjp(const Op& op, const kernels::VjpKernel& kernel, const Tensor& dy, const Tensor* const* x,
                    const Tensor& y, const Tensor* dx, unsigned adds) {
  if (blind_) return;
  const int n = kernel.inputs;
  VjpNode node{.op = &op, .kernel = &kernel};
  unsigned read = 0;
  for (int i = 0; i < n; ++i)
    if (dx[i].defined()) read |= kernel.reads[i];
  const auto add_operand = [&](const Tensor& t, bool is_read) {
    node.in.push_back(is_read ? access_to(t, "a gradient") : Access{.spec = t.spec()});
  };
  node.in.reserve(static_cast<std::size_t>(n) + 2);
  for (int i = 0; i < n; ++i)
    add_operand(*x[i], read >> i & 1);
  add_operand(y, read >> n & 1);
  add_operand(dy, true);
  // Gradients that are added up in one tensor are one result.
  std::vector<std::pair<const void*, std::size_t>> results;   // by the tensors' handles
  for (int i = 0; i < n; ++i) {
    if (!dx[i].defined()) continue;
    const auto known = std::find_if(results.begin(), results.end(),
                                    [&](const auto& r) { return r.first == dx[i].handle(); });
    if (known != results.end()) {
      node.results[known->second].inputs |= 1u << i;
      continue;
    }
    results.emplace_back(dx[i].handle(), node.results.size());
    node.results.push_back({{}, 1u << i, adds >> i & 1 ? accumulator(dx[i]) : Access()});
  }
  for (VjpNode::Result& r : node.results)
    r.value = new_value(dx[std::countr_zero(r.inputs)]);
  program_.define(std::move(node));
}

void Tracer::on_user_map(const kernels::UserLoops& loops, const Attrs& f, const kernels::PassTensors& pass) {
  if (blind_) return;
  UserMapNode node{.loops = &loops,
                   .closure = f,
                   .dtype = pass.dtype,
                   .shape = pass.shape,
                   .inputs = pass.inputs,
                   .gradients = pass.gradients,
                   .directions = pass.directions};
  if (pass.shifts) node.shifts.assign(pass.shifts, pass.shifts + pass.operands);
  for (int i = 0; i < pass.operands; ++i) {
    const Spec spec = pass.x[i]->defined() ? pass.x[i]->spec() : Spec{pass.dtype, pass.shape};
    node.in.push_back(pass.read >> i & 1 ? access_to(*pass.x[i], "a map") : Access{.spec = spec});
  }
  for (int k = 0; k < pass.results; ++k)
    node.results.push_back({{}, pass.adds >> k & 1 ? accumulator(pass.out[k]) : Access()});
  for (int k = 0; k < pass.results; ++k)
    if (pass.out[k].defined()) node.results[static_cast<std::size_t>(k)].value = new_value(pass.out[k]);
  program_.define(std::move(node));
}

void Tracer::on_view(const Tensor& y, const Tensor& x, std::int64_t first) {
  if (blind_) return;
  if (const Access* of = find(x))
    name(y, {of->of, of->first + first, y.spec()});
  else if (!is_recorded(x) || host_.contains(x.id()))
    host_.insert(y.id());
}
void Tracer::on_select(const Tensor& y, const Tensor& x, const kernels::StridedView& view) {
  if (blind_ || is_given_up()) return;
  const Access* of = find(x);
  if (!of || is_constant(*of)) return;
  SelectNode node{.op = &call_->op, .in = *of, .view = std::make_shared<const kernels::StridedView>(view)};
  node.out = new_value(y);
  program_.define(std::move(node));
}
void Tracer::on_host_tensor(const Tensor& y) {
  if (!blind_) host_.insert(y.id());
}

void Tracer::on_host_read(const Tensor& x, std::string_view reader) {
  if (blind_) return;
  const Access* a = find(x);
  if (!a || is_constant(*a)) return;
  if (opaque_) {
    *opaque_ = true;
    return;
  }
  const Value& value = program_[a->of];
  const std::string by =
      value.from == Value::From::node
          ? fmt::format("computed by #{} {}", value.node.index(), name_of(program_[value.node]))
          : fmt::format("argument {}", value.argument);
  if (!reader.empty())
    throw_error<TraceError>(
        "{}: {} reads the numbers of {}, {}, on the host, where a replay would see those of the recording; "
        "use "
        "where, or do this outside of the compiled function, which a loop or branch may call{}",
        name_, reader, x.spec(), by, place());
  const bool is_last = value.from == Value::From::node && value.node.index() + 1 == program_.size();
  throw_error<TraceError>(
      "{}: the numbers of {}, {}, are read on the host, where a replay would see those of the recording; use "
      "where, or do this outside of the compiled function{}",
      name_, x.spec(), by, is_last ? "" : place());
}
void Tracer::on_key_read(std::uint64_t source) {
  if (blind_ || !keys_.contains(source)) return;
  throw_error<TraceError>(
      "{}: a number of a key that is an argument is read, where a replay would see that of the recording; "
      "use "
      "key.split(i) to make other keys of it{}",
      name_, place());
}

void Tracer::on_variable(detail::VariableCell& cell) {
  if (blind_) return;
  made_variables_ = true;
  forget(cell.value.id());
}

void Tracer::on_read(detail::VariableCell& cell, const Tensor& value) {
  if (blind_) return;
  if (!find(cell.value)) {
    ReadNode node{.cell = cell.shared_from_this()};
    node.out = new_value(cell.value);
    program_.define(std::move(node));
  }
  name(value, Access(*find(cell.value)));
}

void Tracer::on_assign(detail::VariableCell& cell) {
  if (blind_) return;
  const Access a = access_to(cell.value, "a variable");
  std::erase_if(stores_, [&](const auto& s) { return s.first.get() == &cell; });
  stores_.emplace_back(cell.shared_from_this(), a);
}

void Tracer::flush_stores() {
  for (auto& [cell, a] : stores_)
    program_.define(StoreNode{.cell = std::move(cell), .in = a});
  stores_.clear();
}

std::vector<Tensor> Tracer::act(std::vector<Tensor> x, Action action) {
  ActionNode node{
      .action = [action](std::span<const Tensor> now, const random::Key&) { return action(now); }};
  if (!blind_) {
    flush_stores();
    for (const Tensor& t : x)
      node.in.push_back(access_to(t, "an action"));
  }
  std::vector<Tensor> y;
  {
    const Restored blind(blind_, true);
    const Restored none(thread_state.trace, static_cast<Trace*>(nullptr));
    y = action(x);
  }
  if (blind_) return y;
  for (const Tensor& t : y)
    node.out.push_back(t.defined() ? new_value(t) : ValueId());
  program_.define(std::move(node));
  return y;
}

random::Key Tracer::on_split(const random::Key& key, std::uint64_t i, const random::Key& part) {
  if (blind_) return part;
  const auto of = keys_.find(random::KeyAccess::source(key));
  if (of == keys_.end()) return part;
  const std::uint64_t source = next_source();
  keys_[source] = program_.add_key({.of = of->second, .number = i});
  return random::KeyAccess::from(part, source);
}

Program Tracer::finish(std::span<const Tensor> outputs) {
  for (const Tensor& y : outputs)
    program_.add_output(y.defined() ? access_to(y, "the result") : Access());
  flush_stores();
  thread_state.trace = nullptr;
  return std::move(program_);
}

}   // namespace tapedeck::compiled
