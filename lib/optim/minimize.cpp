// From a loss to gradients and a step. In: a function to run under a tape. Out: a gradient or none for each variable.
#include "base/format.h"
#include "tapedeck/gradient_tape.h"
#include "tapedeck/optimizer.h"

namespace tapedeck {
namespace {

struct Differentiated {
  Tensor loss;
  std::vector<GradientAndVariable> pairs;
};

void check_variables(std::span<const Variable> variables) {
  if (variables.empty()) throw ArgumentError("compute_gradients: no variables given");
  for (const Variable& v : variables)
    if (!is_floating(v.dtype())) throw_error<DTypeError>("compute_gradients: variable \"{}\" is {}; use f32 or f64", v.name(), Spec{v.dtype(), v.shape()});
}

Differentiated differentiate(const Loss& loss, const LossOptions& options) {
  if (!loss) throw ArgumentError("compute_gradients: the loss is an empty function");
  if (options.variables) check_variables(*options.variables);
  GradientTape tape({.watch_accessed_variables = !options.variables});
  if (options.variables) for (const Variable& v : *options.variables) tape.watch(v);
  Differentiated result{loss(), {}};

  if (!result.loss.defined()) throw ArgumentError("compute_gradients: the loss is undefined; return a tensor");
  if (!is_floating(result.loss.dtype())) throw_error<DTypeError>("compute_gradients: the loss is {}; use f32 or f64", result.loss.spec());
  const std::vector<Variable> variables = options.variables ? *options.variables : tape.watched_variables();
  if (variables.empty()) throw ArgumentError("compute_gradients: the loss reads no trainable variables");

  std::vector<Gradient> gradients = tape.gradient(Targets(result.loss), Sources(variables), {.output_gradients = {options.output_gradient}});
  for (std::size_t i = 0; i < variables.size(); ++i) result.pairs.push_back({std::move(gradients[i]), variables[i]});
  return result;
}

}  // namespace

std::vector<GradientAndVariable> Optimizer::compute_gradients(const Loss& loss, const LossOptions& options) { return differentiate(loss, options).pairs; }

Tensor Optimizer::minimize(const Loss& loss, const LossOptions& options, const std::optional<Variable>& global_step) {
  const Differentiated d = differentiate(loss, options);
  apply_gradients(d.pairs, global_step);
  return d.loss;
}

}  // namespace tapedeck
