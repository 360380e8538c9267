// In: a call and the tangents of its inputs. Out: the tangent of its output. A `partials` rule runs fused or
// as ops, like its vjp. The jvp of a linear or bilinear op applies the op itself to tangents.
#include "core/storage.h"
#include "op/primitives.h"
#include "op/rules.h"
#include "op/stacked_shapes.h"
#include "op/widened_copies.h"

namespace tapedeck::detail {

namespace {

Tensor jvp_by_ops(const PartialsRule& rule, const Call& c, Refs dx) {
  const NumberDType dtype(c.y[0].dtype());
  const int ndim = c.y[0].ndim();
  Tensor dy;
  Shape front;   // leading axes of stacked tangents
  for (int i = 0; i < rule.vjp.inputs; ++i) {
    if (!dx[i].defined()) continue;
    front = extra_of(dx[i], c.x[i].ndim());
    const Tensor term = rule.times[i](c, aligned(dx[i], c.x[i].ndim(), ndim));
    dy = dy.defined() ? add(dy, term) : term;
  }
  return broadcast_to(dy, behind(front, c.y[0].shape()));
}

// Sums the terms of only those inputs that have a tangent: for the others, 0 · ∞ would be NaN.
Tensor jvp_of_some(const PartialsRule& rule, const Call& c, Refs dx) {
  const int n = rule.vjp.inputs;
  const Tensor* x[kMaxInputs];
  for (int i = 0; i < n; ++i) {
    x[i] = &c.x[i];
    if (dx[i].defined() && dx[i].shape() != c.y[0].shape()) return jvp_by_ops(rule, c, dx);
  }
  Tensor dy;
  for (int i = 0; i < n; ++i) {
    if (!dx[i].defined()) continue;
    const unsigned adds = dy.defined() ? 1u << i : 0;
    if (!adds) dy = allocate(c.y[0].spec());
    Tensor out[kMaxInputs];
    out[i] = dy;
    run_vjp(c.op, rule.vjp, dx[i], x, c.y[0], out, adds);
  }
  return dy;
}

// Applies the op to its inputs, with input i replaced by dx.
Tensor with_input(const Call& c, int i, const Tensor& dx) {
  std::vector<const Tensor*> x;
  for (int k = 0; k < c.x.size(); ++k)
    x.push_back(k == i ? &dx : &c.x[k]);
  return c.op({x.data(), c.x.size()}, c.raw_attrs);
}

}   // namespace

Tensor jvp_of_partials(const PartialsRule& rule, const Call& c, Refs dx) {
  const int n = rule.vjp.inputs;
  bool as_ops = is_complex(c.y[0].dtype()), some = false;
  for (int i = 0; i < n; ++i) {
    as_ops |= dx[i].defined() && (dx[i].shape() != c.x[i].shape() || is_recorded(rule, c, dx[i]));
    some |= !dx[i].defined();
  }
  if ((as_ops || some) && is_half(c.y[0].dtype())) {
    Tensor dy;
    push_forward_widened(c, dx, {&dy, 1});
    return dy;
  }
  if (as_ops) return jvp_by_ops(rule, c, dx);
  if (some) return jvp_of_some(rule, c, dx);
  const Tensor* refs[kernels::kMaxOperands];
  for (int i = 0; i < n; ++i) {
    refs[i] = &c.x[i];
    refs[n + 1 + i] = &dx[i];
  }
  refs[n] = &c.y[0];
  Tensor dy = allocate(c.y[0].spec());
  kernels::run_map(*rule.jvp, {refs, 2 * n + 1}, dy);
  return dy;
}

Tensor jvp_of_linear(const Call& c, Refs dx) { return dx[0].defined() ? with_input(c, 0, dx[0]) : Tensor(); }

Tensor jvp_of_bilinear(const Call& c, Refs dx) {
  const int ndim = std::max(c.x[0].ndim(), c.x[1].ndim());
  const auto term = [&](int i) { return with_input(c, i, aligned(dx[i], c.x[i].ndim(), ndim)); };
  if (!dx[1].defined()) return dx[0].defined() ? term(0) : Tensor();
  const Tensor right = term(1);
  return dx[0].defined() ? add(term(0), right) : right;
}

}   // namespace tapedeck::detail
