// The op of a user's map. In: the loops of an elementwise function, and the function on tensors. Out: the
// op's shape, values and rule. map_derivative.cpp chooses how derivatives run, map_pass.cpp runs their
// passes.
#include "tapedeck/map.h"

#include "core/format.h"
#include "op/rules.h"
#include "op/stacked_shapes.h"
#include "ops/elementwise/map_call.h"
#include "ops/infer.h"
#include "tapedeck/ops/pad.h"
#include "tapedeck/ops/slice.h"

namespace tapedeck {

Shifted shifted(const Operand& x, std::int64_t by, double fill) {
  if (!x.tensor()) throw ArgumentError("shifted: x is a number, which has no axis; pass a tensor");
  const Tensor& t = *x.tensor();
  if (!t.defined()) throw ArgumentError("shifted: x is undefined; it was default-constructed or moved from");
  if (t.ndim() == 0) throw_error<ShapeError>("shifted: x is {}, which has no axis", t.spec());
  const std::int64_t extent = t.shape()[t.ndim() - 1];
  if (by > extent || by < -extent)
    throw_error<ShapeError>("shifted: by is {}, but the last axis of x, {}, has {} elements", by, t.spec(),
                            extent);
  return {t, by, fill};
}

namespace detail {
namespace {

bool any_moved(const kernels::Shift* shifts, int inputs) {
  return shifts && std::any_of(shifts, shifts + inputs, [](const kernels::Shift& s) { return s.by != 0; });
}
const kernels::Shift* shifts_of(const MapFunction& m, const Call& c) {
  const kernels::Shift* const shifts = m.shifts(c.raw_attrs.data);
  return any_moved(shifts, m.inputs) ? shifts : nullptr;
}
MapCall call_of(const MapFunction& m, const Call& c) {
  return {m, c.raw_attrs, c.x, c.y[0].shape(), shifts_of(m, c)};
}

}   // namespace

Spec map_spec(const MapFunction& m, const Call& c) {
  Spec y = elementwise(c);
  if (const kernels::Shift* const shifts = shifts_of(m, c))
    for (int i = 0; i < m.inputs; ++i)
      if (const Shape& x = c.x[i].shape(); shifts[i].by && x[x.ndim() - 1] != y.shape[y.shape.ndim() - 1])
        c.throw_shape_error(
            fmt::format("input {} is shifted along its last axis, so it must not broadcast "
                        "along it; use broadcast_to",
                        i));
  return y;
}

void map_forward(const MapFunction& m, const Call& c, std::span<Tensor> y) {
  std::vector<const Tensor*> x;
  for (int i = 0; i < m.inputs; ++i)
    x.push_back(&c.x[i]);
  kernels::run_pass(m.forward, c.raw_attrs.data,
                    {.dtype = y[0].dtype(),
                     .shape = y[0].shape(),
                     .n = y[0].size(),
                     .inputs = m.inputs,
                     .operands = m.inputs,
                     .results = m.results,
                     .gradients = false,
                     .read = (1u << m.inputs) - 1,
                     .x = x.data(),
                     .out = y.data(),
                     .shifts = shifts_of(m, c)});
}

void map_vjp(const MapFunction& m, const Call& c, std::span<Gradient> dys, std::span<Gradient> dx) {
  std::vector<Tensor> dy;
  for (Gradient& g : dys) {
    dy.push_back(g.defined() ? std::move(g).dense() : Tensor());
    g = {};   // so that a gradient may reuse its memory
  }
  unsigned wanted = 0;
  for (int i = 0; i < m.inputs; ++i)
    if (c.needs_gradient(i)) wanted |= 1u << i;
  pull(call_of(m, c), std::move(dy), wanted, dx);
}

void map_jvp(const MapFunction& m, const Call& c, Refs dx, std::span<Tensor> dy) {
  push(call_of(m, c), dx, dy);
}

Shape front_of_results(const MapCall& c, std::span<const Tensor> dy) {
  for (const Tensor& t : dy)
    if (t.defined()) return extra_of(t, c.shape.ndim());
  return {};
}
Shape front_of_inputs(const MapCall& c, Refs dx) {
  for (int i = 0; i < c.m.inputs; ++i)
    if (dx[i].defined()) return extra_of(dx[i], c.x[i].ndim());
  return {};
}

std::vector<const Tensor*> pointers_to(std::span<const Tensor> x) {
  std::vector<const Tensor*> all;
  for (const Tensor& t : x)
    all.push_back(&t);
  return all;
}

Tensor moved(const Tensor& x, kernels::Shift shift) {
  if (!shift.by) return x;
  const int last = x.ndim() - 1;
  Shape none = x.shape();
  for (int d = 0; d <= last; ++d)
    none.set(d, 0);
  Shape begin = none, size = x.shape(), before = none, after = none;
  const std::int64_t lost = std::abs(shift.by);
  size.set(last, size[last] - lost);
  (shift.by > 0 ? before : after).set(last, lost);
  if (shift.by < 0) begin.set(last, lost);
  return pad(slice(x, begin, size), before, after, shift.fill);
}

std::vector<Tensor> results_by_ops(const MapCall& c, std::span<const Tensor> x) {
  const NumberDType dtype(c.dtype());
  std::vector<Tensor> operands;
  for (int i = 0; i < c.m.inputs; ++i)
    operands.push_back(moved(x[static_cast<std::size_t>(i)], c.shift(i)));
  std::vector<Tensor> y = c.m.of_tensors(c.attrs.data, operands);
  for (Tensor& t : y)
    if (t.shape() != c.shape) t = broadcast_to(t, c.shape);
  return y;
}

}   // namespace detail
}   // namespace tapedeck
