// Chooses how derivatives of a user's map run. In: a call, and its cotangents or tangents. Out: gradients or
// tangents, by fused passes; if operands are tracked, by ops that run such passes; for many stacked
// directions, by products with partials. The derivatives of these ops are again passes in the arguments in
// which the ops are linear, and f by ops in the inputs of the map. So only programs that compute second
// derivatives pay for them.
#include <algorithm>

#include "kernels/elementwise/limits.h"
#include "op/gradient_sum.h"
#include "op/recorder.h"
#include "op/rules.h"
#include "op/stacked_shapes.h"
#include "ops/elementwise/map_call.h"
#include "tape/distinct_arguments.h"
#include "tapedeck/forward_accumulator.h"
#include "tapedeck/gradient_tape.h"

namespace tapedeck::detail {
namespace {

using Tensors = std::vector<Tensor>;
using GradientList = std::vector<Gradient>;

bool any_tracked(Refs x) {
  for (int i = 0; i < x.size(); ++i)
    if (x[i].defined() && tracked(x[i])) return true;
  return false;
}
bool any_tracked(std::span<const Tensor> x) {
  return std::any_of(x.begin(), x.end(), [](const Tensor& t) { return t.defined() && tracked(t); });
}
bool any_defined(std::span<const Tensor> x) {
  return std::any_of(x.begin(), x.end(), [](const Tensor& t) { return t.defined(); });
}
Tensors list_of(Refs x) {
  Tensors all;
  for (int i = 0; i < x.size(); ++i)
    all.push_back(x[i]);
  return all;
}
std::size_t at(int i) { return static_cast<std::size_t>(i); }

// Whether each direction has a pass, which computes f again. For more directions, partials are computed once.
bool take_passes(const MapCall& c, std::int64_t directions) {
  return directions <= std::max<std::int64_t>(c.m.results, kernels::kFewDirections);
}

// The defined tangents in v, and the inputs in x that they belong to.
struct Directions {
  Directions(const Tensors& x, std::span<const Tensor> v) {
    for (std::size_t i = 0; i < v.size(); ++i) {
      if (!v[i].defined()) continue;
      primals.push_back(x[i]);
      tangents.push_back(v[i]);
    }
  }
  Tensors primals, tangents;
};
ForwardOptions stacked_as(const MapCall& c, std::span<const Tensor> v) {
  const std::vector<const Tensor*> pointers = pointers_to(v);
  return {.stacked = front_of_inputs(c, refs(pointers)).ndim() > 0};
}

// The derivative along v of the gradients of the wanted inputs: Σ dy_k ∂²y_k/∂x_i∂x_j v_j. dy is not stacked.
void curve(const MapCall& c, std::span<const Tensor> v, std::span<const Tensor> dy, unsigned wanted,
           std::span<Gradient> dx) {
  Tensors x = list_of(c.x), sources, targets, cotangents;
  make_distinct(x);
  const Directions directions(x, v);
  const ForwardAccumulator along(directions.primals, directions.tangents, stacked_as(c, v));
  GradientTape tape;
  for (int i = 0; i < c.m.inputs; ++i)
    if (wanted >> i & 1) tape.watch(sources.emplace_back(x[at(i)]));
  const Tensors y = results_by_ops(c, x);
  for (std::size_t k = 0; k < y.size(); ++k) {
    if (!dy[k].defined()) continue;
    targets.push_back(y[k]);
    cotangents.push_back(dy[k]);
  }
  GradientList gradients = tape.gradient(targets, sources, {.output_gradients = cotangents});
  for (int i = 0, next = 0; i < c.m.inputs; ++i) {
    if (!(wanted >> i & 1)) continue;
    Gradient& g = gradients[at(next++)];
    if (!g.defined()) continue;
    if (const Tensor term = along.jvp(std::move(g).dense()).tensor(); term.defined()) add_to(dx[at(i)], term);
  }
}

// The derivative along w of the tangents along v: Σ ∂²y_k/∂x_i∂x_j v_i w_j.
Tensors bend(const MapCall& c, std::span<const Tensor> v, std::span<const Tensor> w) {
  Tensors x = list_of(c.x);
  make_distinct(x);
  const Directions outer(x, w), inner(x, v);
  const ForwardAccumulator along_w(outer.primals, outer.tangents, stacked_as(c, w)),
      along_v(inner.primals, inner.tangents);
  Tensors y = results_by_ops(c, x);
  for (Tensor& t : y)
    if (t = along_v.jvp(t).tensor(); t.defined()) t = along_w.jvp(t).tensor();
  return y;
}

Tensor broadcast(const Tensor& x, const Shape& shape) {
  return x.shape() == shape ? x : broadcast_to(x, shape);
}
// The operands of f: the inputs, shifted and broadcast.
Tensors stretched(const MapCall& c, Refs x) {
  Tensors all;
  for (int i = 0; i < c.m.inputs; ++i)
    all.push_back(broadcast(moved(x[i], c.shift(i)), c.shape));
  return all;
}
Tensor stretched_tangent(const MapCall& c, const Tensor& dx, int i) {
  return aligned(moved(dx, {.by = c.shift(i).by}), c.x[i].ndim(), c.shape.ndim());
}
// The transpose of stretched_tangent.
Tensor shrunk(const MapCall& c, const Tensor& dz, int i) {
  return moved(unbroadcast(dz, c.x[i].shape(), c.shape), {.by = -c.shift(i).by});
}

// Cotangents of ones for result k, and undefined for the others.
Tensors unit(const MapCall& c, std::size_t k) {
  Tensors dy(at(c.m.results));
  dy[k] = ones(c.shape, c.dtype());
  return dy;
}

// Gradients as products of stacked cotangents and partials. partials(call, unit, p) computes the partials p
// of one result, for a call whose operands all have the shape of the results.
template <class Partials> void pull_by_products(const MapCall& c, std::span<const Tensor> dy, unsigned wanted,
                                                std::span<Gradient> dx, const Partials& partials) {
  const Tensors z = stretched(c, c.x);
  const std::vector<const Tensor*> pointers = pointers_to(z);
  const MapCall call{c.m, c.attrs, refs(pointers), c.shape, nullptr};
  GradientList sums(at(c.m.inputs));
  for (std::size_t k = 0; k < dy.size(); ++k) {
    if (!dy[k].defined()) continue;
    GradientList p(at(c.m.inputs));
    partials(call, unit(c, k), p);
    for (std::size_t i = 0; i < p.size(); ++i)
      if (p[i].defined()) add_to(sums[i], mul(dy[k], std::move(p[i]).dense()));
  }
  for (int i = 0; i < c.m.inputs; ++i)
    if ((wanted >> i & 1) && sums[at(i)].defined())
      add_to(dx[at(i)], shrunk(c, std::move(sums[at(i)]).dense(), i));
}

// Tangents as products of stacked tangents and partials.
void push_by_products(const MapCall& c, Refs dx, std::span<Tensor> dy) {
  const Shape shape = behind(front_of_inputs(c, dx), c.shape);
  const Tensors z = stretched(c, c.x);
  const std::vector<const Tensor*> pointers = pointers_to(z);
  const MapCall call{c.m, c.attrs, refs(pointers), c.shape, nullptr};
  unsigned wanted = 0;
  for (int i = 0; i < c.m.inputs; ++i)
    if (dx[i].defined()) wanted |= 1u << i;
  for (std::size_t k = 0; k < dy.size(); ++k) {
    GradientList p(at(c.m.inputs));
    pull(call, unit(c, k), wanted, p);
    Gradient sum;
    for (int i = 0; i < c.m.inputs; ++i)
      if (p[at(i)].defined()) add_to(sum, mul(stretched_tangent(c, dx[i], i), std::move(p[at(i)]).dense()));
    if (sum.defined()) dy[k] = broadcast(std::move(sum).dense(), shape);
  }
}

// Like curve, for cotangents that may be stacked. Precondition: v or dy is not stacked.
void curve_stacked(const MapCall& c, std::span<const Tensor> v, std::span<const Tensor> dy, unsigned wanted,
                   std::span<Gradient> dx) {
  if (front_of_results(c, dy).ndim() == 0) return curve(c, v, dy, wanted, dx);
  Tensors along(v.size());
  for (int i = 0; i < c.m.inputs; ++i)
    if (v[at(i)].defined()) along[at(i)] = broadcast(stretched_tangent(c, v[at(i)], i), c.shape);
  pull_by_products(c, dy, wanted, dx, [&](const MapCall& call, const Tensors& one, std::span<Gradient> p) {
    curve(call, along, one, wanted, p);
  });
}

// The attributes of the ops of derivatives. Their inputs are the inputs of the map, followed by the defined
// cotangents of results, or tangents of inputs.
struct DerivativeAttrs {
  const MapFunction* m;
  OwnedAttrs attrs;   // of the map
  Shape shape;
  bool moved;
  unsigned given, wanted;   // masks of the defined cotangents or tangents; of the wanted gradients
};

// The parts of a call of such an op.
class DerivativeCall {
 public:
  explicit DerivativeCall(const Call& c) : a_(c.attrs<DerivativeAttrs>()) {
    for (int i = 0; i < inputs(); ++i)
      pointers_.push_back(&c.x[i]);
  }
  DerivativeCall(const DerivativeCall&) = delete;

  int inputs() const { return a_.m->inputs; }
  unsigned wanted() const { return a_.wanted; }
  MapCall map() const {
    const Attrs attrs = a_.attrs.view();
    return {*a_.m, attrs, refs(pointers_), a_.shape, a_.moved ? a_.m->shifts(attrs.data) : nullptr};
  }
  // given: the elements of x after the inputs, each at its index k among the results or inputs of the map.
  // each_given, each_wanted: call f(k) for all such indices, in order.
  Tensors given(Refs x) const {
    Tensors all(at(std::max(a_.m->inputs, a_.m->results)));
    int next = inputs();
    each(a_.given, [&](int k) { all[at(k)] = x[next++]; });
    return all;
  }
  template <class F> void each_given(const F& f) const { each(a_.given, f); }
  template <class F> void each_wanted(const F& f) const { each(a_.wanted, f); }
  // wanted_inputs: the inputs of the map whose gradients c wants. wants_given: whether c wants the gradient
  // of a given cotangent or tangent.
  unsigned wanted_inputs(const Call& c) const {
    return static_cast<unsigned>(c.wanted) & ((1u << inputs()) - 1);
  }
  static bool wants_given(const Call& c, int inputs) { return c.wanted >> inputs != 0; }

 private:
  template <class F> static void each(unsigned bits, const F& f) {
    for (int k = 0; bits; ++k, bits >>= 1)
      if (bits & 1) f(k);
  }

  const DerivativeAttrs& a_;
  std::vector<const Tensor*> pointers_;
};

unsigned bits_of(std::span<const Tensor> x) {
  unsigned bits = 0;
  for (std::size_t i = 0; i < x.size(); ++i)
    if (x[i].defined()) bits |= 1u << i;
  return bits;
}
Tensors dense(std::span<Gradient> g) {
  Tensors all;
  for (Gradient& one : g)
    all.push_back(one.defined() ? std::move(one).dense() : Tensor());
  return all;
}
DerivativeAttrs attrs_for(const MapCall& c, unsigned given, unsigned wanted) {
  return {&c.m, OwnedAttrs(c.attrs), c.shape, c.shifts != nullptr, given, wanted};
}
Tensors inputs_for(const MapCall& c, std::span<const Tensor> given) {
  Tensors x = list_of(c.x);
  std::copy_if(given.begin(), given.end(), std::back_inserter(x),
               [](const Tensor& t) { return t.defined(); });
  return x;
}

// The op of gradients. It is linear in the cotangents; its vjp in them is the map's jvp.
void compute_gradients(const Call& c, std::span<Tensor> y) {
  const DerivativeCall d(c);
  const MapCall map = d.map();
  Tensors dy = d.given(c.x);
  dy.resize(at(map.m.results));
  GradientList dx(at(d.inputs()));
  pull_in_passes(map, std::move(dy), d.wanted(), dx);
  std::size_t next = 0;
  d.each_wanted([&](int i) { y[next++] = std::move(dx[at(i)]).dense(); });
}
void gradients_vjp(const Call& c, std::span<Gradient> u, std::span<Gradient> dx) {
  const DerivativeCall d(c);
  const MapCall map = d.map();
  Tensors v(at(d.inputs())), dy = d.given(c.x);
  dy.resize(at(map.m.results));
  const Tensors given = dense(u);
  std::size_t next = 0;
  d.each_wanted([&](int i) { v[at(i)] = given[next++]; });
  if (!any_defined(v)) return;
  if (DerivativeCall::wants_given(c, d.inputs())) {
    Tensors ddy(dy.size());
    const std::vector<const Tensor*> pointers = pointers_to(v);
    push(map, refs(pointers), ddy);
    int place = d.inputs();
    d.each_given([&](int k) {
      if (ddy[at(k)].defined()) dx[at(place)] = std::move(ddy[at(k)]);
      ++place;
    });
  }
  if (const unsigned wanted = d.wanted_inputs(c)) curve_stacked(map, v, dy, wanted, dx);
}
void gradients_jvp(const Call& c, Refs t, std::span<Tensor> y) {
  const DerivativeCall d(c);
  const MapCall map = d.map();
  Tensors v = list_of(t), dy = d.given(c.x), ddy = d.given(t);
  v.resize(at(d.inputs()));
  dy.resize(at(map.m.results));
  ddy.resize(at(map.m.results));
  GradientList sums(at(d.inputs()));
  if (any_defined(ddy)) pull(map, std::move(ddy), d.wanted(), sums);
  if (any_defined(v)) curve_stacked(map, v, dy, d.wanted(), sums);
  std::size_t next = 0;
  d.each_wanted([&](int i) {
    if (sums[at(i)].defined()) y[next] = std::move(sums[at(i)]).dense();
    ++next;
  });
}

// The op of tangents. It is linear in the tangents of the inputs; its vjp in them is the map's vjp.
void compute_tangents(const Call& c, std::span<Tensor> y) {
  const DerivativeCall d(c);
  Tensors dx = d.given(c.x);
  const std::vector<const Tensor*> pointers = pointers_to(dx);
  push_in_passes(d.map(), refs(pointers), y);
  for (std::size_t k = 0; k < y.size(); ++k)
    if (!y[k].defined()) y[k] = zeros(d.map().shape, d.map().dtype());
}
void tangents_vjp(const Call& c, std::span<Gradient> u, std::span<Gradient> dx) {
  const DerivativeCall d(c);
  const MapCall map = d.map();
  Tensors v = d.given(c.x);
  v.resize(at(d.inputs()));
  const Tensors dy = dense(u);
  if (!any_defined(dy)) return;
  if (DerivativeCall::wants_given(c, d.inputs())) {
    GradientList dv(at(d.inputs()));
    pull(map, dy, bits_of(v), dv);
    int place = d.inputs();
    d.each_given([&](int i) { dx[at(place++)] = std::move(dv[at(i)]); });
  }
  if (const unsigned wanted = d.wanted_inputs(c)) curve_stacked(map, v, dy, wanted, dx);
}
void tangents_jvp(const Call& c, Refs t, std::span<Tensor> y) {
  const DerivativeCall d(c);
  const MapCall map = d.map();
  Tensors v = d.given(c.x), w = list_of(t), dv = d.given(t);
  for (Tensors* const list : {&v, &w, &dv})
    list->resize(at(d.inputs()));
  if (any_defined(dv)) {
    const std::vector<const Tensor*> pointers = pointers_to(dv);
    push(map, refs(pointers), y);
  }
  if (!any_defined(w)) return;
  const Tensors bent = bend(map, v, w);
  for (std::size_t k = 0; k < y.size(); ++k)
    if (bent[k].defined()) y[k] = y[k].defined() ? add(y[k], bent[k]) : bent[k];
}

constexpr Rule derivative_rule(Rule::Vjp vjp, Rule::Jvp jvp) {
  return Rule::custom({.x = ~0u}, vjp, jvp).accepting_none().stacking_jvp();
}
constexpr Op gradients_op = {.name = "map_vjp",
                             .doc = "The gradients of a user's elementwise function.",
                             .infer =
                                 [](const Call&c) {
                                   std::vector<Spec> specs;
                                   DerivativeCall(c).each_wanted(
                                       [&](int i) { specs.push_back(c.x[i].spec()); });
                                   return specs;
                                 },
                             .forward = {compute_gradients, Outputs::by_kernel},
                             .rule = derivative_rule(gradients_vjp, gradients_jvp)},
             tangents_op = {.name = "map_jvp",
                            .doc = "The tangents of a user's elementwise function.",
                            .infer =
                                [](const Call&c) {
                                  const auto& a = c.attrs<DerivativeAttrs>();
                                  return std::vector<Spec>(at(a.m->results), Spec{c.x[0].dtype(), a.shape});
                                },
                            .forward = {compute_tangents, Outputs::by_kernel},
                            .rule = derivative_rule(tangents_vjp, tangents_jvp)};

void pull_as_op(const MapCall& c, std::span<const Tensor> dy, unsigned wanted, std::span<Gradient> dx) {
  Tensors y = gradients_op.run(inputs_for(c, dy), attrs_for(c, bits_of(dy), wanted));
  std::size_t next = 0;
  for (int i = 0; i < c.m.inputs; ++i)
    if (wanted >> i & 1) add_to(dx[at(i)], std::move(y[next++]));
}
void push_as_op(const MapCall& c, Refs dx, std::span<Tensor> dy) {
  const Tensors given = list_of(dx);
  Tensors y = tangents_op.run(inputs_for(c, given), attrs_for(c, bits_of(given), 0));
  std::move(y.begin(), y.end(), dy.begin());
}

}   // namespace

void pull(const MapCall& c, Tensors dy, unsigned wanted, std::span<Gradient> dx) {
  if (!wanted || !any_defined(dy)) return;
  const Shape front = front_of_results(c, dy);
  const bool recorded = any_tracked(c.x) || any_tracked(dy);
  if (front.ndim() && (recorded || !take_passes(c, front.size())))
    pull_by_products(c, dy, wanted, dx, [&](const MapCall& call, Tensors one, std::span<Gradient> p) {
      pull(call, std::move(one), wanted, p);
    });
  else if (recorded)
    pull_as_op(c, dy, wanted, dx);
  else
    pull_in_passes(c, std::move(dy), wanted, dx);
}

void push(const MapCall& c, Refs dx, std::span<Tensor> dy) {
  const Shape front = front_of_inputs(c, dx);
  const bool recorded = any_tracked(c.x) || any_tracked(dx);
  if (front.ndim() && (recorded || !take_passes(c, front.size())))
    push_by_products(c, dx, dy);
  else if (recorded)
    push_as_op(c, dx, dy);
  else
    push_in_passes(c, dx, dy);
}

}   // namespace tapedeck::detail
