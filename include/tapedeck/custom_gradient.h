// Gradients of your own: of functions, and of what you have computed yourself. Functions that compute once
// more what their gradient needs.
#pragma once
#include <optional>

#include "tapedeck/function.h"
#include "tapedeck/record_operation.h"
#include "tapedeck/variable.h"

namespace tapedeck {
namespace detail {

/// A gradient function with its results told apart.
struct InputAndVariableGradients {
  std::vector<Gradient> inputs, variables;
};
using CustomBackward = std::function<InputAndVariableGradients(std::span<const Tensor> output_gradients,
                                                               std::span<const Variable> variables)>;

TAPEDECK_EXPORT std::vector<Tensor> custom_outputs(std::span<const Tensor> inputs,
                                                   std::vector<Variable> variables,
                                                   std::span<const Tensor> outputs, CustomBackward backward,
                                                   bool takes_variables);
TAPEDECK_EXPORT std::vector<Tensor> recompute(std::span<const Tensor> inputs, const Function& first,
                                              Function again);
TAPEDECK_EXPORT std::vector<Tensor> pass_through(std::span<const Tensor> inputs, const Function& f);

// A gradient function without and with the variables behind the tensors.
template <class G> auto with_variables(G& g, std::span<const Variable> variables) {
  return [&g, variables ](
      const auto&... dy) requires std::invocable<G&, decltype(dy)..., std::span<const Variable>> {
    return g(dy..., variables);
  };
}
template <class G> inline constexpr bool kTakesVariables =
    !takes_each<G>() && !std::invocable<G&, std::span<const Tensor>>;

/// A tensor, a gradient, or a list, array, pair or tuple of them, as a list of gradients.
template <class S> std::vector<Gradient> gradients_of(S&& structure) {
  std::vector<Gradient> all;
  const auto add = [&](const auto& self, const auto& s) -> void {
    if constexpr (std::convertible_to<decltype(s), Gradient>)
      all.emplace_back(s);
    else if constexpr (requires { s.begin(), s.end(); })
      for (const auto& e : s)
        self(self, e);
    else
      std::apply([&](const auto&... e) { (self(self, e), ...); }, s);
  };
  add(add, structure);
  return all;
}

template <class G> CustomBackward custom_backward(G g) {
  return [g = std::move(g)](std::span<const Tensor> dy,
                            std::span<const Variable> variables) mutable -> InputAndVariableGradients {
    if constexpr (kTakesVariables<G>) {
      auto f = with_variables(g, variables);
      auto [inputs, more] = call("custom_gradient", f, dy);
      return {gradients_of(inputs), gradients_of(more)};
    } else {
      return {gradients_of(call("custom_gradient", g, dy)), {}};
    }
  };
}

}   // namespace detail

/// A function whose gradient is given by hand. f(x…) returns a pair of its value, a tensor or a structure of
/// tensors, and a gradient function, which takes the gradients of the value's tensors, one by one or as a
/// span, and returns those of x…:
///     auto log1pexp = custom_gradient([](const Tensor& x) {
///       Tensor e = exp(x);
///       return std::pair(log1p(e), [e](const Tensor& dy) { return dy * (1 - 1 / (1 + e)); });
///     });
/// If f reads or updates trainable variables, the gradient function takes them, a std::span<const Variable>
/// in order of creation, as a further argument, and returns a pair of the inputs' and the variables'
/// gradients. Other tensors that f captures get none. Derivatives of higher order are those of the gradient
/// function; forward mode transposes it, so that it must be linear. The call throws ArgumentError where
/// variables are used and the gradient function does not take them; gradient() does where it returns another
/// number of gradients.
template <class F> auto custom_gradient(F f) {
  return [f = std::move(f)](const auto&... x) {
    const std::vector<Tensor> inputs = detail::list_of(x...);
    const VariableWatcher watcher;
    auto [value, gradient] = detail::call("custom_gradient", f, inputs);
    using G = decltype(gradient);
    detail::replace_tensors(
        value,
        detail::custom_outputs(inputs, watcher.watched_variables(), detail::tensors_of(value),
                               detail::custom_backward<G>(std::move(gradient)), detail::kTakesVariables<G>));
    return value;
  };
}

/// f, of which tapes keep nothing but its arguments: its gradient runs it once more. What it captures of
/// tensors and variables that tapes follow gets its gradient, too; what it captures by reference must live
/// until then. f must compute the same each time. Derivatives of any order, both modes. A variable that is
/// updated before the gradient is taken makes gradient() throw GradientError.
template <class F> auto recompute_grad(F f) {
  return [f = std::move(f)](const auto&... x) {
    std::optional<detail::ResultOf<const F>> result;
    std::vector<Tensor> tensors = detail::recompute(
        detail::list_of(x...),
        [&](std::span<const Tensor> in) {
          return detail::tensors_of(result.emplace(detail::call("recompute_grad", f, in)));
        },
        detail::function_of("recompute_grad", f));
    detail::replace_tensors(*result, std::move(tensors));
    return *std::move(result);
  };
}

/// f, whose outputs' gradients go to its arguments as they are, output i's to argument i. It is not followed
/// inside, so variables that it uses get none. A call throws ArgumentError where it does not return as many
/// tensors as it takes, DTypeError or ShapeError where they differ from the arguments.
template <class F> auto grad_pass_through(F f) {
  return [f = std::move(f)](const auto&... x) {
    std::optional<detail::ResultOf<const F>> result;
    std::vector<Tensor> tensors =
        detail::pass_through(detail::list_of(x...), [&](std::span<const Tensor> in) {
          return detail::tensors_of(result.emplace(detail::call("grad_pass_through", f, in)));
        });
    detail::replace_tensors(*result, std::move(tensors));
    return *std::move(result);
  };
}

/// x, a derivative of which, in either mode, throws GradientError with this reason.
TAPEDECK_EXPORT Tensor prevent_gradient(const Tensor& x, std::string reason);

}   // namespace tapedeck
