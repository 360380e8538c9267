// User-defined gradients of functions and of results computed outside the library, and gradients that
// recompute intermediate values instead of storing them.
#pragma once
#include <optional>

#include "tapedeck/function.h"
#include "tapedeck/record_operation.h"
#include "tapedeck/variable.h"

namespace tapedeck {
namespace detail {

/// The result of a gradient function, split into the gradients of inputs and of variables.
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

// Adapts a gradient function whose additional last argument is the list of variables.
template <class G> auto with_variables(G& g, std::span<const Variable> variables) {
  return [&g, variables ](
      const auto&... dy) requires std::invocable<G&, decltype(dy)..., std::span<const Variable>> {
    return g(dy..., variables);
  };
}
template <class G> inline constexpr bool kTakesVariables = !kTakesTensors<G>;

/// Whether R is a pair whose second part is not a tensor, and so may be a gradient function.
template <class R> inline constexpr bool kIsValueAndGradient = false;
template <class V, class G> inline constexpr bool kIsValueAndGradient<std::pair<V, G>> =
    !std::convertible_to<G, const Tensor&>;
template <class V, class G> inline constexpr bool kIsValueAndGradient<std::tuple<V, G>> =
    !std::convertible_to<G, const Tensor&>;

/// The variables that f captures: all except those among its arguments.
template <class... X> std::vector<Variable> captured(std::vector<Variable> variables, const X&... x) {
  [[maybe_unused]] const auto drop = [&](const auto& self, const auto& argument) -> void {
    if constexpr (std::convertible_to<decltype(argument), const Variable&>)
      std::erase(variables, argument);
    else if constexpr (requires { argument.begin(), argument.end(); })
      for (const auto& e : argument)
        self(self, e);
  };
  (drop(drop, x), ...);
  return variables;
}

/// Flattens a tensor, a gradient, or a list, array, pair or tuple of them into a list of gradients.
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

/// Wraps a function with a user-defined gradient. f(x…) returns a pair: its value, which is a tensor or a
/// structure of tensors, and a gradient function. The latter maps the gradients of the value's tensors,
/// passed as separate arguments or as a span, to the gradients of x…:
///     auto log1pexp = custom_gradient([](const Tensor& x) {
///       Tensor e = exp(x);
///       return std::pair(log1p(e), [e](const Tensor& dy) { return dy * (1 - 1 / (1 + e)); });
///     });
/// If f reads or updates trainable variables that are not among its arguments, the gradient function must
/// accept them, in order of creation, as an additional last argument of type std::span<const Variable>, and
/// returns a pair of the inputs' and the variables' gradients. Other tensors that f captures get no gradient.
/// Higher-order derivatives differentiate the gradient function; forward mode transposes it, so it must be
/// linear in the output gradients. The call throws ArgumentError if f uses variables and the gradient
/// function does not accept them; gradient() throws ArgumentError if the gradient function returns a wrong
/// number of gradients.
template <class F> auto custom_gradient(F f) {
  return [f = std::move(f)](const auto&... x) {
    constexpr bool is_pair = detail::kIsValueAndGradient<detail::ResultOf<const F>>;
    static_assert(
        is_pair, "custom_gradient: the function has to return a pair of its value and its gradient function, "
                 "as in return std::pair(y, [=](const Tensor& dy) { return dy * slope; })");
    if constexpr (is_pair) {
      const std::vector<Tensor> inputs = detail::list_of(x...);
      const VariableWatcher watcher;
      auto [value, gradient] = detail::call("custom_gradient", f, inputs);
      using G = decltype(gradient);
      std::vector<Tensor> outputs = detail::custom_outputs(
          inputs, detail::captured(watcher.watched_variables(), x...), detail::tensors_of(value),
          detail::custom_backward<G>(std::move(gradient)), detail::kTakesVariables<G>);
      detail::replace_tensors(value, outputs);
      return value;
    }
  };
}

/// Wraps f so that tapes store only its arguments, and the gradient recomputes f. Tracked tensors and
/// variables that f captures get gradients, too; objects captured by reference must exist until the gradient
/// is computed. f must compute the same result each time. Supports derivatives of any order in both modes.
/// gradient() throws GradientError if a variable was updated since the call.
template <class F> auto recompute_grad(F f) {
  return [f = std::move(f)](const auto&... x) {
    if constexpr (detail::is_tensor_function<const F>()) {
      std::optional<detail::ResultOf<const F>> result;
      std::vector<Tensor> tensors = detail::recompute(
          detail::list_of(x...),
          [&](std::span<const Tensor> in) {
            return detail::tensors_of(result.emplace(detail::call("recompute_grad", f, in)));
          },
          detail::function_of("recompute_grad", f));
      detail::replace_tensors(*result, tensors);
      return *std::move(result);
    }
  };
}

/// Wraps f so that the gradient of output i is passed unchanged to argument i. The ops inside f are not
/// recorded, so variables that it uses get no gradient. A call throws ArgumentError if f returns a different
/// number of tensors than it has arguments, and DTypeError or ShapeError if outputs and arguments differ in
/// dtype or shape.
template <class F> auto grad_pass_through(F f) {
  return [f = std::move(f)](const auto&... x) {
    if constexpr (detail::is_tensor_function<const F>()) {
      std::optional<detail::ResultOf<const F>> result;
      std::vector<Tensor> tensors =
          detail::pass_through(detail::list_of(x...), [&](std::span<const Tensor> in) {
            return detail::tensors_of(result.emplace(detail::call("grad_pass_through", f, in)));
          });
      detail::replace_tensors(*result, tensors);
      return *std::move(result);
    }
  };
}

/// Returns x; differentiating the result, in either mode, throws GradientError with `reason`.
TAPEDECK_EXPORT Tensor prevent_gradient(const Tensor& x, std::string reason);

}   // namespace tapedeck
