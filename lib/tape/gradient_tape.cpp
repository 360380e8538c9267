// The public functions of tapes, which check their arguments and the state of the tape.
#include "tapedeck/gradient_tape.h"

#include "core/format.h"
#include "tape/imperative_grad.h"
#include "tape/untracked_source.h"

namespace tapedeck {
namespace {

void check(std::span<const Tensor> targets, const GradientOptions& options) {
  const std::span<const Gradient> output_gradients = options.output_gradients;
  check_mode("gradient", options.unconnected);
  if (options.aggregation < Aggregation::add_n || options.aggregation > Aggregation::accumulate_n)
    throw_error<ArgumentError>(
        "gradient: unknown value for aggregation: {}; use Aggregation::add_n, tree or accumulate_n",
        static_cast<int>(options.aggregation));
  if (output_gradients.empty()) return;
  if (output_gradients.size() != targets.size())
    throw_error<ArgumentError>("gradient: {} output gradients for {} targets", output_gradients.size(),
                               targets.size());
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const Gradient& g = output_gradients[i];
    if (!g.defined()) continue;
    const Spec target = targets[i].spec();
    Spec given = target;
    if (const IndexedSlices* s = g.slices()) {
      validate({s->values, s->indices, s->dense_shape.value_or(target.shape)}, "gradient");
      given = {s->values.dtype(), s->dense_shape.value_or(target.shape)};
    } else {
      given = g.tensor().spec();
    }
    if (given.dtype != target.dtype)
      throw_error<DTypeError>("gradient: output gradient {} is {}, its target {}; use astype", i, given,
                              target);
    if (given.shape != target.shape)
      throw_error<ShapeError>("gradient: output gradient {} is {}, its target {}", i, given, target);
  }
}

bool thread_paused() { return thread_state.scopes && !thread_state.innermost; }

void watch_checked(Tape& tape, const Tensor& x) {
  require_inside(tape, "tape", "watch");
  if (!x.defined()) throw_error<ArgumentError>("watch: the tensor is undefined");
  if (!is_trainable(x.dtype()))
    return warn(fmt::format("watch: the tensor is {}, which has no derivative", name_of(x.dtype())));
  if (thread_paused()) return;
  if (tape.watches(x))
    return warn(
        fmt::format("watch: this {} is watched already. Copies of a handle are one tensor, which has one "
                    "gradient; for a separate tensor with the same value, use identity",
                    x.spec()));
  tape.watch(x);
}

}   // namespace

void check_mode(std::string_view what, UnconnectedGradients mode) {
  if (mode != UnconnectedGradients::none && mode != UnconnectedGradients::zero)
    throw_error<ArgumentError>(
        "{}: unknown value for unconnected: {}; use UnconnectedGradients::none or zero", what,
        static_cast<int>(mode));
}

bool is_path(Tape& tape, const Tensor& target, const Tensor& source) {
  if (target.id() == source.id()) return is_trainable(target.dtype());
  const Slot to = tape.slot_of(source);
  std::vector<Slot> stack = {tape.slot_of(target)};
  if (to < 0 || stack[0] < 0) return false;
  std::vector<bool> found(tape.slots());
  while (!stack.empty()) {
    const Slot s = stack.back();
    stack.pop_back();
    if (s == to) return true;
    if (tape.producer(s) < 0) continue;
    for (const Slot x : tape.entries()[tape.producer(s)].x()) {
      if (x < 0 || found[static_cast<std::size_t>(x)]) continue;
      found[static_cast<std::size_t>(x)] = true;
      stack.push_back(x);
    }
  }
  return false;
}

Gradient explained_none(const char* what, const Tape& tape, std::span<const Tensor> targets,
                        const Source& source) {
  const auto none = [&](const char* reason) {
    return Gradient::none(what, reason, tensor_of(source).spec(),
                          source.variable() ? &*source.variable() : nullptr);
  };
  if (tape.slot_of(tensor_of(source)) < 0) return none(why_untracked(tape, source));
  if (std::none_of(targets.begin(), targets.end(), [&](const Tensor& y) { return tape.slot_of(y) >= 0; }))
    return none(
        "the tape does not track the target, which was computed while it did not record, from numbers, or by "
        "an op without a derivative");
  return none(
      "no path leads from the target to the source: the target does not depend on it, or it was watched "
      "after its use, or is used only by ops without a derivative, or was assigned another value by x += y");
}

std::vector<Tensor> tensors_of(const Sources& sources, std::string_view what) {
  std::vector<Tensor> result;
  for (const Source& s : sources.all()) {
    const Tensor& t = result.emplace_back(tensor_of(s));
    if (!t.defined()) throw_error<ArgumentError>("gradient: {} {} is undefined", what, result.size() - 1);
    if (!is_trainable(t.dtype()))
      warn(fmt::format("gradient: a {} is {}, which has no derivative", what, name_of(t.dtype())));
  }
  return result;
}

void require_usable(const Tape& tape, std::string_view name) {
  if (!tape.on_this_thread())
    throw_error<GradientError>("{}: this tape belongs to another thread; make one on this thread", name);
  require_inside(tape, "tape", name);
  if (tape.used)
    throw_error<GradientError>("{}: this tape was already used; make it persistent to call gradient twice",
                               name);
}

std::vector<Gradient> differentiate(Tape& tape, const Targets& targets, const Sources& sources,
                                    const GradientOptions& options, const Arrival& arrival) {
  require_usable(tape);
  const std::vector<Tensor> ys = tensors_of(targets, "target"), xs = tensors_of(sources, "source"),
                            stops = tensors_of(options.stop_gradients, "stop_gradients");
  check(ys, options);
  const TapeUse use(tape);
  std::vector<Gradient> result = imperative_grad(kGradients, tape, ys, xs, options,
                                                 {.stops = stops, .arrival = arrival ? &arrival : nullptr});
  if (options.unconnected == UnconnectedGradients::zero)
    for (std::size_t i = 0; i < xs.size(); ++i)
      if (!result[i].defined()) result[i] = kGradients.zeros(xs[i].spec());
  for (std::size_t i = 0; i < xs.size(); ++i)
    if (!result[i].defined()) result[i] = explained_none("gradient", tape, ys, sources.all()[i]);
  return result;
}

// Out of line: instantiating these takes a sixth of the compile time of a user's file.
Sources::Sources(const Source& one) : all_{one} {}
Sources::Sources(std::initializer_list<Source> list) : all_(list) {}
Sources::Sources(std::span<const Tensor> list) : all_(list.begin(), list.end()) {}
Sources::Sources(std::span<const Variable> list) : all_(list.begin(), list.end()) {}
Sources::Sources(const std::vector<Tensor>& list) : all_(list.begin(), list.end()) {}
Sources::Sources(const std::vector<Variable>& list) : all_(list.begin(), list.end()) {}
Sources::Sources(const std::vector<Gradient>& list) : all_(list.begin(), list.end()) {}

OutputGradients::OutputGradients(std::vector<Gradient> list) : vector(std::move(list)) {}
OutputGradients::OutputGradients(const std::vector<Tensor>& list) : vector(list.begin(), list.end()) {}

GradientTape::GradientTape(TapeOptions options) : tape_(std::make_unique<Tape>(options)) { tape_->enter(); }
GradientTape::~GradientTape() = default;

void GradientTape::watch(const Tensor& x) { watch_checked(*tape_, x); }
void GradientTape::watch(const Variable& v) {
  if (!is_trainable(v.dtype())) return watch_checked(*tape_, v.cell().handle);
  require_inside(*tape_, "tape", "watch");
  if (!thread_paused()) tape_->watch(v);
}

void GradientTape::stop() {
  require_inside(*tape_, "tape", "stop");
  if (!tape_->entered()) throw GradientError("stop: this tape is not recording");
  tape_->leave();
}

void GradientTape::start() {
  require_inside(*tape_, "tape", "start");
  if (tape_->entered()) throw GradientError("start: this tape is recording already");
  if (tape_->used)
    throw GradientError(
        "start: this tape was already used; make it persistent to record after calling gradient");
  tape_->enter();
}

void GradientTape::reset() {
  require_inside(*tape_, "tape", "reset");
  if (!tape_->entered()) throw GradientError("reset: this tape is not recording");
  tape_->reset();
}

std::vector<Gradient> GradientTape::gradients_of(const Targets& targets, const Sources& sources,
                                                 const GradientOptions& options) {
  const TapeOptions& tape = tape_->options();
  thread_local bool warned = false;
  if (tape.persistent && !tape.watch_all && tape_->entered() && !tape_->paused &&
      !std::exchange(warned, true))
    warn(
        "gradient: this persistent tape is still recording, so it records the gradient too; call stop() "
        "before, or use a Recording for higher derivatives");
  return differentiate(*tape_, targets, sources, options);
}

std::vector<Gradient> GradientTape::gradients_of(const Targets& targets, const Sources& sources) {
  return gradients_of(targets, sources, {});
}

bool GradientTape::depends(const Source& target, const Source& source) const {
  require_usable(*tape_, "depends");
  const Tensor &y = tensor_of(target), &x = tensor_of(source);
  if (!y.defined()) throw ArgumentError("depends: the target is undefined");
  if (!x.defined()) throw ArgumentError("depends: the source is undefined");
  return is_path(*tape_, y, x);
}

std::vector<Variable> GradientTape::watched_variables() const { return tape_->watched_variables(); }
std::size_t GradientTape::size() const { return tape_->size(); }
bool GradientTape::recording() const { return tape_->entered(); }

std::vector<RecordedOp> GradientTape::recorded() const {
  tape_->size();
  std::vector<RecordedOp> result;
  for (std::int32_t k = 0; k < tape_->entries().end(); ++k)
    if (const TapeEntry& e = tape_->entries()[k]; e.op) result.push_back({name_of(e), e.inputs, e.outputs});
  return result;
}

StopRecording::StopRecording() : scope_(new RecordingScope(nullptr)) {}
StopRecording::StopRecording(GradientTape& tape) : tape_(tape.tape_.get()) {
  require_inside(*tape_, "tape", "StopRecording");
  if (!tape_->entered()) throw GradientError("stop recording: this tape is not recording");
  ++tape_->paused;
}
StopRecording::~StopRecording() {
  if (tape_) --tape_->paused;
  delete scope_;
}

}   // namespace tapedeck
