// Dispatch: executes every op. In: an op and its inputs. Out: its outputs, recorded by the thread's
// recorders.
#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "core/format.h"
#include "core/storage.h"
#include "core/trace.h"
#include "op/elementwise.h"
#include "op/execute.h"
#include "op/observer.h"
#include "op/primitives.h"
#include "op/recorder.h"
#include "op/widened_copies.h"

namespace tapedeck {

void detail::throw_no_tensor(int i, int n) {
  throw_error<ArgumentError>(
      "op: input or output {} is read, but there are {}; infer must refuse other numbers of inputs than the "
      "op's functions read",
      i, n);
}

namespace {

[[noreturn, gnu::cold, gnu::noinline]] void throw_unusable(const Call& c, std::string_view name, int i) {
  if (!c.x[i].defined())
    throw_error<ArgumentError>("{}: input {} is undefined; it was default-constructed or moved from", name,
                               i);
  throw_error<GradientError>(
      "{}: the data of input {}, {}, was not kept for the rule that calls this op; a rule declares the "
      "inputs and outputs that it reads, as by Rule::custom({{.x = 0b1, .y = true}}, …) or "
      "Rule::linear(…, {{.x = 0b10}})",
      name, i, c.x[i].spec());
}
void require_inputs(const Call& c, std::string_view name) {
  for (int i = 0; i < c.x.size(); ++i)
    if (!c.x[i].defined() || !c.x[i].has_values()) [[unlikely]]
      throw_unusable(c, name, i);
}

// n elements, of which at most kMaxInputs need no allocation.
template <class T> class ShortArray {
 public:
  explicit ShortArray(std::size_t n) : more_(n > kMaxInputs ? n : 0) {}
  T* data() { return more_.empty() ? few_ : more_.data(); }

 private:
  T few_[kMaxInputs];
  std::vector<T> more_;
};

// Refs to the tensors of a list.
class Pointers {
 public:
  explicit Pointers(std::span<const Tensor> x) : n_(static_cast<int>(x.size())), pointers_(x.size()) {
    const Tensor** p = pointers_.data();
    for (const Tensor& t : x)
      *p++ = &t;
  }
  Refs refs() { return {pointers_.data(), n_}; }

 private:
  int n_;
  ShortArray<const Tensor*> pointers_;
};

// infer(c). Inference may depend on numbers, so the thread's trace is told if it throws.
template <class Infer> auto inferred(const Call& c, const Infer& infer) {
  try {
    return infer(c);
  } catch (...) {
    if (thread_state.trace && !c.op.forward.loops && c.op.meaning == Meaning::other)
      thread_state.trace->on_throw(c.op.name);
    throw;
  }
}

// Whether the op's rule will read input i to compute the derivative with respect to an input that a recorder
// follows.
bool is_read_later(const Call& c, int i) {
  const Rule& rule = c.op.rule;
  if (!thread_state.innermost || !rule.keeps(i)) return false;
  if (!rule.by_partials()) return true;
  for (int k = 0; k < c.x.size(); ++k)
    if ((rule.partial_reads[k] >> i & 1) && followed(c.x[k])) return true;
  return false;
}

// Allocates the output, or reuses the memory of a large temporary that has no other owner and that no rule
// will read.
Tensor output_for(const Call& c, const Spec& spec, unsigned temporaries) {
  if (c.op.forward.outputs == Outputs::may_overwrite)
    for (int i = 0; i < c.x.size() && i < 32; ++i) {
      if (!(temporaries >> i & 1)) continue;
      const Tensor& x = c.x[i];
      if (!x.handle()->buffer || !x.unique() || x.shape() != spec.shape || x.dtype() != spec.dtype) continue;
      if (is_read_later(c, i) || thread_state.trace) continue;
      return share(x, spec.shape);
    }
  return allocate(spec);
}

bool needs_widened_copies(const Call& c, std::span<Tensor> y) {
  bool any = false;
  for (int i = 0; i < c.x.size(); ++i)
    any |= needs_widening(c.op.forward.dtypes, c.x[i].handle()->dtype);
  for (const Tensor& t : y)
    any |= t.defined() && needs_widening(c.op.forward.dtypes, t.handle()->dtype);
  return any;
}
void run(const Call& c, std::span<Tensor> y) {
  if (needs_widened_copies(c, y)) [[unlikely]]
    run_widened(c, y);
  else
    call_kernel(c, y);
}

[[noreturn, gnu::cold, gnu::noinline]] void throw_replaced(const Call& c, std::size_t k) {
  throw_error<InternalError>(
      "{}: the kernel has replaced output {}; write its elements, by writable<T>(y[{}]), or declare the "
      "kernel with Outputs::by_kernel",
      c.op.name, k, k);
}

// An output that existed before, such as an input that the kernel returns, would be one tensor with two
// origins to recorders. first_id: the least id of a tensor that is new.
void make_output_new(Tensor& y, std::uint64_t first_id) {
  if (y.id() < first_id || y.handle()->refs.load(std::memory_order_relaxed) > 1) y = share(y);
}

}   // namespace

void call_kernel(const Call& c, std::span<Tensor> y) {
  const Kernel& kernel = c.op.forward;
  if (!kernel.run) [[unlikely]]
    throw_error<InternalError>("{}: the op has no kernel", c.op.name);
  if (kernel.outputs == Outputs::by_kernel) return kernel.run(c, y);
  if (y.size() == 1) [[likely]] {
    const std::uint64_t id = y[0].id();
    kernel.run(c, y);
    if (!y[0].defined() || y[0].id() != id) throw_replaced(c, 0);
    return;
  }
  ShortArray<std::uint64_t> list(y.size());
  std::uint64_t* ids = list.data();
  for (std::size_t k = 0; k < y.size(); ++k)
    ids[k] = y[k].id();
  kernel.run(c, y);
  for (std::size_t k = 0; k < y.size(); ++k)
    if (!y[k].defined() || y[k].id() != ids[k]) throw_replaced(c, k);
}

void run_kernel(const Call& c, std::span<Tensor> y) {
  if (c.op.forward.outputs != Outputs::by_kernel) return run(c, y);
  const std::uint64_t first_id = y.empty() ? 0 : y[0].id();   // the outputs are the newest tensors
  {
    const RecordingScope unrecorded(nullptr);   // the op is recorded, not the ops inside its kernel
    run(c, y);
  }
  for (Tensor& t : y) {
    if (!t.defined() || !t.has_values()) [[unlikely]]
      throw_error<InternalError>("{}: the kernel left an output without elements", c.op.name);
    make_output_new(t, first_id);
  }
}

namespace {

void run_observed(const Call& c, std::span<Tensor> y) { observe_kernel(c, y, run_kernel); }

// A trace always has an observer, so that the common case needs one test.
void compute(const Call& c, std::span<Tensor> y) {
  if (!thread_state.observer) [[likely]]
    run_kernel(c, y);
  else if (thread_state.trace)
    thread_state.trace->run(c, y, run_observed);
  else
    run_observed(c, y);
}

// Outer recorders first: an inner accumulator computes tangents from the outputs, and an outer tape must
// record these ops after the op itself. If a recorder throws, it is unchanged; other recorders drop the op
// when its outputs end.
void record_on(Recorder* r, const Call& c, std::span<Tensor> y) {
  if (r->outer()) record_on(r->outer(), c, y);
  r->record(c, y);
}
void record(const Call& c, std::span<Tensor> y) {
  if (thread_state.innermost && c.op.rule.kind != RuleKind::none) record_on(thread_state.innermost, c, y);
}

// Whether this is an elementwise op on few floating-point numbers whose operands all have one spec, as in
// most calls of small programs. It then needs no inference, broadcasting or partitioning.
bool is_simple(const Kernel& kernel, Refs x) {
  if (!kernel.loops || thread_state.observer || !x[0].defined()) return false;
  const detail::Block& first = *x[0].handle();
  if (!is_floating(first.dtype)) return false;
  if (!first.has_values() || !kernels::is_few(first.size)) return false;
  for (int i = 1; i < x.size(); ++i) {
    const detail::Block* b = x[i].handle();
    if (!b || !b->has_values() || b->dtype != first.dtype || b->shape != first.shape) return false;
  }
  return true;
}

// Runs a call for which is_simple holds.
Tensor run_simple(const Call& c, unsigned temporaries) {
  const Tensor& x = c.x[0];
  Tensor y = temporaries && x.handle()->buffer ? output_for(c, x.spec(), temporaries) : allocate_like(x);
  kernels::run_few(*c.op.forward.loops, c.x, y);
  return y;
}

Tensor run_general(const Call& c, unsigned temporaries) {
  require_inputs(c, c.op.name);
  if (c.op.infer.many) [[unlikely]]
    throw_error<InternalError>("{}: has several outputs; call run", c.op.name);
  const Spec spec = inferred(c, c.op.infer.one);
  Tensor y = c.op.forward.outputs == Outputs::by_kernel ? blank(spec)
             : temporaries                              ? output_for(c, spec, temporaries)
                                                        : allocate(spec);
  compute(c, {&y, 1});
  return y;
}

}   // namespace

Tensor Op::operator()(Refs x, Attrs attrs, unsigned temporaries) const {
  const Call call{.op = *this, .raw_attrs = attrs, .x = x};
  Tensor y = is_simple(forward, x) ? run_simple(call, temporaries) : run_general(call, temporaries);
  record(call, {&y, 1});
  return y;
}

void record_computed(const Call& c, std::span<Tensor> y, std::string_view name) {
  require_inputs(c, name);
  for (std::size_t k = 0; k < y.size(); ++k)
    if (!y[k].defined()) throw_error<ArgumentError>("{}: output {} is undefined", name, k);
  if (thread_state.observer) observe_computed(name, c, y);
  record(c, y);
}

Tensor Op::operator()(std::span<const Tensor> x, Attrs attrs) const {
  return (*this)(Pointers(x).refs(), attrs);
}

std::vector<Tensor> Op::run(std::span<const Tensor> x, Attrs attrs) const {
  Pointers pointers(x);
  if (infer.one) return {(*this)(pointers.refs(), attrs)};
  const Call call{.op = *this, .raw_attrs = attrs, .x = pointers.refs()};
  require_inputs(call, name);
  const std::vector<Spec> specs = inferred(call, infer.many);
  std::vector<Tensor> y;
  y.reserve(specs.size());
  for (const Spec& spec : specs)
    y.push_back(forward.outputs == Outputs::by_kernel ? blank(spec) : allocate(spec));
  compute(call, y);
  record(call, y);
  return y;
}

void ops::promote(std::initializer_list<Operand> x, Tensor* converted, const Tensor** refs) {
  bool tensors = false, integers = false, others = false;
  DType dtype = thread_state.number_dtype.value_or(default_dtype());
  for (const Operand& o : x) {
    if (!o.tensor())
      (o.integer() ? integers : others) = true;
    else if (!o.tensor()->defined())
      throw ArgumentError("operand: the tensor is undefined; it was default-constructed or moved from");
    else
      dtype =
          std::exchange(tensors, true) ? tapedeck::promote(dtype, o.tensor()->dtype()) : o.tensor()->dtype();
  }
  if (others && !is_trainable(dtype))
    dtype = default_dtype();
  else if (integers && dtype == DType::boolean)
    dtype = DType::i64;
  for (const Operand& o : x) {
    if (!o.tensor())
      *refs = &(*converted = full({}, o.number(), dtype));
    else if (o.tensor()->dtype() != dtype)
      *refs = &(*converted = astype(*o.tensor(), dtype));
    else
      *refs = o.tensor();
    ++refs, ++converted;
  }
}

Tensor Op::with_numbers(std::initializer_list<Operand> x) const {
  ShortArray<Tensor> converted(x.size());
  ShortArray<const Tensor*> refs(x.size());
  ops::promote(x, converted.data(), refs.data());
  unsigned temporaries = 0, bit = 1;
  for (const Operand& o : x) {
    if (o.temporary()) temporaries |= bit;
    bit <<= 1;
  }
  return (*this)({refs.data(), static_cast<int>(x.size())}, {}, temporaries);
}

// x is not overwritten if a recorder or an observer could throw after the kernel has run, since x must then
// be unchanged, nor if y is x, which the op reads.
Tensor detail::updated(Tensor& x, const Operand& y, Tensor (*op)(Operand, Operand)) {
  if (thread_state.innermost || thread_state.observer || y.tensor() == &x) return op(x, y);
  return op(std::move(x), y);   // the op may take the memory of x, but x still refers to it
}

std::string Call::describe(std::string_view what) const {
  std::string out = fmt::format("{}: {}:", op.name, what);
  for (int i = 0; i < x.size(); ++i) {
    const std::string_view named = i < kMaxInputs ? op.args[i] : std::string_view();
    out += fmt::format("{} {} is {}", i ? "," : "", named.empty() ? fmt::format("input {}", i) : named,
                       x[i].spec());
  }
  return out;
}
void Call::throw_shape_error(std::string_view what) const { throw ShapeError(describe(what)); }
void Call::throw_dtype_error(std::string_view what) const { throw DTypeError(describe(what)); }

namespace {
std::string name_of(const std::type_info& type) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> name(
      abi::__cxa_demangle(type.name(), nullptr, nullptr, &status), std::free);
  return name ? name.get() : type.name();
}
}   // namespace

// One type may have several descriptions, in libraries that hide their symbols.
void Call::require_attrs(const AttrsType& t) const {
  const AttrsType* given = raw_attrs.type;
  // Some compilers give types of one name in unnamed namespaces of two files equal descriptions.
  if (given && *given->type == *t.type && given->size == t.size && given->align == t.align) return;
  throw_error<InternalError>("{}: its attributes are read as {}, but the call has {}", op.name,
                             name_of(*t.type), given ? name_of(*given->type) : "none");
}

void OwnedAttrs::copy_from(const Attrs& a) {
  void* to = bytes_.data;
  if (!inline_fits(*a.type))
    to = bytes_.heap = ::operator new (a.type->size, std::align_val_t{a.type->align});
  if (a.type->copy) {
    try {
      a.type->copy(a.data, to);
    } catch (...) {
      ::operator delete (to, std::align_val_t{a.type->align});
      throw;
    }
  } else {
    std::copy_n(static_cast<const std::byte*>(a.data), a.type->size, static_cast<std::byte*>(to));
  }
  type_ = a.type;
}

void OwnedAttrs::destroy() noexcept {
  if (inline_fits(*type_)) return;
  if (type_->destroy) type_->destroy(bytes_.heap);
  ::operator delete (bytes_.heap, std::align_val_t{type_->align});
}

}   // namespace tapedeck
