// The op of a user's map. In: the loops of a function of elements, and the function on tensors. Out: fused
// passes; or ops, if a recorder follows the derivative itself or if cotangents or tangents are stacked.
#include "tapedeck/map.h"

#include <algorithm>
#include <cmath>

#include "core/storage.h"
#include "core/trace.h"
#include "op/add_to.h"
#include "op/recorder.h"
#include "op/rules.h"
#include "op/stacked.h"
#include "ops/infer.h"
#include "tapedeck/forward_accumulator.h"

namespace tapedeck::detail {
namespace {

bool any_tracked(Refs x) {
  for (int i = 0; i < x.size(); ++i)
    if (x[i].defined() && tracked(x[i])) return true;
  return false;
}

// The derivative of every result with respect to input i, built from ops; undefined for results that do not
// depend on it.
std::vector<Tensor> partials_by_ops(const MapFunction& m, const Call& c, int i) {
  std::vector<Tensor> x;
  for (int j = 0; j < m.inputs; ++j)
    x.push_back(identity(c.x[j]));   // the same tensor may be several inputs
  const Tensor& xi = x[static_cast<std::size_t>(i)];
  const ForwardAccumulator tangents(xi, ones_like(xi));
  std::vector<Tensor> y = m.of_tensors(c.raw_attrs.data, x);
  for (Tensor& t : y)
    t = tangents.jvp(t);
  return y;
}

// Outside of a kernel.
void run_pass(const kernels::UserLoops& loops, Attrs f, const kernels::PassTensors& pass) {
  if (thread_state.trace) [[unlikely]]
    thread_state.trace->passed(loops, f, pass);
  kernels::run_pass(loops, f.data, pass);
}

void add_to_sum(Tensor& sum, const Tensor& term) { sum = sum.defined() ? sum + term : term; }

void vjp_by_ops(const MapFunction& m, const Call& c, std::span<const Tensor> dy, std::span<Gradient> dx) {
  for (int i = 0; i < m.inputs; ++i) {
    if (!c.needs(i)) continue;
    const std::vector<Tensor> partials = partials_by_ops(m, c, i);
    Tensor sum;
    for (std::size_t k = 0; k < dy.size(); ++k)
      if (dy[k].defined() && partials[k].defined()) add_to_sum(sum, dy[k] * partials[k]);
    if (sum.defined()) add_to(dx[static_cast<std::size_t>(i)], unbroadcast(c, sum, i));
  }
}

}   // namespace

Spec map_spec(const Call& c) { return elementwise(c); }

void map_forward(const MapFunction& m, const Call& c, std::span<Tensor> y) {
  std::vector<const Tensor*> x;
  for (int i = 0; i < m.inputs; ++i)
    x.push_back(&c.x[i]);
  kernels::run_pass(m.forward, c.raw_attrs.data,
                    {y[0].dtype(), y[0].shape(), y[0].size(), m.inputs, m.inputs, m.results, false,
                     (1u << m.inputs) - 1, x.data(), y.data()});
}

void map_vjp(const MapFunction& m, const Call& c, std::span<Gradient> dys, std::span<Gradient> dx) {
  const Shape& shape = c.y[0].shape();
  std::vector<Tensor> dy, out(static_cast<std::size_t>(m.inputs));
  std::vector<const Tensor*> operands;
  for (int i = 0; i < m.inputs; ++i)
    operands.push_back(&c.x[i]);
  bool as_ops = any_tracked(c.x);
  for (Gradient& g : dys) {
    dy.push_back(g.defined() ? std::move(g).dense() : Tensor());
    g = {};
  }
  unsigned read = (1u << m.inputs) - 1;
  for (const Tensor& t : dy) {
    if (t.defined()) {
      as_ops |= t.shape() != shape || tracked(t);
      read |= 1u << operands.size();
    }
    operands.push_back(&t);
  }
  if (as_ops) {
    const NumberDType dtype(c.x[0].dtype());
    return vjp_by_ops(m, c, dy, dx);
  }
  // A gradient takes over the memory of a dy of its shape that nobody else holds.
  std::size_t next = 0;
  const auto memory_for = [&](const Tensor& x) {
    for (; x.shape() == shape && next < dy.size(); ++next)
      if (dy[next].defined() && dy[next].unique() && !thread_state.trace) return dy[next++];
    return allocate(x.spec());
  };
  unsigned adds = 0;
  for (int i = 0; i < m.inputs; ++i) {
    if (!c.needs(i)) continue;
    const auto k = static_cast<std::size_t>(i);
    if (dx[k].defined() && c.x[i].shape() == shape) {
      out[k] = std::move(dx[k]).dense();
      adds |= 1u << i;
    } else {
      out[k] = memory_for(c.x[i]);
    }
  }
  run_pass(m.vjp, c.raw_attrs,
           {c.x[0].dtype(), shape, shape.size(), m.inputs, static_cast<int>(operands.size()), m.inputs, true,
            read, operands.data(), out.data(), adds});
  for (std::size_t i = 0; i < out.size(); ++i)
    if (out[i].defined()) add_to(dx[i], std::move(out[i]));
}

namespace {

void jvp_by_ops(const MapFunction& m, const Call& c, Refs dx, std::span<Tensor> dy) {
  const Shape& shape = c.y[0].shape();
  const NumberDType dtype(c.x[0].dtype());
  Shape front;   // leading axes of stacked tangents
  for (int i = 0; i < m.inputs; ++i) {
    if (!dx[i].defined()) continue;
    const int ndim = c.x[i].ndim();
    front = extra_of(dx[i], ndim);
    const std::vector<Tensor> partials = partials_by_ops(m, c, i);
    const Tensor tangent = aligned(dx[i], ndim, shape.ndim());
    for (std::size_t k = 0; k < dy.size(); ++k)
      if (partials[k].defined()) add_to_sum(dy[k], tangent * partials[k]);
  }
  for (Tensor& t : dy)
    if (t.defined()) t = broadcast_to(t, behind(front, shape));
}

// Inputs without a tangent have the tangent 0.
void jvp_fused(const MapFunction& m, const Call& c, Refs dx, std::span<Tensor> dy) {
  const Shape& shape = c.y[0].shape();
  std::vector<Tensor> tangents;
  for (int i = 0; i < m.inputs; ++i)
    tangents.push_back(dx[i].defined() && dx[i].shape() != shape ? broadcast_to(dx[i], shape) : dx[i]);
  std::vector<const Tensor*> operands;
  for (int i = 0; i < m.inputs; ++i)
    operands.push_back(&c.x[i]);
  unsigned read = (1u << m.inputs) - 1;
  for (const Tensor& t : tangents) {
    if (t.defined()) read |= 1u << operands.size();
    operands.push_back(&t);
  }
  for (Tensor& t : dy)
    t = allocate(c.x[0].dtype(), shape, shape.size());
  run_pass(m.jvp, c.raw_attrs,
           {c.x[0].dtype(), shape, shape.size(), m.inputs, 2 * m.inputs, m.results, false, read,
            operands.data(), dy.data()});
}

bool is_finite(const Tensor& x) {
  const auto all = [](const auto& values) {
    return std::all_of(values.begin(), values.end(), [](auto v) { return std::isfinite(v); });
  };
  return x.dtype() == DType::f32 ? all(x.data<float>()) : all(x.data<double>());
}

}   // namespace

void map_jvp(const MapFunction& m, const Call& c, Refs dx, std::span<Tensor> dy) {
  bool as_ops = any_tracked(c.x) || any_tracked(dx), some = false;
  for (int i = 0; i < m.inputs; ++i) {
    as_ops |= dx[i].defined() && dx[i].shape() != c.x[i].shape();
    some |= !dx[i].defined();
  }
  if (as_ops) return jvp_by_ops(m, c, dx, dy);
  jvp_fused(m, c, dx, dy);
  if (!some || std::all_of(dy.begin(), dy.end(), is_finite)) return;
  // 0 · ∞ of an input without a tangent is NaN, where it should add nothing.
  std::fill(dy.begin(), dy.end(), Tensor());
  jvp_by_ops(m, c, dx, dy);
}

}   // namespace tapedeck::detail
