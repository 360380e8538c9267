// The derivatives of a user's map as passes over memory. In: a call, and its cotangents or tangents, which
// may be stacked. Out: gradients, or tangents of the results.
#include <algorithm>
#include <cmath>

#include "core/storage.h"
#include "core/trace.h"
#include "kernels/elementwise/vjp.h"
#include "op/gradient_sum.h"
#include "op/rules.h"
#include "op/stacked_shapes.h"
#include "ops/elementwise/map_call.h"
#include "tape/distinct_arguments.h"
#include "tapedeck/forward_accumulator.h"

namespace tapedeck::detail {
namespace {

// Notifies the trace, since this runs outside of a kernel.
void run_pass(const kernels::UserLoops& loops, Attrs attrs, const kernels::PassTensors& pass) {
  if (thread_state.trace) [[unlikely]]
    thread_state.trace->on_user_map(loops, attrs, pass);
  kernels::run_pass(loops, attrs.data, pass);
}

// The operands of a pass: the inputs, followed by cotangents or tangents.
struct Operands {
  Operands(const MapCall& c, std::span<const Tensor> others) : read((1u << c.m.inputs) - 1) {
    for (int i = 0; i < c.m.inputs; ++i)
      x.push_back(&c.x[i]);
    for (const Tensor& t : others) {
      if (t.defined()) read |= 1u << x.size();
      x.push_back(&t);
    }
    if (c.shifts) shifts.assign(c.shifts, c.shifts + c.m.inputs);
  }

  std::vector<const Tensor*> x;
  std::vector<kernels::Shift> shifts;
  unsigned read;
};

// Whether the op sum computes gradients of broadcast inputs after the pass, as in vjps of the library's ops.
bool sums_apart(const MapCall& c) {
  return !c.shifts && !is_half(c.dtype()) && kernels::has_short_rows(c.shape, c.x);
}

// The memory of gradients: earlier gradients, to which they are added; cotangents that have no other owner;
// or new allocations.
class Gradients {
 public:
  Gradients(const MapCall& c, std::vector<Tensor>& dy, const Shape& front)
      : out(static_cast<std::size_t>(c.m.inputs)), c_(c), dy_(dy), front_(front), apart_(sums_apart(c)) {}

  void add(int i, Gradient& sum) {
    const auto k = static_cast<std::size_t>(i);
    if (sum.defined() && sum.is_dense() && front_.ndim() == 0 && c_.x[i].shape() == c_.shape) {
      out[k] = std::move(sum).dense();
      adds |= 1u << i;
    } else {
      out[k] = memory_for(i);
    }
  }

  // The gradient of input i, summed to the shape of that input.
  Tensor take(int i) {
    Tensor all = std::move(out[static_cast<std::size_t>(i)]);
    return apart_ ? unbroadcast(all, c_.x[i].shape(), c_.shape) : all;
  }

  std::vector<Tensor> out;
  unsigned adds = 0;

 private:
  Tensor memory_for(int i) {
    const Shape& x = apart_ ? c_.shape : c_.x[i].shape();
    if (x == c_.shape && !c_.shift(i).by && !thread_state.trace)
      for (; next_ < dy_.size(); ++next_)
        if (dy_[next_].defined() && dy_[next_].unique()) return dy_[next_++];
    return allocate({c_.dtype(), behind(front_, x)});
  }

  const MapCall& c_;
  std::vector<Tensor>& dy_;
  const Shape& front_;
  bool apart_;
  std::size_t next_ = 0;
};

}   // namespace

void pull_in_passes(const MapCall& c, std::vector<Tensor> dy, unsigned wanted, std::span<Gradient> dx) {
  const Shape front = front_of_results(c, dy);
  Gradients gradients(c, dy, front);
  for (int i = 0; i < c.m.inputs; ++i)
    if (wanted >> i & 1) gradients.add(i, dx[static_cast<std::size_t>(i)]);
  Operands operands(c, dy);
  if (c.shifts) operands.shifts.resize(operands.x.size());
  run_pass(c.m.vjp, c.attrs,
           {.dtype = c.dtype(),
            .shape = c.shape,
            .n = c.shape.size(),
            .inputs = c.m.inputs,
            .operands = static_cast<int>(operands.x.size()),
            .results = c.m.inputs,
            .gradients = true,
            .read = operands.read,
            .x = operands.x.data(),
            .out = gradients.out.data(),
            .adds = gradients.adds,
            .shifts = c.shifts ? operands.shifts.data() : nullptr,
            .directions = front.size()});
  for (int i = 0; i < c.m.inputs; ++i)
    if (wanted >> i & 1) add_to(dx[static_cast<std::size_t>(i)], gradients.take(i));
}

namespace {

// The tangents, broadcast to the shape of the results. Undefined tangents, which count as 0, stay undefined.
std::vector<Tensor> broadcast_tangents(const MapCall& c, Refs dx, const Shape& front) {
  const Shape shape = behind(front, c.shape);
  std::vector<Tensor> all;
  for (int i = 0; i < c.m.inputs; ++i)
    if (dx[i].defined() && dx[i].shape() != shape)
      all.push_back(broadcast_to(aligned(dx[i], c.x[i].ndim(), c.shape.ndim()), shape));
    else
      all.push_back(dx[i]);
  return all;
}

void push_in_pass(const MapCall& c, Refs dx, std::span<Tensor> dy) {
  const Shape front = front_of_inputs(c, dx);
  const std::vector<Tensor> tangents = broadcast_tangents(c, dx, front);
  Operands operands(c, tangents);
  if (c.shifts)
    for (int i = 0; i < c.m.inputs; ++i)
      operands.shifts.push_back({.by = c.shifts[i].by});
  for (Tensor& t : dy)
    t = allocate({c.dtype(), behind(front, c.shape)});
  run_pass(c.m.jvp, c.attrs,
           {.dtype = c.dtype(),
            .shape = c.shape,
            .n = c.shape.size(),
            .inputs = c.m.inputs,
            .operands = 2 * c.m.inputs,
            .results = c.m.results,
            .gradients = false,
            .read = operands.read,
            .x = operands.x.data(),
            .out = dy.data(),
            .shifts = c.shifts ? operands.shifts.data() : nullptr,
            .directions = front.size()});
}

// Like push_in_pass, by ops, for which inputs without a tangent are constants.
void push_by_ops(const MapCall& c, Refs dx, std::span<Tensor> dy) {
  std::vector<Tensor> x, primals, tangents;
  for (int i = 0; i < c.m.inputs; ++i)
    x.push_back(c.x[i]);
  make_distinct(x);
  for (int i = 0; i < c.m.inputs; ++i) {
    if (!dx[i].defined()) continue;
    primals.push_back(x[static_cast<std::size_t>(i)]);
    tangents.push_back(dx[i]);
  }
  const ForwardAccumulator along(primals, tangents, {.stacked = front_of_inputs(c, dx).ndim() > 0});
  const std::vector<Tensor> y = results_by_ops(c, x);
  for (std::size_t k = 0; k < dy.size(); ++k)
    dy[k] = along.jvp(y[k]).tensor();
}

bool is_finite(const Tensor& x) {
  const auto all = [](const auto& values) {
    return std::all_of(values.begin(), values.end(), [](auto v) { return std::isfinite(v); });
  };
  return x.dtype() == DType::f32 ? all(x.data<float>()) : all(x.data<double>());
}

}   // namespace

void push_in_passes(const MapCall& c, Refs dx, std::span<Tensor> dy) {
  bool some = false;
  for (int i = 0; i < c.m.inputs; ++i)
    some |= !dx[i].defined();
  push_in_pass(c, dx, dy);
  if (!some || std::all_of(dy.begin(), dy.end(), is_finite)) return;
  // The pass computes 0 · ∞ = NaN for an input without a tangent, which should contribute nothing.
  std::fill(dy.begin(), dy.end(), Tensor());
  push_by_ops(c, dx, dy);
}

}   // namespace tapedeck::detail
