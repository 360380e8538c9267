// Computes gradients of a loss, and takes a step. In: a function to run under a tape, or a tape and a loss.
// Out: a gradient or none for each variable.
#include "core/format.h"
#include "core/thread_state.h"
#include "optim/communicator.h"
#include "tape/variable.h"
#include "tapedeck/operators.h"

namespace tapedeck {
namespace {

struct Differentiated {
  Tensor loss;
  std::vector<GradientAndVariable> pairs;
};

void check_variables(std::span<const Variable> variables) {
  for (const Variable& v : variables)
    if (!is_floating(v.dtype()))
      throw_error<DTypeError>("compute_gradients: {} is {}; use f32, f64, f16 or bf16",
                              detail::label(v.cell()), Spec{v.dtype(), v.shape()});
}

void check_options(const LossOptions& options) {
  if (!options.variables) return;
  if (options.variables->empty()) throw ArgumentError("compute_gradients: no variables given");
  check_variables(*options.variables);
}

void check_loss(const Tensor& loss, const LossOptions& options) {
  if (!loss.defined()) throw ArgumentError("compute_gradients: the loss is undefined; return a tensor");
  if (!is_floating(loss.dtype()))
    throw_error<DTypeError>("compute_gradients: the loss is {}; use f32, f64, f16 or bf16", loss.spec());
  if (loss.size() != 1 && !options.output_gradient.defined())
    throw_error<ShapeError>(
        "compute_gradients: the loss is {}; it must have one element: use its mean or sum, or pass an "
        "output_gradient",
        loss.spec());
}

// The factor of a replica's loss is applied to the output gradient, so that the loss itself is unchanged.
Gradient output_gradient_of(const Tensor& loss, const LossOptions& options) {
  const double factor = thread_state.communicator ? thread_state.communicator->scale_loss() : 1;
  if (factor == 1) return options.output_gradient;
  return options.output_gradient.defined() ? options.output_gradient.dense() * factor
                                           : full_like(loss, factor);
}

/// Whether the gradients are for the caller or for a step.
enum class To { caller, step };

Differentiated differentiate(const Tensor& loss, GradientTape& tape, const LossOptions& options, To to) {
  check_loss(loss, options);
  const std::vector<Variable> variables = options.variables ? *options.variables : tape.watched_variables();
  if (variables.empty())
    throw ArgumentError(
        "compute_gradients: the loss reads no trainable variables; make one trainable, or name those to "
        "train in LossOptions::variables");
  if (!options.variables) check_variables(variables);

  Differentiated result{loss, {}};
  const Arrival arrival = to == To::step && thread_state.communicator
                              ? thread_state.communicator->begin_pass(variables)
                              : Arrival();
  std::vector<Gradient> gradients = tapedeck::differentiate(
      tape.tape(), Targets(loss), Sources(variables),
      {.output_gradients = {output_gradient_of(loss, options)}, .aggregation = options.aggregation}, arrival);
  for (std::size_t i = 0; i < variables.size(); ++i)
    result.pairs.push_back({std::move(gradients[i]), variables[i]});
  return result;
}

Differentiated differentiate(const Loss& loss, const LossOptions& options, To to) {
  if (!loss) throw ArgumentError("compute_gradients: the loss is an empty function");
  check_options(options);
  if (to == To::step && options.variables) detail::check_distinct(*options.variables, "minimize");
  GradientTape tape({.watch_accessed_variables = !options.variables});
  if (options.variables)
    for (const Variable& v : *options.variables)
      tape.watch(v);
  return differentiate(loss(), tape, options, to);
}

Differentiated differentiate(const Tensor& loss, GradientTape* tape, const LossOptions& options, To to) {
  check_options(options);
  if (to == To::step && options.variables) detail::check_distinct(*options.variables, "minimize");
  if (!tape)
    throw ArgumentError(
        "compute_gradients: a loss that is a tensor needs the tape that recorded it; pass the tape, or a "
        "function");
  return differentiate(loss, *tape, options, to);
}

}   // namespace

std::vector<GradientAndVariable> Optimizer::compute_gradients(const Loss& loss, const LossOptions& options) {
  return differentiate(loss, options, To::caller).pairs;
}

std::vector<GradientAndVariable> Optimizer::compute_gradients(const Tensor& loss, GradientTape* tape,
                                                              const LossOptions& options) {
  return differentiate(loss, tape, options, To::caller).pairs;
}

Tensor Optimizer::minimize(const Loss& loss, const LossOptions& options,
                           const std::optional<Variable>& global_step) {
  const Differentiated d = differentiate(loss, options, To::step);
  apply_gradients(d.pairs, global_step);
  return d.loss;
}

Tensor Optimizer::minimize(const Tensor& loss, GradientTape* tape, const LossOptions& options,
                           const std::optional<Variable>& global_step) {
  apply_gradients(differentiate(loss, tape, options, To::step).pairs, global_step);
  return loss;
}

}   // namespace tapedeck
