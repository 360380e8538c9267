// Custom gradients. In: the results of a function, and its gradient function. Out: the same values as outputs
// of one operation.
#include "tapedeck/custom_gradient.h"

#include "core/format.h"
#include "op/recorder.h"
#include "tape/variable.h"
#include "tapedeck/ops/array.h"
#include "transforms/recompute.h"
#include "transforms/zero_gradients.h"

namespace tapedeck {
namespace {

// New tensors, since an output may be one of the inputs, or the same tensor as another output.
std::vector<Tensor> unrecorded_copies(std::string_view name, std::span<const Tensor> x) {
  const RecordingScope unrecorded(nullptr);
  std::vector<Tensor> all;
  for (const Tensor& t : x) {
    if (!t.defined()) throw_error<ArgumentError>("{}: output {} is undefined", name, all.size());
    all.push_back(identity(t));
  }
  return all;
}

}   // namespace

std::vector<Tensor> detail::custom_outputs(std::span<const Tensor> inputs, std::vector<Variable> variables,
                                           std::span<const Tensor> outputs, CustomBackward backward,
                                           bool takes_variables) {
  if (!variables.empty() && !takes_variables)
    throw_error<ArgumentError>(
        "custom_gradient: the function uses {}, but its gradient function takes no variables; give it a last "
        "parameter of type std::span<const Variable>",
        detail::described(variables[0].cell()));
  std::vector<Tensor> y = unrecorded_copies("custom_gradient", outputs);
  if (!thread_state.innermost || y.empty()) return y;
  std::vector<Tensor> x(inputs.begin(), inputs.end());
  for (const Variable& v : variables)
    x.push_back(v.value());
  record_operation("custom_gradient", y, x,
                   [n = inputs.size(), variables = std::move(variables),
                    backward = std::move(backward)](std::span<const Tensor> dy) {
                     auto [dx, dv] = backward(dy, variables);
                     if (dx.size() != n)
                       throw_error<ArgumentError>(
                           "custom_gradient: the gradient function returned {} gradients for {} inputs",
                           dx.size(), n);
                     if (dv.size() != variables.size())
                       throw_error<ArgumentError>(
                           "custom_gradient: the gradient function returned {} gradients for {} variables",
                           dv.size(), variables.size());
                     std::move(dv.begin(), dv.end(), std::back_inserter(dx));
                     return std::move(dx);
                   });
  return y;
}

std::vector<Tensor> detail::recompute(std::span<const Tensor> inputs, const Function& first, Function again) {
  return recomputed("recompute_grad", inputs, first, {again, again});
}

std::vector<Tensor> detail::pass_through(std::span<const Tensor> inputs, const Function& f) {
  std::vector<Tensor> y;
  {
    const RecordingScope unrecorded(nullptr);
    y = f(inputs);
  }
  if (y.size() != inputs.size()) throw_results("grad_pass_through", y.size(), inputs.size());
  y = unrecorded_copies("grad_pass_through", y);
  for (std::size_t i = 0; i < y.size(); ++i)
    if (const Spec is = y[i].spec(), was = inputs[i].spec(); is != was)
      throw_changed(is, was,
                    fmt::format("grad_pass_through: output {} is {}, argument {} is {}", i, is, i, was));
  if (!y.empty())
    record_operation(
        "grad_pass_through", y, inputs,
        [](std::span<const Tensor> dy) { return std::vector<Gradient>(dy.begin(), dy.end()); },
        [](std::span<const Tensor> dx) { return std::vector<Tensor>(dx.begin(), dx.end()); });
  return y;
}

Tensor prevent_gradient(const Tensor& x, std::string reason) {
  if (!x.defined()) throw ArgumentError("prevent_gradient: the tensor is undefined");
  const std::vector<Tensor> y = unrecorded_copies("prevent_gradient", {&x, 1});
  const auto refuse = [text = "prevent_gradient: " + std::move(reason)] { throw GradientError(text); };
  record_operation(
      "prevent_gradient", y, {&x, 1},
      [refuse](std::span<const Tensor>) { return refuse(), std::vector<Gradient>(); },
      [refuse](std::span<const Tensor>) { return refuse(), std::vector<Tensor>(); });
  return y[0];
}

}   // namespace tapedeck
