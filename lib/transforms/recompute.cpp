// Recomputation. In: a function and its operands. Out: its results as those of one operation, which forgets what was computed
// between them.
#include "transforms/recompute.h"

#include <algorithm>

#include "autodiff/composite.h"
#include "autodiff/imperative_grad.h"
#include "autodiff/stacked.h"
#include "base/format.h"
#include "tapedeck/forward_accumulator.h"
#include "tapedeck/ops/array.h"

namespace tapedeck {
namespace {

struct Read {
  Variable variable;
  Tensor value;
};

// Stands for the recorders around it while a function runs unrecorded: notes which of the tensors that they track, and which variables, it takes.
class Captures final : public Recorder {
 public:
  explicit Captures(Recorder* around) : around_(around), first_made_inside_(thread_state.next_id) {
    for (Recorder* r = around; r; r = r->outer()) watches_all_ |= r->watches_all();
    enter();
  }

  void record(const Call& c, std::span<Tensor>) override {
    for (int i = 0; i < c.x.size(); ++i)
      if (is_trainable(c.x[i].dtype()) && (tracks(c.x[i]) || (watches_all_ && c.x[i].id() < first_made_inside_))) note(c.x[i]);
  }
  bool tracks(const Tensor& x) const override {
    for (Recorder* r = around_; r; r = r->outer()) if (r->tracks(x)) return true;
    return false;
  }
  bool watches_all() const override { return watches_all_; }
  void read(detail::VariableCell& cell) override {
    const Variable v(cell.shared_from_this());
    if (!cell.trainable && !watches_all_ && !tracks(cell.handle)) return;
    if (std::none_of(reads.begin(), reads.end(), [&](const Read& r) { return r.variable == v; })) reads.push_back({v, cell.value});
  }
  void ended(std::int32_t) noexcept override {}

  void note(const Tensor& x) {
    if (std::none_of(tensors.begin(), tensors.end(), [&](const Tensor& t) { return t.id() == x.id(); })) tensors.push_back(x);
  }

  std::vector<Tensor> tensors;
  std::vector<Read> reads;

 private:
  Recorder* around_;
  std::uint64_t first_made_inside_;   // ids grow
  bool watches_all_ = false;
};

struct Recomputation {
  std::string name;
  Function f;
  std::vector<Tensor> x;
  std::vector<std::size_t> followed;   // which of x recorders track
  std::vector<Tensor> captured;
  std::vector<Read> reads;

  std::vector<Tensor> inputs_among(std::span<const Tensor> arguments) const {
    std::vector<Tensor> all;
    for (const std::size_t i : followed) all.push_back(arguments[i]);
    all.insert(all.end(), captured.begin(), captured.end());
    return all;
  }

  // Arguments are copies, so that one tensor may be several of them; what is captured stays as it is.
  std::vector<Tensor> copies() const {
    std::vector<Tensor> all;
    for (const Tensor& t : x) all.push_back(identity(t));
    return all;
  }

  std::vector<Tensor> run(std::span<const Tensor> arguments) const {
    for (const Read& r : reads)
      if (r.variable.cell().value.id() != r.value.id())
        throw_error<GradientError>("{}: variable \"{}\" has been updated since the forward pass; take the gradient before the update", name, r.variable.name());
    return f(arguments);
  }

  std::vector<Gradient> backward(std::span<const Tensor> dy) const {
    const std::vector<Tensor> arguments = copies(), sources = inputs_among(arguments);
    GradientTape tape({.watch_accessed_variables = false});
    for (const Tensor& t : sources) tape.watch(t);
    const std::vector<Tensor> y = run(arguments);
    std::vector<Tensor> targets;
    GradientOptions options;
    Shape front;   // of stacked cotangents
    for (std::size_t k = 0; k < y.size(); ++k) {
      if (!is_trainable(y[k].dtype())) continue;
      front = extra_of(dy[k], y[k].ndim());
      targets.push_back(y[k]);
      options.output_gradients.push_back(dy[k]);
    }
    const TapeUse use(tape.tape());
    std::vector<Gradient> dx(sources.size());
    if (front.size() > 0) dx = imperative_grad(kGradients, tape.tape(), targets, sources, options, {.directions = front.ndim() ? front[0] : 0});
    for (std::size_t i = 0; i < dx.size(); ++i) if (!dx[i].defined()) dx[i] = zeros(behind(front, sources[i].shape()), sources[i].dtype());
    return dx;
  }

  std::vector<Tensor> forward(std::span<const Tensor> tangents) const {
    const std::vector<Tensor> arguments = copies(), inputs = inputs_among(arguments);
    std::vector<Tensor> primals, known;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!tangents[i].defined()) continue;
      primals.push_back(inputs[i]);
      known.push_back(tangents[i]);
    }
    const ForwardAccumulator accumulator(primals, known);
    std::vector<Tensor> result;
    for (const Tensor& t : run(arguments)) result.push_back(accumulator.jvp(t));
    return result;
  }
};

}  // namespace

std::vector<Tensor> recomputed(std::string_view name, std::span<const Tensor> x, const Function& first, Function again) {
  if (!thread_state.innermost) return first(x);
  const auto r = std::make_shared<Recomputation>(Recomputation{std::string(name), std::move(again), {x.begin(), x.end()}, {}, {}, {}});
  std::vector<Tensor> y;
  {
    Recorder* const around = thread_state.innermost;
    const RecordingScope unrecorded(nullptr);
    Captures captures(around);
    y = first(x);
    captures.leave();
    for (Tensor& t : y) t = identity(t);   // it may be an argument, or captured
    r->captured = std::move(captures.tensors);
    r->reads = std::move(captures.reads);
  }
  for (const Read& read : r->reads) {
    const Tensor& value = read.variable.value();   // seen by the recorders
    if (value.id() != read.value.id()) throw_error<ArgumentError>("{}: the function updates variable \"{}\", which it reads", name, read.variable.name());
    if (followed(value) && std::none_of(r->captured.begin(), r->captured.end(), [&](const Tensor& t) { return t.id() == value.id(); })) r->captured.push_back(value);
  }
  for (std::size_t i = 0; i < x.size(); ++i) if (followed(x[i])) r->followed.push_back(i);
  const std::vector<Tensor> inputs = r->inputs_among(x);
  if (!inputs.empty())
    record_stacking_operation(r->name, y, inputs, [r](std::span<const Tensor> dy) { return r->backward(dy); },
                              [r](std::span<const Tensor> dx) { return r->forward(dx); });
  return y;
}

}  // namespace tapedeck
