// Recomputation (checkpointing). In: a function and its operands. Out: its results, recorded as one
// operation, so that tapes do not save intermediate values.
#include "transforms/recompute.h"

#include <algorithm>

#include "core/format.h"
#include "core/storage.h"
#include "op/stacked_shapes.h"
#include "tape/imperative_grad.h"
#include "tape/record_operation.h"
#include "tape/variable.h"
#include "tapedeck/forward_accumulator.h"
#include "tapedeck/ops/array.h"

namespace tapedeck {
namespace {

// Returns the id of a new tensor, which is greater than those of all existing tensors of any thread. Skips
// the remaining ids reserved for this thread.
std::uint64_t newest_id() {
  thread_state.next_id = thread_state.end_id;
  return shape_only(Spec{DType::f32, {}}).id();
}

// Replaces the outer recorders while a function runs unrecorded. Collects the variables that the function
// reads, and the tensors among its operands that the outer recorders track.
class CaptureRecorder final : public Recorder {
 public:
  explicit CaptureRecorder(Recorder* around) : around_(around) {
    for (Recorder* r = around; r; r = r->outer())
      watches_all_ |= r->watches_all();
    if (watches_all_) newest_outside_ = newest_id();
    enter();
  }

  void record(const Call& c, std::span<Tensor>) override {
    for (int i = 0; i < c.x.size(); ++i)
      note_if_followed(c.x[i]);
  }
  void note_if_followed(const Tensor& x) {
    if (is_trainable(x.dtype()) && (tracks(x) || x.id() < newest_outside_)) note(x);
  }
  bool tracks(const Tensor& x) const override {
    for (Recorder* r = around_; r; r = r->outer())
      if (r->tracks(x)) return true;
    return false;
  }
  bool watches_all() const override { return watches_all_; }
  void read(detail::VariableCell& cell, Tensor&) override {
    const Variable v(cell.shared_from_this());
    if (!cell.trainable && !watches_all_ && !tracks(cell.handle)) return;
    std::vector<Captured::Read>& reads = captures.reads;
    if (std::none_of(reads.begin(), reads.end(), [&](const Captured::Read& r) { return r.variable == v; }))
      reads.push_back({v, cell.value.id()});
  }
  void ended(std::int32_t) noexcept override {}

  void note(const Tensor& x) {
    std::vector<Tensor>& tensors = captures.tensors;
    if (std::none_of(tensors.begin(), tensors.end(), [&](const Tensor& t) { return t.id() == x.id(); }))
      tensors.push_back(x);
  }

  Captured captures;

 private:
  Recorder* around_;
  std::uint64_t newest_outside_ = 0;   // if watches_all_: tensors with smaller ids were created outside
  bool watches_all_ = false;
};

struct Recomputation {
  std::string name;
  Recomputed f;
  std::vector<Tensor> x;
  Captured captures;
  std::vector<std::size_t> followed = {};      // indices of the operands that recorders follow
  std::vector<Variable> followed_reads = {};   // the variables read that recorders follow

  // The sources of the derivative. They include variables instead of the values that were read, since the
  // function reads the variables again when it is recomputed.
  std::vector<Source> sources_among(std::span<const Tensor> arguments) const {
    std::vector<Source> all;
    for (const std::size_t i : followed)
      all.emplace_back(arguments[i]);
    all.insert(all.end(), captures.tensors.begin(), captures.tensors.end());
    all.insert(all.end(), followed_reads.begin(), followed_reads.end());
    return all;
  }

  // Copies of the operands, since one tensor may be several operands. Captured tensors are not copied.
  std::vector<Tensor> copies() const {
    std::vector<Tensor> all;
    for (const Tensor& t : x)
      all.push_back(identity(t));
    return all;
  }

  std::vector<Tensor> run(const Function& function, std::span<const Tensor> arguments) const {
    captures.require_current(name);
    return function(arguments);
  }

  // The gradients of the sources; none for a source that is not wanted, and, unless `zero_captures`, for a
  // capture without a path.
  std::vector<Gradient> backward(std::span<const Tensor> dy, std::uint64_t wanted) const {
    const std::vector<Tensor> arguments = copies();
    GradientTape tape({.watch_accessed_variables = false});
    std::vector<Tensor> sources;
    std::vector<std::size_t> places;   // indices of `sources` among all sources
    std::size_t count = 0;
    for (const Source& s : sources_among(arguments)) {
      const std::size_t i = count++;
      if (i < 64 && !(wanted >> i & 1)) continue;
      s.variable() ? tape.watch(*s.variable()) : tape.watch(s.tensor());
      sources.push_back(tensor_of(s));
      places.push_back(i);
    }
    const std::vector<Tensor> y = run(f.backward, arguments);
    std::vector<Tensor> targets;
    GradientOptions options;
    Shape front;   // leading axes of stacked cotangents
    for (std::size_t k = 0; k < y.size(); ++k) {
      if (!is_trainable(y[k].dtype())) continue;
      front = extra_of(dy[k], y[k].ndim());
      targets.push_back(y[k]);
      options.output_gradients.push_back(dy[k]);
    }
    const TapeUse use(tape.tape());
    std::vector<Gradient> dx(sources.size());
    if (front.size() > 0)
      dx = imperative_grad(kGradients, tape.tape(), targets, sources, options,
                           {.directions = front.ndim() ? front[0] : 0});
    std::vector<Gradient> all(count);
    for (std::size_t i = 0; i < dx.size(); ++i)
      if (dx[i].defined())
        all[places[i]] = std::move(dx[i]);
      else if (places[i] < followed.size() || f.zero_captures || front.size() == 0)   // operands come first
        all[places[i]] = zeros(behind(front, sources[i].shape()), sources[i].dtype());
    return all;
  }

  std::vector<Tensor> forward(std::span<const Tensor> tangents) const {
    const std::vector<Tensor> arguments = copies();
    const std::vector<Source> sources = sources_among(arguments);
    std::vector<Source> primals;
    std::vector<Tensor> known;
    for (std::size_t i = 0; i < sources.size(); ++i) {
      if (!tangents[i].defined()) continue;
      primals.push_back(sources[i]);
      known.push_back(tangents[i]);
    }
    const ForwardAccumulator accumulator(primals, known);
    std::vector<Tensor> result;
    for (const Tensor& t : run(f.forward, arguments))
      result.push_back(accumulator.jvp(t).tensor());
    return result;
  }
};

}   // namespace

bool Captured::Read::updated() const { return variable.cell().value.id() != version; }
void Captured::require_current(std::string_view name) const {
  for (const Read& r : reads)
    if (r.updated())
      throw_error<GradientError>(
          "{}: {} has been updated since the forward pass; take the gradient before the update", name,
          detail::described(r.variable.cell()));
}

std::vector<Tensor> run_unrecorded(std::span<const Tensor> x, const Function& f, Captured& captures) {
  Recorder* const around = thread_state.innermost;
  const RecordingScope unrecorded(nullptr);
  CaptureRecorder recorder(around);
  std::vector<Tensor> arguments;   // distinct from x, which the function may capture, too
  for (const Tensor& t : x)
    arguments.push_back(share(t));
  std::vector<Tensor> y = f(arguments);
  recorder.leave();
  for (const Tensor& t : y)   // which may be captured tensors themselves
    if (t.defined()) recorder.note_if_followed(t);
  captures = std::move(recorder.captures);
  return y;
}

std::vector<Tensor> record_recomputed(std::string_view name, std::span<const Tensor> x, std::vector<Tensor> y,
                                      const Captured& captures, Recomputed f) {
  {
    const RecordingScope unrecorded(nullptr);
    for (Tensor& t : y)
      t = identity(t);   // t may be an argument or a captured tensor
  }
  const auto r = std::make_shared<Recomputation>(
      Recomputation{std::string(name), std::move(f), {x.begin(), x.end()}, captures});
  for (std::size_t i = 0; i < x.size(); ++i)
    if (followed(x[i])) r->followed.push_back(i);
  std::vector<Tensor> values;   // the values of the variables in followed_reads
  for (const Captured::Read& read : r->captures.reads) {
    if (read.updated())
      throw_error<ArgumentError>("{}: the function updates {}, which it reads", name,
                                 detail::described(read.variable.cell()));
    const Tensor value = read.variable.value();   // the recorders see this read
    if (!followed(value)) continue;
    r->followed_reads.push_back(read.variable);
    values.push_back(value);
  }
  std::vector<Tensor> inputs;
  for (std::size_t read = 0; const Source& s : r->sources_among(x))
    inputs.push_back(s.variable() ? values[read++] : s.tensor());
  if (!inputs.empty())
    record_stacking_operation(
        r->name, y, inputs,
        [r](std::span<const Tensor> dy, std::uint64_t wanted) { return r->backward(dy, wanted); },
        [r](std::span<const Tensor> dx) { return r->forward(dx); });
  return y;
}

std::vector<Tensor> recomputed(std::string_view name, std::span<const Tensor> x, const Function& first,
                               Recomputed again) {
  if (!thread_state.innermost) return first(x);
  Captured captures;
  std::vector<Tensor> y = run_unrecorded(x, first, captures);
  return record_recomputed(name, x, std::move(y), captures, std::move(again));
}

}   // namespace tapedeck
