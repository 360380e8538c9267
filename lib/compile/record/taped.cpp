#include "compile/record/taped.h"

#include <algorithm>
#include <map>
#include <optional>

#include "compile/plan/verify.h"
#include "compile/record/derivatives.h"
#include "core/bytes.h"
#include "core/format.h"
#include "op/observer.h"
#include "op/recorder.h"
#include "tape/record_operation.h"
#include "tape/variable.h"
#include "tapedeck/creation.h"

namespace tapedeck::compiled {

using detail::Arguments, detail::Eager, detail::OwnedFunction, detail::Returned;

// The program of a function, and that of its gradients, for arguments and captures of which these are
// followed.
struct TapedProgram {
  /// Where an argument of the backward program comes from, and the index among those.
  struct Origin {
    enum class From : std::uint8_t { nothing, argument, cotangent, capture, result } from = From::nothing;
    std::size_t index = 0;
  };
  /// What a result of the function is, and the index among those.
  struct Result {
    enum class Is : std::uint8_t { none, argument, capture, repeated, computed } is;
    std::size_t index;
  };
  /// A program of gradients, for some of the cotangents.
  struct Backward {
    explicit Backward(Reduced r) : callee(std::move(r.program)), is_zero(std::move(r.is_zero)) {}

    Callee callee;
    std::vector<bool> is_zero;   // by output; empty: none is
  };

  TapedProgram(const Arguments& x, std::vector<std::size_t> wanted, const CompileOptions& o)
      : signature(x),
        gradients(options_of("gradient", o)),
        tangents(options_of("tangents", o)),
        step{.name = "function " + o.name, .whole = true, .program = this} {
    d.operands = x.tensors.size();
    d.wanted = std::move(wanted);
  }
  static CompileOptions options_of(std::string_view what, const CompileOptions& o) {
    return {.name = fmt::format("{} of {}", what, o.name),
            .max_programs = o.max_programs,
            .captures = o.captures,
            .as_one_op = true};
  }
  void record(const Arguments& x, const Eager& f, const CompileOptions& o);
  /// Whether no recorder has to see the calls.
  bool is_plain() const { return !forward; }
  std::shared_ptr<const Backward> backward(const std::vector<bool>& missing);
  std::vector<std::shared_ptr<detail::VariableCell>> cells() const {
    std::vector<std::shared_ptr<detail::VariableCell>> all;
    for (const auto& [cell, value] : function.stores)
      all.push_back(cell);
    return all;
  }

  Signature signature;
  Recorded function = {};   // what the function captures and assigns, and its results
  Differentiated d;         // its captures as they were found
  std::vector<Result> results;
  std::vector<std::optional<Spec>> specs;   // of the results
  std::vector<std::size_t> computed;        // the computed ones, counted among the defined ones
  std::shared_ptr<const void> structure;    // of the results

  std::vector<Tracer::Capture> captures;   // of the function with its gradients
  std::vector<std::size_t> keys;           // by key of the programs: the index of the argument
  std::shared_ptr<const Callee> forward;   // gives results, assigned values, and what the gradients read
  std::size_t kept = 0;                    // the number of the last
  std::optional<Program> program;          // of the gradients
  std::vector<Origin> read;                // by argument of that
  std::vector<ValueId> cotangents;         // those of its arguments that are
  std::vector<Gradient> gradients_like;    // the gradients, without their tensors
  std::vector<bool> has_tensors;           // by tensor of the gradients: whether it is defined

  detail::Programs gradients, tangents;   // of the function, as functions, to be differentiated
  ReplayedStep step;                      // for observers

 private:
  void require_same(const Recorded& r, std::string_view name) const;
  void note_keys(std::span<const Tensor> read_keys, std::span<const random::Key> given,
                 std::string_view name);
  void note_results(std::span<const std::uint64_t> ids, std::span<const std::uint64_t> arguments);
  void note_reads(const Program& p, std::size_t cotangents_end, std::size_t captures_end);

  std::mutex mutex_;
  std::map<std::vector<bool>, std::shared_ptr<const Backward>> backward_;   // by missing cotangents
};

namespace {

using From = TapedProgram::Origin::From;

// The function as one whose results are those of the recording: where it returns none now, and did not with
// zeros, they are zeros. In the functions of branches its effects are not recorded again.
Function again(const TapedProgram& p, const OwnedFunction& f, const std::vector<random::Key>& keys) {
  const auto run = [f, keys, name = p.step.name, specs = p.specs](std::span<const Tensor> in) {
    std::vector<Tensor> y = f({in.begin(), in.end()}, keys).tensors;
    bool is_like = y.size() == specs.size();
    for (std::size_t k = 0; is_like && k < y.size(); ++k) {
      if (!y[k].defined() && specs[k]) y[k] = zeros(specs[k]->shape, specs[k]->dtype);
      is_like = y[k].defined() ? specs[k] && *specs[k] == y[k].spec() : !specs[k];
    }
    if (!is_like)
      throw_error<GradientError>(
          "{}: its results are of other kinds than in the recording, such as sparse instead of dense "
          "gradients of a branch; compile it without as_one_op",
          name);
    return y;
  };
  return Tracer::repeated(run, Tracer::Repeats::all);
}

// A call of a program that tapes have recorded.
struct TapedCall {
  std::shared_ptr<TapedProgram> program;
  OwnedFunction f;
  Arguments x;
  Differentiated d;   // with the captures of this call
  DType default_type = default_dtype();
  std::vector<std::pair<std::shared_ptr<detail::VariableCell>, Tensor>> values = {};   // of variables
  Tensors read = {};     // by argument of the backward program; undefined if it is a cotangent, or not read
  Tensors inputs = {};   // of the operation that tapes record

  std::vector<Gradient> backward(std::span<const Tensor> dy) const;
  Tensors forward(std::span<const Tensor> tangents) const;

 private:
  std::vector<Gradient> run_backward(std::span<const Tensor> dy, const std::vector<bool>& missing) const;
  template <class R> R derivative(detail::Programs& programs, const std::vector<bool>& has,
                                  std::span<const Tensor> given, const OwnedFunction& g) const;
};

// Scope in which variables, and the default dtype, are as they were in a call, since its function runs again.
// At its end, variables have their values from before.
class AsInTheCall {
 public:
  explicit AsInTheCall(const TapedCall& call) : type_(default_dtype()) {
    before_.reserve(call.values.size() + call.program->function.stores.size());
    for (const auto& [cell, value] : call.values) {
      before_.emplace_back(cell, cell->value);
      if (cell->value.id() != value.id()) cell->value = value;
    }
    for (const auto& [cell, access] : call.program->function.stores)
      before_.emplace_back(cell, cell->value);
    if (type_ != call.default_type) set_default_dtype(call.default_type);
  }
  ~AsInTheCall() {
    for (std::size_t k = before_.size(); k-- > 0;)
      if (const auto& [cell, value] = before_[k]; cell->value.id() != value.id()) cell->value = value;
    if (default_dtype() != type_) set_default_dtype(type_);
  }
  AsInTheCall(const AsInTheCall&) = delete;

 private:
  std::vector<std::pair<std::shared_ptr<detail::VariableCell>, Tensor>> before_;
  DType type_;
};

// Calls a derivative, which is a function of the arguments and of some cotangents or tangents.
template <class R> R TapedCall::derivative(detail::Programs& programs, const std::vector<bool>& has,
                                           std::span<const Tensor> given, const OwnedFunction& g) const {
  std::optional<AsInTheCall> scope;
  if (!thread_state.trace) {
    scope.emplace(*this);
  } else {   // which would read and assign variables in each replay
    d.captured.require_current(program->step.name);
    if (!program->function.stores.empty())
      throw_error<GradientError>(
          "{}: it assigns {}, so a compiled function cannot take its gradient outside of the function in "
          "which it was called",
          program->step.name, detail::described(*program->function.stores[0].first));
  }
  Arguments all = x;
  all.tensors.insert(all.tensors.end(), given.begin(), given.end());
  for (const bool b : has)
    all.add_bytes(b);
  const auto owned = [&] { return g; };
  std::vector<Tensor> y;
  const std::shared_ptr<const void> structure = programs.call(all, Eager(g, owned), y);
  R result = *static_cast<const R*>(structure.get());
  detail::put_tensors(result, y);
  return result;
}

std::vector<Gradient> TapedCall::backward(std::span<const Tensor> dy) const {
  std::vector<bool> missing, trainable(d.trainable.size());
  Tensors given;
  for (std::size_t k = 0; k < dy.size(); ++k) {
    const std::size_t result = program->computed[k];
    if (!d.trainable[result]) continue;
    missing.push_back(!dy[k].defined());
    trainable[result] = dy[k].defined();
    if (dy[k].defined()) given.push_back(dy[k]);
  }
  const bool is_seen = thread_state.trace || (thread_state.observer && must_see_ops()) ||
                       std::any_of(given.begin(), given.end(), followed) ||
                       std::any_of(inputs.begin(), inputs.end(), followed);
  if (!is_seen) return run_backward(dy, missing);
  Differentiated some = d;
  some.trainable = trainable;
  const OwnedFunction g = [some, p = program, f = f](Eager::Tensors in, Eager::Keys keys) {
    Tensors y;
    return detail::returned(some.gradients(again(*p, f, keys), in, UnconnectedGradients::none, y));
  };
  return derivative<std::vector<Gradient>>(program->gradients, missing, given, g);
}

Tensors TapedCall::forward(std::span<const Tensor> tangents) const {
  std::vector<bool> has;
  std::vector<std::size_t> sources;
  Tensors given;
  for (std::size_t s = 0; s < tangents.size(); ++s) {
    has.push_back(tangents[s].defined());
    if (has.back()) sources.push_back(s), given.push_back(tangents[s]);
  }
  const OwnedFunction g = [d = d, sources, p = program, f = f](Eager::Tensors in, Eager::Keys keys) {
    return detail::returned(d.tangents(again(*p, f, keys), sources, in, UnconnectedGradients::none));
  };
  const Tensors all = derivative<Tensors>(program->tangents, has, given, g);
  Tensors computed;
  for (const std::size_t k : program->computed)
    computed.push_back(all[k]);
  return computed;
}

// Runs a program. arguments: null for those that it does not read.
Tensors replay(const Callee& callee, std::span<const ReadOnly> arguments,
               const std::vector<std::size_t>& places, std::span<const random::Key> keys) {
  const std::span<const Access> outputs = callee.plan.program.outputs();
  Tensors y(outputs.size());
  std::vector<Writable> to;
  for (std::size_t k = 0; k < y.size(); ++k)
    to.push_back(OutputSlot(y[k], nullptr, outputs[k].spec).memory());
  std::vector<random::Key> own;
  for (const std::size_t i : places)
    own.push_back(keys[i]);
  const BorrowedWorkspace workspace(callee.workspaces);
  workspace->replay(0, callee.plan).run_at(arguments, own, to);
  return y;
}

std::vector<Gradient> TapedCall::run_backward(std::span<const Tensor> dy,
                                              const std::vector<bool>& missing) const {
  const std::shared_ptr<const TapedProgram::Backward> back = program->backward(missing);
  std::vector<const Tensor*> cotangents;
  for (std::size_t k = 0; k < dy.size(); ++k)
    if (d.trainable[program->computed[k]]) cotangents.push_back(&dy[k]);
  std::vector<ReadOnly> arguments;
  for (std::size_t i = 0; i < program->read.size(); ++i) {
    const TapedProgram::Origin& o = program->read[i];
    const Tensor& t = o.from == From::cotangent ? *cotangents[o.index] : read[i];
    arguments.emplace_back(t.defined() ? t.raw() : nullptr);
  }
  Tensors y = replay(back->callee, arguments, program->keys, x.keys), all;
  std::vector<bool> is_zero;
  for (std::size_t k = 0, next = 0; k < program->has_tensors.size(); ++k) {
    const bool has = program->has_tensors[k];
    is_zero.push_back(has && !back->is_zero.empty() && back->is_zero[next]);
    all.push_back(has ? std::move(y[next++]) : Tensor());
  }
  std::vector<Gradient> dx = program->gradients_like;
  detail::put_tensors(dx, all);
  for (std::size_t k = 0, next = 0; k < dx.size(); ++k) {
    const std::size_t tensors = dx[k].slices() ? 2 : 1;
    if (is_zero[next]) dx[k] = {};   // no path leads there from the cotangents
    next += tensors;
  }
  return dx;
}

}   // namespace

// ids: those of the results, 0 for none; arguments: those of the arguments.
void TapedProgram::note_results(std::span<const std::uint64_t> ids,
                                std::span<const std::uint64_t> arguments) {
  using Is = Result::Is;
  std::vector<std::uint64_t> captured;
  for (const Tracer::Capture& c : function.captures)
    captured.push_back(c.cell ? c.cell->value.id() : c.tensor.id());
  const auto place = [](std::span<const std::uint64_t> list, std::uint64_t id) {
    return static_cast<std::size_t>(std::find(list.begin(), list.end(), id) - list.begin());
  };
  std::size_t defined = 0;
  for (std::size_t k = 0; k < ids.size(); ++k) {
    if (ids[k] == 0) {
      results.push_back({Is::none, 0}), specs.emplace_back();
      continue;
    }
    const std::size_t argument = place(arguments, ids[k]), capture = place(captured, ids[k]),
                      first = place(ids, ids[k]);
    if (argument < arguments.size())
      results.push_back({Is::argument, argument});
    else if (capture < captured.size())
      results.push_back({Is::capture, capture});
    else if (first < k)
      results.push_back({Is::repeated, first});
    else
      results.push_back({Is::computed, computed.size()}), computed.push_back(defined);
    const Spec& spec = *specs.emplace_back(function.results[defined++].spec);
    d.trainable.push_back(results.back().is == Is::computed && is_trainable(spec.dtype));
  }
}

// The arguments of the program of gradients are those of the function, cotangents up to `cotangents_end`,
// captures up to `captures_end`, and values that a call has kept.
void TapedProgram::note_reads(const Program& p, std::size_t cotangents_end, std::size_t captures_end) {
  const IdVector<ValueId, bool> is_read = p.read();
  for (std::size_t i = 0; i < p.arguments().size(); ++i) {
    if (!is_read[p.arguments()[i]])
      read.push_back({});
    else if (i < d.operands)
      read.push_back({From::argument, i});
    else if (i < cotangents_end)
      read.push_back({From::cotangent, i - d.operands});
    else if (i < captures_end)
      read.push_back({From::capture, i - cotangents_end});
    else
      read.push_back({From::result, i - captures_end});
  }
}

// Throws TraceError unless the function has given the same results, and assigned the same variables, in its
// second run.
void TapedProgram::require_same(const Recorded& r, std::string_view name) const {
  const auto is_same = [](const auto& a, const auto& b) { return a.first == b.first; };
  if (!std::equal(function.defined.begin(), function.defined.end(), r.defined.begin(),
                  r.defined.begin() +
                      static_cast<std::ptrdiff_t>(std::min(function.defined.size(), r.defined.size()))) ||
      !std::equal(function.results.begin(), function.results.end(), r.results.begin(),
                  [](const Access& a, const Access& b) { return a.spec == b.spec; }) ||
      !std::equal(function.stores.begin(), function.stores.end(), r.stores.begin(), r.stores.end(), is_same))
    throw_error<TraceError>("{}: returns or assigns something else in its second run", name);
}

// read_keys: the numbers of the keys that the programs read.
void TapedProgram::note_keys(std::span<const Tensor> read_keys, std::span<const random::Key> given,
                             std::string_view name) {
  for (const Tensor& key : read_keys) {
    const random::Key numbers = key_at(key.raw());
    const auto at = std::find_if(given.begin(), given.end(),
                                 [&](const random::Key& k) { return random::KeyAccess::equal(k, numbers); });
    if (at == given.end()) throw_error<TraceError>("{}: reads a key that is not an argument", name);
    keys.push_back(static_cast<std::size_t>(at - given.begin()));
  }
}

// Records the function with zeros for its arguments, and once more with its gradients.
void TapedProgram::record(const Arguments& x, const Eager& f, const CompileOptions& o) {
  Tracer outer(
      o.name, {.captures = o.captures == Captures::allow, .no_actions = "is under a tape or an accumulator"});
  std::vector<random::Key> own_keys;
  for (const random::Key& k : x.keys)
    own_keys.push_back(outer.add_key(k));
  std::vector<std::uint64_t> ids, given;   // of the results, and of the arguments; 0: none
  const Function run = [&](std::span<const Tensor> in) {
    Tensors own;
    for (const std::size_t first : signature.tensors)
      own.push_back(in[first]);
    Returned r = f(own, own_keys);
    structure = std::move(r.structure);
    ids.clear(), given.clear();
    for (const Tensor& t : own)
      given.push_back(t.id());
    for (const Tensor& t : r.tensors)
      ids.push_back(t.defined() ? t.id() : 0);
    return std::move(r.tensors);
  };
  std::vector<Spec> arguments = signature.specs;
  function = compiled::record(outer, arguments, run, {.all_captures = true});
  function.program = {}, function.keys.clear();
  note_results(ids, given);
  for (std::size_t k = 0; k < d.trainable.size(); ++k)
    if (d.trainable[k]) arguments.push_back(function.results[k].spec);
  Operands operands;
  d.captured.find(std::span(&function, 1), cells(), operands);
  if (d.sources() == 0 || arguments.size() == d.operands) return;

  Recorded r = compiled::record(outer, arguments,
                                [&](std::span<const Tensor> in) {
                                  Tensors y;
                                  gradients_like = d.gradients(run, in, UnconnectedGradients::none, y);
                                  detail::take_tensors(gradients_like, y);
                                  return y;
                                },
                                {.all_captures = true});
  require_same(r, o.name);
  note_keys(r.keys, x.keys, o.name);
  const std::size_t end = arguments.size();
  has_tensors.assign(r.defined.begin() + static_cast<std::ptrdiff_t>(function.defined.size()),
                     r.defined.end());
  const std::vector<ValueId>& all = r.program.arguments();
  cotangents.assign(all.begin() + static_cast<std::ptrdiff_t>(d.operands),
                    all.begin() + static_cast<std::ptrdiff_t>(end));
  const std::span<const Access> gradient =
      std::span<const Access>(r.results).subspan(function.results.size());
  Parts parts = cut(r, cotangents, gradient);
  for (const std::size_t k : computed)
    parts.first.add_output(r.results[k]);
  for (const auto& [cell, value] : r.stores)
    parts.first.add_output(value);
  for (const ValueId v : parts.kept)
    parts.first.add_output(parts.first.all_of(v));
  kept = parts.kept.size();
  for (const Access& a : gradient)
    parts.second.add_output(a);

  note_reads(parts.second, end, all.size());
  parts.first.forget_constants(), parts.second.forget_constants();
  captures = std::move(r.captures);
  d.captured.forget_values();
  program = std::move(parts.second);
  forward = std::make_shared<const Callee>(std::move(parts.first));
  backward({});
}

std::shared_ptr<const TapedProgram::Backward> TapedProgram::backward(const std::vector<bool>& missing) {
  const bool is_whole = std::find(missing.begin(), missing.end(), true) == missing.end();
  const std::lock_guard lock(mutex_);
  constexpr std::size_t most = 64;   // programs; a function with many results has more sets of cotangents
  if (backward_.size() >= most) backward_.clear();
  std::shared_ptr<const Backward>& made = backward_[is_whole ? std::vector<bool>() : missing];
  if (!made) {
    Reduced reduced = is_whole ? Reduced{*program, {}} : without_cotangents(*program, cotangents, missing);
    made = std::make_shared<const Backward>(std::move(reduced));
  }
  return made;
}

namespace {

// Calls the program: sets y to the results, and records the call on the thread's recorders.
void run(const std::shared_ptr<TapedProgram>& p, const Arguments& x, CapturedSources captured,
         Operands& operands, OwnedFunction f, std::vector<Tensor>& y) {
  Tensors captures;
  for (const Tracer::Capture& c : p->captures)
    captures.push_back(operands.value_of(c));
  std::vector<ReadOnly> arguments;
  for (const Tensor& t : x.tensors)
    arguments.emplace_back(t.raw());
  arguments.resize(arguments.size() + p->cotangents.size());
  for (const Tensor& t : captures)
    arguments.emplace_back(t.raw());
  Tensors all;
  observe_step(p->step, [&] { all = replay(*p->forward, arguments, p->keys, x.keys); });

  const std::size_t computed = p->computed.size();
  const auto call = std::make_shared<TapedCall>(TapedCall{p, std::move(f), x, p->d});
  call->d.captured = std::move(captured);
  for (const Tracer::Capture& c :
       p->captures)   // what a read returns may be another tensor, which tapes track
    if (c.cell) call->values.emplace_back(c.cell, c.cell->value);
  for (const TapedProgram::Origin& o : p->read)
    call->read.push_back(o.from == From::argument  ? x.tensors[o.index]
                         : o.from == From::capture ? captures[o.index]
                         : o.from == From::result  ? all[all.size() - p->kept + o.index]
                                                   : Tensor());
  for (const std::size_t i : p->d.wanted)
    call->inputs.push_back(x.tensors[i]);
  const Tensors& values = call->d.captured.values();
  call->inputs.insert(call->inputs.end(), values.begin(), values.end());
  record_operation_accepting_none(
      p->step.name, std::span(all).first(computed), call->inputs,
      [call](std::span<const Tensor> dy) { return call->backward(dy); },
      [call](std::span<const Tensor> tangents) { return call->forward(tangents); });
  for (std::size_t k = 0; k < p->function.stores.size(); ++k)
    Variable(p->function.stores[k].first).assign(all[computed + k]);
  y.clear();
  for (const TapedProgram::Result& r : p->results) {
    using Is = TapedProgram::Result::Is;
    y.push_back(r.is == Is::argument   ? x.tensors[r.index]
                : r.is == Is::capture  ? operands.value_of(p->function.captures[r.index])
                : r.is == Is::repeated ? y[r.index]
                : r.is == Is::computed ? all[r.index]
                                       : Tensor());
  }
}

}   // namespace

TapedPrograms::~TapedPrograms() = default;

TapedPrograms::Way TapedPrograms::call(const Arguments& x, const Eager& f, std::vector<Tensor>& y,
                                       std::shared_ptr<const void>& structure) {
  if (!std::all_of(x.tensors.begin(), x.tensors.end(), [](const Tensor& t) { return t.defined(); }))
    return Way::by_itself;
  std::vector<std::size_t> wanted;
  const std::vector<std::size_t> firsts = first_tensors(x.tensors);
  for (std::size_t i = 0; i < firsts.size(); ++i)
    if (firsts[i] == i && followed(x.tensors[i])) wanted.push_back(i);
  std::vector<std::shared_ptr<TapedProgram>> programs;
  bool is_refused = false;
  {
    const std::lock_guard lock(mutex_);
    const auto known = std::find_if(patterns_.begin(), patterns_.end(),
                                    [&](const Pattern& p) { return p.matches(x, wanted); });
    if (known == patterns_.end()) {
      if (!is_full()) patterns_.push_back({Signature(x), std::move(wanted)});
      return Way::by_itself;
    }
    is_refused = known->refused || programs_.size() >= static_cast<std::size_t>(options_.max_programs);
    for (const auto& p : programs_)
      if (p->d.wanted == wanted && p->signature.matches(x)) programs.push_back(p);
  }
  for (const auto& p : programs) {
    CapturedSources captured;
    Operands operands;
    captured.find(std::span(&p->function, 1), p->cells(), operands);
    if (!captured.are_those_of(p->d.captured)) continue;
    if (p->is_plain()) return Way::as_unwatched;
    run(p, x, std::move(captured), operands, f.owned(), y);
    structure = p->structure;
    return Way::done;
  }
  if (is_refused) return Way::by_itself;
  std::shared_ptr<TapedProgram> made;
  try {
    made = std::make_shared<TapedProgram>(x, wanted, options_);
    made->record(x, f, options_);
  } catch (const std::bad_alloc&) {
    return Way::by_itself;
  } catch (const InternalError& e) {
    report_fault(options_.name, e.what());
    made = nullptr;
  } catch (...) {
    made = nullptr;   // the function says itself what is wrong with a call
  }
  const std::lock_guard lock(mutex_);
  if (!made)
    for (Pattern& p : patterns_)
      p.refused |= p.matches(x, wanted);
  else if (std::none_of(programs_.begin(), programs_.end(), [&](const auto& p) {   // of another thread
             return p->d.wanted == wanted && p->signature.matches(x) &&
                    p->d.captured.are_those_of(made->d.captured);
           }))
    programs_.push_back(std::move(made));
  return Way::by_itself;
}

}   // namespace tapedeck::compiled
