// In: a call with tensors of storage dtypes. Out: the results of its kernel or rule on widened copies,
// converted to the dtypes of the call.
#include "op/widened_copies.h"

#include "core/cast.h"
#include "core/storage.h"
#include "op/execute.h"
#include "op/primitives.h"

namespace tapedeck {
namespace {

// Widens by an op, for rules. A tensor whose values were not kept becomes a shape-only tensor.
Tensor recorded_widened(const Tensor& x) {
  const DType to = computed_in(x.dtype());
  if (to == x.dtype()) return x;
  if (!x.has_values()) return shape_only(Spec{to, x.shape()});
  return is_half(x.dtype()) ? astype(x, to) : to_computed(x);
}

// What a rule returns, in the dtype of the call; unchanged if it is not of the dtype that the rule computes
// in, which its receiver then refuses.
bool is_widened(DType dtype, DType of_call) { return dtype == computed_in(of_call); }

Gradient converted(Gradient&& g, DType to) {
  if (!g.defined()) return std::move(g);
  if (const IndexedSlices* s = g.slices())
    return IndexedSlices{astype(s->values, to), s->indices, s->dense_shape};
  return g.tensor().dtype() == to ? std::move(g) : Gradient(astype(g.tensor(), to));
}
DType dtype_of_gradient(const Gradient& g) {
  return g.slices() ? g.slices()->values.dtype() : g.tensor().dtype();
}

}   // namespace

WidenedCopies::WidenedCopies(Refs x, Tensor (*widen)(const Tensor&)) {
  tensors_.reserve(static_cast<std::size_t>(x.size()));
  for (int i = 0; i < x.size(); ++i) {
    const Tensor* found = x[i].defined() && !is_computed(x[i].dtype()) ? nullptr : &x[i];
    for (int k = 0; k < i && !found; ++k)
      if (x[k].defined() && x[k].id() == x[i].id()) found = pointers_[static_cast<std::size_t>(k)];
    pointers_.push_back(found ? found : &tensors_.emplace_back(widen(x[i])));
  }
}

void run_widened(const Call& c, std::span<Tensor> y) {
  const WidenedCopies x(c.x, to_computed);
  const bool own = c.op.forward.outputs == Outputs::by_kernel;
  std::vector<Tensor> results;
  for (const Tensor& t : y) {
    const Spec spec{computed_in(t.dtype()), t.shape()};
    results.push_back(is_computed(t.dtype()) ? t : own ? blank(spec) : allocate(spec));
  }
  call_kernel({.op = c.op, .raw_attrs = c.raw_attrs, .x = x.refs()}, results);
  for (std::size_t k = 0; k < y.size(); ++k) {
    const DType dtype = y[k].dtype();
    if (is_computed(dtype))
      y[k] = std::move(results[k]);
    else if (own)
      y[k] = results[k].defined() && results[k].has_values() ? cast(results[k], dtype) : Tensor();
    else
      cast(results[k], y[k]);
  }
}

void pull_back_widened(const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
  const WidenedCopies x(c.x, recorded_widened), y(c.y, recorded_widened);
  DType dtype = DType::f32;   // of undefined inputs: the dtype of the output
  for (Gradient& g : dy) {
    if (!g.defined()) continue;
    dtype = dtype_of_gradient(g);
    g = converted(std::move(g), computed_in(dtype));
  }
  for (Gradient& g : dx)
    if (g.defined()) g = converted(std::move(g), computed_in(dtype_of_gradient(g)));
  c.op.rule.vjp({.op = c.op, .raw_attrs = c.raw_attrs, .x = x.refs(), .y = y.refs(), .wanted = c.wanted}, dy,
                dx);
  for (int i = 0; i < c.x.size(); ++i) {
    Gradient& g = dx[static_cast<std::size_t>(i)];
    const DType to = c.x[i].defined() ? c.x[i].dtype() : dtype;
    if (g.defined() && is_widened(dtype_of_gradient(g), to)) g = converted(std::move(g), to);
  }
}

void push_forward_widened(const Call& c, Refs dx, std::span<Tensor> dy) {
  const WidenedCopies x(c.x, recorded_widened), y(c.y, recorded_widened), tangents(dx, recorded_widened);
  c.op.rule.jvp({.op = c.op, .raw_attrs = c.raw_attrs, .x = x.refs(), .y = y.refs(), .wanted = c.wanted},
                tangents.refs(), dy);
  for (int k = 0; k < c.y.size(); ++k) {
    Tensor& t = dy[static_cast<std::size_t>(k)];
    if (t.defined() && t.dtype() != c.y[k].dtype() && is_widened(t.dtype(), c.y[k].dtype()))
      t = astype(t, c.y[k].dtype());
  }
}

}   // namespace tapedeck
