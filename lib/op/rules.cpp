// In: a call and its cotangent. Out: the cotangents of its inputs. A `partials` rule runs fused, in one loop
// over SIMD vectors. It runs as ops if the derivative itself is recorded, the cotangents are stacked, or the
// numbers are complex.
#include "op/rules.h"

#include "core/storage.h"
#include "core/trace.h"
#include "kernels/elementwise/limits.h"
#include "op/gradient_sum.h"
#include "op/primitives.h"
#include "op/recorder.h"
#include "op/stacked_shapes.h"
#include "op/widened_copies.h"

namespace tapedeck {

Tensor times(const Tensor& x, double c) { return mul(x, c); }

Tensor sum_of(Gradient&& a, Tensor&& b) { return add(std::move(a).dense(), std::move(b)); }

namespace detail {

Tensor product(const Tensor& dy, const Tensor& p) { return mul(dy, p); }
Tensor product(const Tensor& dy, double p) { return p == 1 ? dy : p == -1 ? neg(dy) : mul(dy, p); }

bool is_recorded(const PartialsRule& rule, const Call& c, const Tensor& dy) {
  if (!thread_state.innermost) return false;
  if (tracked(dy) || ((rule.vjp.read >> rule.vjp.inputs & 1) && tracked(c.y[0]))) return true;
  for (int i = 0; i < rule.vjp.inputs; ++i)
    if ((rule.vjp.read >> i & 1) && tracked(c.x[i])) return true;
  return false;
}

void run_vjp(const Op& op, const kernels::VjpKernel& kernel, const Tensor& dy, const Tensor* const* x,
             const Tensor& y, const Tensor* dx, unsigned adds) {
  if (thread_state.trace) [[unlikely]]
    thread_state.trace->on_vjp(op, kernel, dy, x, y, dx, adds);
  kernels::run_vjp(kernel, dy, x, &y, dx, adds);
}

namespace {

// Whether the gradient of input i is sparse, with the same rows as dy: the input has the shape of the output,
// and its partial reads only tensors of rank 0.
bool keeps_rows(const PartialsRule& rule, const Call& c, const IndexedSlices& dy, int i) {
  if (c.x[i].defined() && c.x[i].shape() != dy.dense_shape)
    return false;   // an input that was not saved has the shape of the output
  const unsigned read = c.op.rule.partial_reads[i];
  if (read >> kMaxInputs & 1) return false;
  for (int k = 0; k < rule.vjp.inputs; ++k)
    if ((read >> k & 1) && c.x[k].ndim() > 0) return false;
  return true;
}

// Computes the gradients that do not need a dense dy. Returns the inputs whose gradients are still wanted, as
// bits.
std::uint64_t vjp_of_slices(const PartialsRule& rule, const Call& c, const IndexedSlices& dy,
                            std::span<Gradient> dx) {
  const NumberDType dtype(dy.values.dtype());
  std::uint64_t wanted = c.wanted;
  for (int i = 0; i < rule.vjp.inputs; ++i) {
    if (!c.needs_gradient(i) || !keeps_rows(rule, c, dy, i)) continue;
    dx[static_cast<std::size_t>(i)] = IndexedSlices{rule.times[i](c, dy.values), dy.indices, dy.dense_shape};
    wanted &= ~(std::uint64_t{1} << i);
  }
  return wanted & ((std::uint64_t{1} << rule.vjp.inputs) - 1);
}

// The first of `inputs` (bits) that is the same tensor as input i, or i.
int twin_of(Refs x, int i, unsigned inputs) {
  for (int k = 0; k < i; ++k)
    if ((inputs >> k & 1) && x[k].defined() && x[i].defined() && x[k].id() == x[i].id()) return k;
  return i;
}

// Runs the vjp as ops, or as one op by `pass`.
void vjp_by_ops(const PartialsRule& rule, const Call& c, const Tensor& dy, std::span<Gradient> dx,
                RecordedPass pass) {
  const NumberDType dtype(dy.dtype());
  const int n = rule.vjp.inputs;
  if (pass && dy.size() >= kernels::kRecordedPassLeast && dy.shape() == c.y[0].shape() &&
      !is_complex(dy.dtype())) {
    Tensor terms[kMaxInputs];
    if (pass(c, dy, terms)) {
      for (int i = 0; i < n; ++i)
        if (terms[i].defined()) add_to(dx[static_cast<std::size_t>(i)], unbroadcast(c, terms[i], i));
      return;
    }
  }
  for (int i = 0; i < n; ++i)
    if (c.needs_gradient(i)) add_to(dx[static_cast<std::size_t>(i)], unbroadcast(c, rule.times[i](c, dy), i));
}

// Runs the vjp in one pass over memory. x are the inputs of c; `inputs` are those that the tape saved, of
// which some are undefined. If a partial is 1, the gradient is dy, summed over broadcast axes. Other
// gradients of broadcast inputs are summed in the pass, or by the op sum. If dy has no other owner, its
// memory is reused for the first gradient of its shape. Gradients already in dx, and that of an earlier input
// that is the same tensor, are accumulated in the pass.
void vjp_fused(const PartialsRule& rule, const Call& c, const Tensor& dy, const Tensor* const* x, Refs inputs,
               std::span<Gradient> dx) {
  const int n = rule.vjp.inputs;
  Tensor out[kMaxInputs];
  unsigned adds = 0, work = 0;
  const bool apart = kernels::sums_apart(dy, {x, n});
  for (int i = 0; i < n; ++i) {
    if (!c.needs_gradient(i)) continue;
    Gradient& term = dx[static_cast<std::size_t>(i)];
    const bool same = x[i] == &dy || x[i]->shape() == dy.shape();
    if (rule.ones >> i & 1) {
      add_to(term, same ? dy : unbroadcast(dy, x[i]->shape(), dy.shape()));
      continue;
    }
    if (const int twin = same ? twin_of(inputs, i, work) : i; twin < i) {
      out[i] = out[twin];
      adds |= 1u << i;
      continue;
    }
    work |= 1u << i;
    if (same && term.defined()) {
      out[i] = std::move(term).dense();
      adds |= 1u << i;
    } else {
      const bool own = same && dy.unique() && !thread_state.trace;
      const Tensor& like = apart ? dy : *x[i];
      out[i] = own ? dy : allocate(dy.dtype(), like.shape(), like.size());
    }
  }
  if (!work) return;
  run_vjp(c.op, rule.vjp, dy, x, c.y[0], out, adds);
  for (int i = 0; i < n; ++i)
    if (work >> i & 1)
      add_to(dx[static_cast<std::size_t>(i)], out[i].shape() == x[i]->shape()
                                                  ? std::move(out[i])
                                                  : unbroadcast(out[i], x[i]->shape(), dy.shape()));
}

// Runs the vjp as ops in f32, so that the gradient is rounded once.
void vjp_of_half(const Call& c, std::uint64_t wanted, const Tensor& dy, std::span<Gradient> dx) {
  Gradient cotangent(dy);
  pull_back_widened({.op = c.op, .raw_attrs = c.raw_attrs, .x = c.x, .y = c.y, .wanted = wanted},
                    {&cotangent, 1}, dx);
}

}   // namespace

void vjp_of_partials(const PartialsRule& rule, const Call& call, Gradient&& cotangent, std::span<Gradient> dx,
                     RecordedPass pass) {
  std::uint64_t wanted = call.wanted;
  if (const IndexedSlices* slices = cotangent.slices()) [[unlikely]] {
    wanted = vjp_of_slices(rule, call, *slices, dx);
    if (!wanted) return;
  }
  const Tensor dy = std::move(cotangent).dense();
  const int n = rule.vjp.inputs;
  // Tensors that were not saved have the shape of dy.
  const Tensor* y = call.y[0].defined() ? &call.y[0] : &dy;
  const Tensor* x[kMaxInputs];
  for (int i = 0; i < n; ++i)
    x[i] = call.x[i].defined() ? &call.x[i] : y;
  const Call c{.op = call.op, .raw_attrs = call.raw_attrs, .x = {x, n}, .y = {&y, 1}, .wanted = wanted};
  const bool by_ops = dy.shape() != y->shape() || is_complex(dy.dtype()) || is_recorded(rule, c, dy);
  if (by_ops && is_half(dy.dtype()))
    vjp_of_half(call, wanted, dy, dx);
  else if (by_ops)
    vjp_by_ops(rule, c, dy, dx, pass);
  else
    vjp_fused(rule, c, dy, x, call.x, dx);
}

}   // namespace detail

Tensor unbroadcast(const Call& c, const Tensor& dx, int i) {
  return unbroadcast(dx, c.x[i].shape(), c.y[0].shape());
}

Tensor unbroadcast(const Tensor& dx, const Shape& x, const Shape& y) {
  if (x == y) return dx;
  std::vector<int> axes;   // counted from the end
  for (int d = 1; d <= y.ndim(); ++d) {
    const std::int64_t extent = d <= x.ndim() ? x[x.ndim() - d] : 1;
    if (extent == 1 && (y[y.ndim() - d] != 1 || d > x.ndim())) axes.push_back(-d);
  }
  const Tensor summed = axes.empty() ? dx : sum(dx, Axes(std::move(axes)), {.keepdims = true});
  return reshape(summed, behind_extra(dx, y.ndim(), x));
}

}   // namespace tapedeck
