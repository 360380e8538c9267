// The vjp of a gradient op with its own kernel, computed by differentiating the same function built from ops.
#pragma once
#include "tape/distinct_arguments.h"
#include "tapedeck/gradient_tape.h"
#include "tapedeck/op.h"

namespace tapedeck {

/// Sets dx to the gradients of f(inputs), where f returns the outputs of the call. Outer tapes record the ops
/// of f, so derivatives of any order work. Cotangents must not be stacked.
template <class F>
void pull_back_by_ops(const Call& c, std::span<Gradient> dy, std::span<Gradient> dx, const F& f) {
  std::vector<Tensor> x, sources, targets, cotangents;
  for (int i = 0; i < c.x.size(); ++i)
    x.push_back(c.x[i]);
  make_distinct(x);
  for (int i = 0; i < c.x.size(); ++i)
    if (is_trainable(c.x[i].dtype()) && c.needs_gradient(i))
      sources.push_back(x[static_cast<std::size_t>(i)]);
  GradientTape tape;
  for (const Tensor& t : sources)
    tape.watch(t);
  const std::vector<Tensor> y = f(x);
  for (std::size_t k = 0; k < y.size(); ++k) {
    if (!dy[k].defined()) continue;
    targets.push_back(y[k]);
    cotangents.push_back(std::move(dy[k]).dense());
  }
  const std::vector<Gradient> g =
      tape.gradient(Targets(targets), Sources(sources), {.output_gradients = cotangents});
  for (std::size_t i = 0, next = 0; i < x.size(); ++i)
    if (is_trainable(x[i].dtype()) && c.needs_gradient(static_cast<int>(i))) dx[i] = g[next++];
}

/// Marks the vjp of a rule as unable to batch: it then runs once per stacked cotangent.
constexpr Rule unstacked(Rule rule) {
  rule.stacks = false;
  return rule;
}

}   // namespace tapedeck
