// In: the ops that the thread runs while a function is recorded. Out: a program.
//
// Tensors are identified by their ids. An unknown tensor that was created before the recording, or from
// numbers on the host, becomes a constant. Any other tensor that was not computed by an op cannot be
// reproduced by a replay, and is refused.
#include "compile/record/tracer.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>

#include "compile/fuse/effects.h"
#include "compile/record/loop_program.h"
#include "core/bytes.h"
#include "core/format.h"
#include "core/storage.h"
#include "op/recorder.h"
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

// Returns an id that is greater than those of all existing tensors.
std::uint64_t next_tensor_id() {
  thread_state.next_id = thread_state.end_id;
  return shape_only(Spec{DType::f32, {}}).id();
}

// The specs that a call infers.
std::vector<Spec> specs_of(const Call& c) {
  return c.op.infer.many ? c.op.infer.many(c) : std::vector<Spec>{c.op.infer.one(c)};
}
// Makes the outputs of a call zeros of the specs that it infers.
void clear_all(const Call& c, std::span<Tensor> y) {
  const std::vector<Spec> specs = specs_of(c);
  for (std::size_t k = 0; k < y.size(); ++k)
    y[k] = zeros_of(specs[k]);
}

// A tensor whose elements differ from each other and from zeros.
Tensor other_numbers(const Spec& spec) {
  Tensor t = zeros_of(spec);
  const auto bytes = static_cast<std::ptrdiff_t>(size_of(spec.dtype));
  for (std::ptrdiff_t i = 0; i < t.size(); ++i)
    t.raw()[i * bytes] = spec.dtype == DType::boolean ? std::byte{1} : static_cast<std::byte>(1 + i % 100);
  return t;
}

// The numbers of a key as a tensor, for the programs of branches and loops.
struct KeyNumbers {
  random::Key key;
};
void write_numbers(const random::Key& key, Tensor& y) {
  elements<std::uint64_t>(y)[0] = random::KeyAccess::seed(key);
  elements<std::uint64_t>(y)[1] = random::KeyAccess::stream(key);
}
constexpr Op kKeyNumbers = {
    .name = "key_numbers",
    .doc = "The two numbers of a key.",
    .args = {},
    .infer =
        [](const Call&) {
          return Spec{DType::u64, {2}};
        },
    .forward = {[](const Call& c, std::span<Tensor> y) { write_numbers(c.attrs<KeyNumbers>().key, y[0]); },
                Outputs::fresh, KernelDtypes::all},
    .rule = Rule::none(),
};

// Sources of keys are unique across recordings, so that a key that outlives its recording is not mistaken for
// one of another.
std::uint64_t next_source() {
  static std::atomic<std::uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

}   // namespace

Tracer::Tracer(std::string name, Allowed allowed)
    : name_(std::move(name)), allowed_(allowed), presence_(std::in_place), first_id_(next_tensor_id()) {
  thread_state.trace = this;
}
Tracer::Tracer(Tracer& outer, const Recorder* around, const InnerOptions& options)
    : Tracer(outer.name_, {.captures = outer.allowed_.captures,
                           .no_actions = outer.allowed_.no_actions.empty() ? options.no_actions
                                                                           : outer.allowed_.no_actions}) {
  outer_ = &outer, around_ = around, all_captures_ = options.all_captures;
  uses_variables_ = options.uses_variables;
  first_recorder_ = Recorder::next_serial();
}
Tracer::~Tracer() { end(); }

// Gives the thread back to the outer recording, if there is one.
void Tracer::end() {
  if (!presence_) return;
  for (std::size_t k = before_.size(); k-- > 0;)
    before_[k].first->value = before_[k].second;
  presence_.reset();
  thread_state.trace = outer_;
}

Program Tracer::leave() {
  if (uses_variables_) flush_stores(), outer_->variables_.insert(variables_.begin(), variables_.end());
  end();
  if (!refused_.empty()) throw TraceError(refused_);
  return std::move(program_);
}

std::uint32_t& Tracer::place_of(std::uint64_t id) {
  const std::size_t most = 64 * (accesses_.size() + 1024);   // ids far beyond that leave gaps
  if (id < first_id_ || id - first_id_ >= most) return others_[id];
  if (id - first_id_ >= recorded_.size()) recorded_.resize(2 * (id - first_id_) + 1024);
  return recorded_[id - first_id_];
}
void Tracer::set_place(std::uint64_t id, std::uint32_t place) {
  std::uint32_t before = 0;
  if (const auto other = others_.find(id); !others_.empty() && other != others_.end()) {
    before = other->second;
    others_.erase(other);   // recorded_ may cover the id by now
  }
  std::uint32_t& now = place_of(id);
  if (!before) before = now;
  now = place;
  if (attempt_) named_.emplace_back(id, before);
}
void Tracer::name(const Tensor& y, const Access& a, std::uint32_t base) {
  accesses_.push_back(a);
  const auto place = static_cast<std::uint32_t>(accesses_.size());
  bases_.push_back(base ? base : place);
  set_place(y.id(), place);
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

std::uint32_t Tracer::place_of_known(const Tensor& x) const {
  const std::uint64_t id = x.id();
  std::uint32_t place = id >= first_id_ && id - first_id_ < recorded_.size() ? recorded_[id - first_id_] : 0;
  if (!place && !others_.empty())
    if (const auto at = others_.find(id); at != others_.end()) place = at->second;
  return place;
}
const Access* Tracer::find(const Tensor& x) const {
  const std::uint32_t place = place_of_known(x);
  return place ? &accesses_[place - 1] : nullptr;
}
// Like find, for a tensor that is read, which an attempt notes.
const Access* Tracer::use(const Tensor& x) {
  const std::uint32_t place = place_of_known(x);
  if (!place && is_given_up() && outer_ && !is_recorded(x) && outer_->is_computed(x))
    attempt_->captures_others = true;
  if (!place) return nullptr;
  if (attempt_) read_.push_back(place);
  return &accesses_[place - 1];
}
// The accesses from before the attempt that it has read, without constants.
std::vector<Access> Tracer::used_by(const Attempt& a) const {
  std::vector<Access> used;
  for (std::uint32_t at : std::span(read_).subspan(a.used)) {
    while (at > a.accesses && bases_[at - 1] != at)   // a view that was created in the attempt
      at = bases_[at - 1];
    if (at <= a.accesses && !is_constant(accesses_[at - 1])) used.push_back(accesses_[at - 1]);
  }
  return used;
}

// Throws an error. finish() throws it again, since a function that has caught it may have continued on
// another path.
void Tracer::refuse(std::string text) {
  note_refused(text);
  throw TraceError(text);
}

void Tracer::note_refused(const std::string& text) {
  for (Tracer* t = this; t; t = t->outer_)
    t->refused_ = text;
}

// A tensor created in the recording is copied. The program would otherwise be a second owner, and tapes,
// which treat shared tensors differently, would take another path.
Access Tracer::add_constant(const Tensor& x) {
  const Access a = program_.all_of(program_.add_constant(is_recorded(x) ? copy_of(x) : x));
  name(x, a);
  return a;
}

// Of an inner recording: makes a tensor that is computed in the outer recording an argument.
std::optional<Access> Tracer::capture(const Tensor& x, std::string_view reader) {
  if (!outer_ || is_recorded(x)) return {};
  bool is_followed = all_captures_ && is_trainable(x.dtype());
  for (const Recorder* r = around_; r; r = r->outer())
    is_followed |= is_trainable(x.dtype()) && (r->watches_all() || r->tracks(x));
  if (outer_->is_constant(outer_->access_to(x, reader)) && !is_followed) return {};
  const Access a = program_.all_of(program_.add_argument(x.spec()));
  name(x, a);
  captures_.push_back({x, nullptr});
  return a;
}

// Whether access_to(x) gives an access. The value that an action gave a variable, for example, is known once
// the variable is read.
bool Tracer::knows(const Tensor& x) const {
  return find(x) || host_.contains(x.id()) || (!is_recorded(x) && (!outer_ || outer_->knows(x)));
}

Access Tracer::access_to(const Tensor& x, std::string_view reader) {
  if (const Access* known = use(x)) return *known;
  if (const auto captured = capture(x, reader)) return *captured;
  const bool is_unknown = is_recorded(x) && !host_.contains(x.id());
  if (is_unknown && attempt_)
    attempt_->given_up = true;
  else if (is_unknown)
    refuse(
        fmt::format("{}: {} reads {}, which was created during the recording, but neither by an op nor from "
                    "numbers; create it outside the function, or pass it as an argument{}",
                    name_, reader, x.spec(), place()));
  require_no_capture(x, reader);
  return add_constant(x);
}

void Tracer::require_no_capture(const Tensor& x, std::string_view reader) {
  if (allowed_.captures || (is_recorded(x) && !captured_.contains(x.id()))) return;
  refuse(
      fmt::format("{}: {} reads {}, which is not an argument and would become a constant; pass it as an "
                  "argument, make it a variable, or compile with captures{}",
                  name_, reader, x.spec(), place()));
}

// The position of the function, for messages: "; it comes after #11 exp, #12 mul".
std::string Tracer::place() const {
  std::string text;
  const std::size_t n = program_.size();
  for (std::size_t k = n - std::min<std::size_t>(n, 2); k < n; ++k)
    text +=
        fmt::format("{} #{} {}", text.empty() ? "; it comes after" : ",", k, name_of(program_[NodeId(k)]));
  return text;
}

// The id of a key that is an argument or split from one; none for any other key.
KeyId Tracer::key_of(const random::Key& key) {
  const std::uint64_t source = random::KeyAccess::source(key);
  auto at = keys_.find(source);
  if (at == keys_.end() && outer_)
    if (const KeyId outer = outer_->key_of(key)) {
      const KeyId own = program_.add_key({.number = captured_keys_.size()});
      captured_keys_.push_back(outer_->numbers_of(key, outer));
      at = keys_.emplace(source, own).first;
    }
  if (at == keys_.end()) return {};
  for (Attempt* a = attempt_; a && at->second.index() < a->keys; a = a->around)
    a->used_keys.push_back(at->second);
  return at->second;
}
// The numbers of a key of this recording, as a tensor that a node computes.
Tensor Tracer::numbers_of(const random::Key& key, KeyId id) {
  const KeyNumbers attrs{key};
  Tensor y = allocate({DType::u64, {2}});
  write_numbers(key, y);
  OpNode node{.op = &kKeyNumbers, .attrs = Attrs(attrs), .key = id, .in = {}};
  define(std::move(node), std::span(&y, 1));
  return y;
}
KeyId Tracer::key_of(const Call& c) {
  if (!c.raw_attrs.type || !c.raw_attrs.type->key) return {};
  const KeyId key = key_of(c.raw_attrs.type->key(const_cast<void*>(c.raw_attrs.data)));
  if (!key) require_captures_of_keys(c.op.name);
  return key;
}
void Tracer::require_captures_of_keys(std::string_view reader) {
  if (allowed_.captures) return;
  refuse(
      fmt::format("{}: {} draws with a key that is not an argument, so each call would draw the same "
                  "numbers; pass the key as an argument, or compile with captures{}",
                  name_, reader, place()));
}

// Checks that the running kernel, which every replay calls again, reads only its operands and constants.
void Tracer::require_operand(const Tensor& x) {
  const Access* a = find(x);
  if (!call_) return;
  if (!a) return require_no_capture(x, call_->op.name);
  if (is_constant(*a)) return;
  for (int i = 0; i < call_->x.size(); ++i)
    if (call_->x[i].id() == x.id()) return;
  refuse(
      fmt::format("{}: the kernel of {} uses {}, which is not one of its inputs: a replay would use the "
                  "tensor of the recording; make it an input{}",
                  name_, call_->op.name, x.spec(), place()));
}
void Tracer::require_own_key(std::uint64_t source) {
  if (!call_ || !keys_.contains(source)) return;
  const Attrs& attrs = call_->raw_attrs;
  if (attrs.type && attrs.type->key &&
      random::KeyAccess::source(attrs.type->key(const_cast<void*>(attrs.data))) == source)
    return;
  refuse(
      fmt::format("{}: the kernel of {} uses a key that is not the member \"key\" of its attributes: a "
                  "replay would use the key of the recording{}",
                  name_, call_->op.name, place()));
}

void Tracer::run(const Call& c, std::span<Tensor> y, void (*kernel)(const Call&, std::span<Tensor>)) {
  if (blind_) {
    for (int i = 0; i < c.x.size(); ++i)
      require_operand(c.x[i]);
    if (c.raw_attrs.type && c.raw_attrs.type->key)
      require_own_key(random::KeyAccess::source(c.raw_attrs.type->key(const_cast<void*>(c.raw_attrs.data))));
    return kernel(c, y);
  }
  if (!presence_ || thread_state.observer != &*presence_)
    refuse(
        fmt::format("{}: a Profile, NumericsCheck, AnomalyMode or the like, created inside the function, "
                    "would not see its replays; create it outside, around the calls{}",
                    name_, place()));
  if (is_given_up()) {
    for (int i = 0; i < c.x.size(); ++i)
      use(c.x[i]);
    key_of(c);
    return kernel(c, y);
  }
  try {
    if (c.op.forward.outputs == Outputs::by_kernel)
      run_composite(c, y, kernel);
    else
      run_kernel(c, y, kernel);
  } catch (...) {
    on_throw(c.op.name);
    throw;
  }
}

void Tracer::on_throw(std::string_view thrower) {
  if (blind_ || !refused_.empty()) return;
  note_refused(
      fmt::format("{}: {} has thrown, and the function has caught the error and continued, which a replay "
                  "would repeat for other numbers; let the error propagate, or check the numbers outside the "
                  "compiled function{}",
                  name_, thrower, place()));
}

std::vector<Access> Tracer::operands_of(const Call& c) {
  std::vector<Access> in;
  in.reserve(static_cast<std::size_t>(c.x.size()));
  for (int i = 0; i < c.x.size(); ++i)
    in.push_back(access_to(c.x[i], c.op.name));
  return in;
}

// Whether the results of a node are the same in each replay, which then need not run it.
bool Tracer::is_constant(const OpNode& node) const {
  return !node.key && !has_effect(*node.op) &&
         std::all_of(node.in.begin(), node.in.end(), [&](const Access& a) { return is_constant(a); });
}

void Tracer::add_op(OpNode node, std::span<const Tensor> y) {
  if (is_constant(node)) {
    for (const Tensor& t : y)
      add_constant(t);
    return;
  }
  define(std::move(node), y);
}
void Tracer::define(OpNode node, std::span<const Tensor> y) {
  for (const Tensor& t : y)
    node.out.push_back(new_value(t));
  program_.define(std::move(node));
}

// Of an inner recording, whose tensors are zeros: refuses an op whose shapes depend on the numbers of its
// inputs, by inferring them once more from other numbers.
void Tracer::require_known_shapes(const Call& c, std::span<const Tensor> y) {
  bool is_smooth = c.op.rule.kind != RuleKind::none;
  for (int i = 0; i < c.x.size(); ++i)
    is_smooth &= !c.x[i].defined() || is_trainable(c.x[i].dtype());
  if (is_smooth) return;   // it has derivatives, so its shape does not jump
  std::vector<Tensor> others;
  for (int i = 0; i < c.x.size(); ++i)
    others.push_back(c.x[i].defined() && !is_constant(access_to(c.x[i], c.op.name))
                         ? other_numbers(c.x[i].spec())
                         : c.x[i]);
  std::vector<const Tensor*> x;
  for (const Tensor& t : others)
    x.push_back(&t);
  bool is_known = true;
  try {
    const std::vector<Spec> specs =
        specs_of({.op = c.op, .raw_attrs = c.raw_attrs, .x = {x.data(), c.x.size()}});
    for (std::size_t k = 0; k < specs.size(); ++k)
      is_known &= specs[k] == y[k].spec();
  } catch (const std::exception&) {
    is_known = false;
  }
  if (!is_known)
    refuse(
        fmt::format("{}: the shape of the result of {} depends on the numbers of its inputs, which are not "
                    "known in the functions of branches and loops; compute it outside of them, or mask "
                    "elements instead of selecting them{}",
                    name_, c.op.name, place()));
}

void Tracer::run_kernel(const Call& c, std::span<Tensor> y, void (*kernel)(const Call&, std::span<Tensor>)) {
  OpNode node{.op = &c.op, .attrs = c.raw_attrs, .key = key_of(c), .in = operands_of(c)};
  map_ = nullptr;
  bool fails = false;
  if (outer_ && !c.op.forward.loops && !is_constant(node)) {
    require_known_shapes(c, y);
    for (Tensor& t : y)
      clear(t);
  } else {
    const Restored blind(blind_, true);
    const Restored call(call_, &c);
    const Restored result(result_, static_cast<const Tensor*>(y.data()));
    const RecordingScope unrecorded(nullptr);   // the op is recorded, not the ops inside its kernel
    try {
      kernel(c, y);
    } catch (const Error&) {
      if (!outer_) throw;
      fails = true;   // a replay that comes here throws
    }
  }
  node.map = map_, node.uses_variables = is_action_;
  if (fails)
    define(std::move(node), y);
  else
    add_op(std::move(node), y);
}

bool Tracer::attempt(const std::function<void()>& f) {
  const Restored rule(repeats_, repeats_ == Repeats::all ? Repeats::all : Repeats::nothing);
  return attempt_ops(f);
}
bool Tracer::attempt_ops(const std::function<void()>& f) {
  if (is_silent()) {
    f();
    return true;
  }
  const Program::Mark before = program_.mark();
  const std::size_t named = named_.size();
  if (!attempt_) read_.clear();
  Attempt attempt{.around = attempt_,
                  .accesses = accesses_.size(),
                  .keys = program_.keys().size(),
                  .used = read_.size(),
                  .captures = captures_.size(),
                  .captured_keys = captured_keys_.size()};
  try {
    const Restored inner(attempt_, &attempt);
    f();
  } catch (...) {
    // An inner recording has read zeros on the host, for which a kernel may fail.
    if (!outer_ || !attempt.given_up || !refused_.empty()) {
      on_throw("a derivative or composite op");
      throw;
    }
  }
  if (!attempt.given_up) {
    if (!attempt_) named_.clear();
    return true;
  }
  while (named_.size() > named) {
    const auto [id, place] = named_.back();
    named_.pop_back();
    others_.erase(id);
    place_of(id) = place;
  }
  used_captures_ = attempt.captures_others || captures_.size() > attempt.captures ||
                   captured_keys_.size() > attempt.captured_keys;
  program_.back_to(before);
  std::erase_if(keys_, [&](const auto& k) { return k.second.index() >= before.keys; });
  captures_.resize(attempt.captures), captured_keys_.resize(attempt.captured_keys);
  if (attempt.stores) stores_ = std::move(*attempt.stores);
  if (attempt.values) values_ = std::move(*attempt.values);
  used_ = used_by(attempt);
  used_keys_ = std::move(attempt.used_keys);
  used_variables_ = attempt.used_variables;
  return false;
}

// Checks that a rule or kernel whose attempt was given up used only the given operands and key. A replay
// passes new ones to the action, but anything that the rule or kernel captures stays as in the recording.
void Tracer::require_given(std::string_view name, std::span<const Access> given, KeyId key) {
  if (used_captures_)
    refuse(
        fmt::format("{}: {} reads numbers on the host, and uses a tensor or a key from outside of its branch "
                    "or loop: a replay would use that of the recording; compute by ops alone, or from the "
                    "arguments{}",
                    name_, name, place()));
  for (const Access& a : used_)
    if (std::find(given.begin(), given.end(), a) == given.end())
      refuse(fmt::format(
          "{}: {} reads numbers on the host, and uses {}, which is not one of its arguments: a replay would "
          "use the tensor of the recording; compute by ops alone, or from the arguments{}",
          name_, name, a.spec, place()));
  for (const KeyId k : used_keys_)
    if (k != key)
      refuse(
          fmt::format("{}: {} reads numbers on the host, and uses a key that is not one of its arguments: a "
                      "replay would use the key of the recording{}",
                      name_, name, place()));
}

void Tracer::become(const Op& op, std::span<const Tensor> x, std::span<const Tensor> y,
                    const random::Key& key, KeyedAction action) {
  ActionNode node{.op = &op, .action = std::move(action), .key = key_of(key), .constant_key = key};
  for (const Tensor& t : x)
    node.in.push_back(access_to(t, "a derivative"));
  const std::string what = fmt::format("the derivative of {}", op.name);
  require_given(what, node.in, node.key);
  if (outer_)   // with zeros, it may not have used what it captures
    refuse(fmt::format("{}: {} reads numbers on the host, in a branch or a loop; compute it by ops alone{}",
                       name_, what, place()));
  // Recorders have seen ops that are dropped now. If these belong to an outer attempt, that is given up, too;
  // otherwise derivatives would be wrong.
  if (thread_state.innermost && attempt_) return void(attempt_->given_up = true);
  if (thread_state.innermost)
    refuse(
        fmt::format("{}: {} reads numbers on the host, while a tape or an accumulator records it for a "
                    "further derivative, which would use the numbers of the recording{}",
                    name_, what, place()));
  if (used_variables_) flush_stores();
  for (const Tensor& t : y)
    node.out.push_back(t.defined() ? new_value(t) : ValueId());
  program_.define(std::move(node));
}

Trace::Branch Tracer::repeated(Branch f, Repeats what) {
  if (!f || what == Repeats::nothing) return f;
  return [f = std::move(f), what](std::span<const Tensor> x) {
    if (!thread_state.trace) return f(x);
    Repeats& repeats = static_cast<Tracer*>(thread_state.trace)->repeats_;
    const Restored here(repeats, std::max(repeats, what));
    return f(x);
  };
}

// Records the ops of which the kernel is composed; or one node, if it is not composed of ops alone.
void Tracer::run_composite(const Call& c, std::span<Tensor> y,
                           void (*kernel)(const Call&, std::span<Tensor>)) {
  OpNode node{.op = &c.op, .attrs = c.raw_attrs, .key = key_of(c), .in = operands_of(c)};
  if (outer_ && has_effect(c.op)) {   // which each replay has
    if (repeats_ != Repeats::nothing && c.op.meaning == Meaning::check) return share_with(y[0], c.x[0]);
    clear_all(c, y);
    return define(std::move(node), y);
  }
  const auto by_ops = [&] {
    const Restored call(call_, &c);
    kernel(c, y);
    for (const Tensor& t : y)
      if (!find(t)) attempt_->given_up = true;
  };
  const std::size_t before = program_.size();
  if (attempt_ops(std::ref(by_ops))) {
    // The kernel of an op with an effect that has recorded no op runs in each replay itself.
    if (!has_effect(c.op) || program_.size() != before) return;
  } else {
    require_given(c.op.name, node.in, node.key);
    if (used_variables_)
      refuse(
          fmt::format("{}: the kernel of {} reads numbers on the host, and reads or changes variables, which "
                      "a replay would do at another time; pass their values as inputs{}",
                      name_, c.op.name, place()));
    const bool fails = std::any_of(y.begin(), y.end(), [](const Tensor& t) { return !t.defined(); });
    if (outer_ && (fails || !is_constant(node))) {
      clear_all(c, y);
      require_known_shapes(c, y);
      return define(std::move(node), y);
    }
  }
  add_op(std::move(node), y);
}

void Tracer::on_map(const kernels::MapKernel& kernel, Refs x, const Tensor& y) {
  if (blind_) {
    if (!call_ || call_->x.size() != x.size()) return;
    for (int i = 0; i < x.size(); ++i)
      if (x[i].id() != call_->x[i].id()) return;
    if (y.id() == result_->id()) map_ = &kernel;
    return;
  }
  if (is_given_up()) {
    for (int i = 0; i < x.size(); ++i)
      use(x[i]);
    return;
  }
  JvpNode node{.map = &kernel};
  for (int i = 0; i < x.size(); ++i)
    node.in.push_back(access_to(x[i], "a derivative"));
  node.out = new_value(y);
  program_.define(std::move(node));
}

void Tracer::on_vjp(const Op& op, const kernels::VjpKernel& kernel, const Tensor& dy, const Tensor* const* x,
                    const Tensor& y, const Tensor* dx, unsigned adds) {
  if (blind_) return;
  const int n = kernel.inputs;
  if (is_given_up()) {
    for (int i = 0; i < n; ++i)
      use(*x[i]);
    if (y.defined()) use(y);
    use(dy);
    return;
  }
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
  // Gradients that accumulate in one tensor are one result.
  std::vector<std::pair<const void*, std::size_t>> results;   // by handle
  for (int i = 0; i < n; ++i) {
    if (!dx[i].defined()) continue;
    const auto known = std::find_if(results.begin(), results.end(),
                                    [&](const auto& r) { return r.first == dx[i].handle(); });
    if (known != results.end()) {
      node.results[known->second].inputs |= 1u << i;
      continue;
    }
    results.emplace_back(dx[i].handle(), node.results.size());
    node.results.push_back({{}, 1u << i, adds >> i & 1 ? access_to(dx[i], "a gradient") : Access()});
  }
  for (VjpNode::Result& r : node.results)
    r.value = new_value(dx[std::countr_zero(r.inputs)]);
  program_.define(std::move(node));
}

void Tracer::on_user_map(const kernels::UserLoops& loops, const Attrs& f, const kernels::PassTensors& pass) {
  if (blind_) return;
  if (is_given_up()) {
    for (int i = 0; i < pass.operands; ++i)
      if (pass.x[i]->defined()) use(*pass.x[i]);
    return;
  }
  UserMapNode node{.loops = &loops,
                   .closure = f,
                   .dtype = pass.dtype,
                   .shape = std::make_shared<const Shape>(pass.shape),
                   .inputs = pass.inputs,
                   .gradients = pass.gradients,
                   .directions = pass.directions};
  if (pass.shifts) node.shifts.assign(pass.shifts, pass.shifts + pass.operands);
  for (int i = 0; i < pass.operands; ++i) {
    const Spec spec = pass.x[i]->defined() ? pass.x[i]->spec() : Spec{pass.dtype, pass.shape};
    node.in.push_back(pass.read >> i & 1 ? access_to(*pass.x[i], "a map") : Access{.spec = spec});
  }
  for (int k = 0; k < pass.results; ++k)
    node.results.push_back({{}, pass.adds >> k & 1 ? access_to(pass.out[k], "a map") : Access()});
  for (int k = 0; k < pass.results; ++k)
    if (pass.out[k].defined()) node.results[static_cast<std::size_t>(k)].value = new_value(pass.out[k]);
  program_.define(std::move(node));
}

void Tracer::on_view(const Tensor& y, const Tensor& x, std::int64_t first) {
  if (blind_) return;
  if (!place_of_known(x) && outer_ && outer_->knows(x)) capture(x, "a view");
  if (const std::uint32_t place = place_of_known(x)) {
    const Access of = accesses_[place - 1];
    name(y, {of.of, of.first + first, y.spec()}, place);
  } else if (knows(x)) {
    host_.insert(y.id());
    if (!is_recorded(x) || captured_.contains(x.id())) captured_.insert(y.id());
  }
}
void Tracer::on_select(const Tensor& y, const Tensor& x, const kernels::StridedView& view) {
  if (blind_) return;
  const Access* of = use(x);
  if (is_given_up() || !of || is_constant(*of)) return;
  SelectNode node{.op = call_ ? &call_->op : nullptr,
                  .in = *of,
                  .view = std::make_shared<const kernels::StridedView>(view)};
  node.out = new_value(y);
  program_.define(std::move(node));
}
void Tracer::on_host_tensor(const Tensor& y) {
  if (!blind_) host_.insert(y.id());
}

void Tracer::on_host_read(const Tensor& x, std::string_view reader) {
  if (blind_) return require_operand(x);
  const Access* a = use(x);
  if (!a) require_no_capture(x, reader.empty() ? "the host" : reader);
  if (!a || is_constant(*a)) return;
  if (attempt_) {
    attempt_->given_up = true;
    return;
  }
  const Value& value = program_[a->of];
  const std::string by =
      value.from == Value::From::node
          ? fmt::format("computed by #{} {}", value.node.index(), name_of(program_[value.node]))
          : fmt::format("argument {}", value.argument);
  if (!reader.empty())
    refuse(fmt::format(
        "{}: {} reads the numbers of {}, {}, on the host, where a replay would see the numbers of the "
        "recording; use cond or where, or do this outside the compiled function, which a loop or branch may "
        "call{}",
        name_, reader, x.spec(), by, place()));
  const bool is_last = value.from == Value::From::node && value.node.index() + 1 == program_.size();
  refuse(
      fmt::format("{}: the numbers of {}, {}, are read on the host, where a replay would see the numbers of "
                  "the recording; use cond or where, or do this outside the compiled function{}",
                  name_, x.spec(), by, is_last ? "" : place()));
}
void Tracer::on_key_read(std::uint64_t source) {
  if (blind_) return require_own_key(source);
  if (!keys_.contains(source)) return;
  refuse(
      fmt::format("{}: a number of a key that is an argument is read, where a replay would see the key of "
                  "the recording; use key.split(i) to derive keys from it{}",
                  name_, place()));
}

void Tracer::on_recorder(std::uint64_t serial, std::string_view what, std::string_view use) {
  if (serial >= first_recorder_) return;
  refuse(
      fmt::format("{}: {} of {} {} from outside of a branch or a loop is called inside of it, where that {} "
                  "sees nothing; create one in the function of the branch or the step, or call {} outside, "
                  "before or after the whole branch or loop{}",
                  name_, use, what == "tape" ? "a" : "an", what, what, use, place()));
}

void Tracer::on_variable(detail::VariableCell& cell) {
  if (blind_) return;
  if (outer_)
    refuse(fmt::format("{}: a branch or a loop creates a variable; create it outside{}", name_, place()));
  made_variables_ = true;
  set_place(cell.value.id(), 0);
}

// Saves the state of variables in the attempts, before it changes.
void Tracer::change_variables() {
  for (Attempt* a = attempt_; a && !a->stores; a = a->around)
    a->stores = stores_, a->values = values_;
}

// Notes that a variable is read or changed. Kernels must not do so: a replay runs them at another time
// relative to assignments, which take effect at its end.
void Tracer::note_variable(detail::VariableCell& cell) {
  variables_.try_emplace(&cell, cell.weak_from_this());
  for (Attempt* a = attempt_; a; a = a->around)
    a->used_variables = true;
  if (blind_ && call_)
    refuse(
        fmt::format("{}: the kernel of {} reads or changes {}, which a replay would do at another time; pass "
                    "its value as an input{}",
                    name_, call_->op.name, detail::described(cell), place()));
}

void Tracer::on_read(detail::VariableCell& cell, const Tensor& value) {
  note_variable(cell);
  if (blind_) return;
  if (is_given_up()) {   // the action will read the variable itself
    if (const Access* a = find(value)) name(value, Access(*a));
    return;
  }
  const auto known = values_.find(&cell);
  if (known != values_.end() && known->second.id == cell.value.id()) return name(value, known->second.value);
  change_variables();
  const ValueId v = uses_variables() ? program_.promise(value.spec()) : program_.add_argument(value.spec());
  if (uses_variables())
    program_.define(ReadNode{.cell = cell.shared_from_this(), .out = v});
  else
    captures_.push_back({{}, cell.shared_from_this()});
  values_[&cell] = {cell.value.id(), program_.all_of(v)};
  name(value, program_.all_of(v));
}

void Tracer::on_assign(detail::VariableCell& cell, const Tensor& before) {
  note_variable(cell);
  if (outer_) before_.emplace_back(cell.shared_from_this(), before);
  if (is_silent()) return;
  const Access a = access_to(cell.value, "a variable");
  change_variables();
  std::erase_if(stores_, [&](const auto& s) { return s.first.get() == &cell; });
  stores_.emplace_back(cell.shared_from_this(), a);
  values_[&cell] = {cell.value.id(), a};
}

// Called at the end, and before nodes that may read and change variables.
void Tracer::flush_stores() {
  change_variables();
  for (auto& [cell, a] : stores_)
    program_.define(StoreNode{.cell = std::move(cell), .in = a});
  stores_.clear(), values_.clear();
}
void Tracer::begin_action() {
  if (!allowed_.no_actions.empty())
    refuse(fmt::format("{}: a step of an optimizer or the like {}{}", name_, allowed_.no_actions, place()));
  acts_ = true;
  for (Attempt* a = attempt_; a; a = a->around)
    a->used_variables = true;
  flush_stores();
  // In a replay the action may change any variable, also those that it does not change now.
  const Restored none(thread_state.trace, static_cast<Trace*>(nullptr));
  for (const auto& [address, weak] : variables_)
    if (const auto cell = weak.lock()) {
      const Tensor before = std::exchange(cell->value, share(cell->value));
      if (outer_) before_.emplace_back(cell, before);
    }
}
std::vector<Tensor> Tracer::act(std::vector<Tensor> x, std::span<const Spec> specs, Action action) {
  const bool is_recorded = !is_silent();
  ActionNode node{
      .action = [action](std::span<const Tensor> now, const random::Key&) { return action(now); }};
  if (is_recorded) {
    begin_action();
    for (const Tensor& t : x)
      node.in.push_back(access_to(t, "an action"));
  }
  std::vector<Tensor> y;
  try {
    const Restored blind(blind_, true);
    const Restored none(thread_state.trace, static_cast<Trace*>(nullptr));
    if (!outer_) y = action(x);
  } catch (...) {
    on_throw("a step of an optimizer or the like");
    throw;
  }
  for (std::size_t k = 0; outer_ && k < specs.size(); ++k)
    y.push_back(zeros_of(specs[k]));
  if (!is_recorded) return y;
  for (Tensor& t : y) {
    if (t.defined() && find(t)) t = share(t);   // an existing tensor, but a replay may return another one
    node.out.push_back(t.defined() ? new_value(t) : ValueId());
  }
  program_.define(std::move(node));
  return y;
}

std::vector<Tensor> Tracer::act_by(const std::function<std::vector<Tensor>()>& op) {
  const Restored action(is_action_, true);
  begin_action();
  return op();
}

bool Tracer::is_computed(const Tensor& x) {
  if (is_silent()) return false;
  if (const Access* a = find(x)) return !is_constant(*a);
  return outer_ && !is_recorded(x) && outer_->is_computed(x);
}

random::Key Tracer::on_split(const random::Key& key, std::uint64_t i, const random::Key& part) {
  if (blind_) return part;
  const KeyId of = key_of(key);
  if (!of) return part;
  const std::uint64_t source = next_source();
  keys_[source] = program_.add_key({.of = of, .number = i});
  return random::KeyAccess::from(part, source);
}

random::Key Tracer::on_split(const random::Key& key, const Tensor& i) {
  const random::Key plain = {random::KeyAccess::seed(key), random::KeyAccess::stream(key)};
  const random::Key part = plain.split(integer_at(i.raw(), i.dtype()));
  if (is_silent()) return part;
  const KeyId of = key_of(key);
  if (!of) require_captures_of_keys("key.split");
  const Access number = access_to(i, "key.split");
  if (program_[number.of].from != Value::From::argument || number.first != 0)
    refuse(
        fmt::format("{}: a key is split by {}, which is computed; split it by an argument of the function, "
                    "or by the index of a loop{}",
                    name_, i.spec(), place()));
  const std::uint64_t source = next_source();
  keys_[source] = program_.add_key({.of = of, .by = number.of, .constant = key});
  return random::KeyAccess::from(part, source);
}

Program Tracer::finish(std::span<const Tensor> outputs) {
  if (!refused_.empty()) throw TraceError(refused_);
  std::unordered_map<std::uint64_t, std::size_t> firsts;   // the first output with each id
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Tensor& y = outputs[i];
    if (!y.defined()) {
      program_.add_output({});
      continue;
    }
    const std::size_t first = firsts.try_emplace(y.id(), i).first->second;
    program_.add_output(access_to(y, "the result"), first, !is_recorded(y));
  }
  flush_stores();
  program_.forget_constants();
  end();
  return without_unread_outputs(std::move(program_));
}

}   // namespace tapedeck::compiled
