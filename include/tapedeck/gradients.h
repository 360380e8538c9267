// Derivatives without explicit use of a tape: of recorded tensors, and of functions.
//
// gradients, hessians and hessian_vector_product with targets use the innermost Recording, or other
// persistent tape, of this thread; they throw GradientError if there is none. Their own computations are
// recorded, too, so that derivatives of any order can be taken.
//
// The others accept functions made of ops. Such a function has up to eight tensors as separate arguments, a
// span of tensors, or no arguments (it then reads variables); it returns a tensor, or a list, array, pair or
// tuple of tensors. All throw ArgumentError if the function is empty, has a different number of arguments or
// returns an undefined tensor. Derivatives with respect to arguments on which the function does not depend
// are zeros; gradients with respect to integers and bools are none. If the function has no arguments,
// derivatives with respect to variables and tensors that it does not read are none.
//
// The functions in this file evaluate derivatives at a point. tapedeck/grad.h has the forms that return
// functions: grad(f)(x).
#pragma once
#include "tapedeck/function.h"
#include "tapedeck/gradient_tape.h"

namespace tapedeck {

/// The gradient of the sum of `ys` with respect to each of `xs`, by the ops that the innermost Recording has
/// recorded; none if there is no path. `output_gradients` is TensorFlow's grad_ys. Throws what
/// GradientTape::gradient throws, and DTypeError for a complex y without an output gradient.
TAPEDECK_EXPORT std::vector<Gradient> gradients(const Targets& ys, const Sources& xs,
                                                const GradientOptions& options = {});
/// The Hessian of the sum of `ys` with respect to each x of `xs`, of shape x.shape + x.shape, by the ops that
/// the innermost Recording has recorded. If ys or their gradient do not depend on x, the Hessian is none or
/// zeros, as set by `unconnected`.
TAPEDECK_EXPORT std::vector<Gradient> hessians(const Targets& ys, const Sources& xs,
                                               const JacobianOptions& options = {});
/// The product of the Hessian of the sum of `ys`, with respect to all `xs` jointly, with the vector `v`,
/// which has one part for each of `xs` and is treated as constant. Uses the ops that the innermost Recording
/// has recorded. Throws ArgumentError if the lists differ in length.
TAPEDECK_EXPORT std::vector<Gradient> hessian_vector_product(const Targets& ys, const Sources& xs,
                                                             std::span<const Tensor> v);

namespace detail {

template <class F>
concept Differentiable = !std::convertible_to<const F&, Sources>;
/// The type to which the name of an overloaded op resolves, such as td::abs, of which map.h declares an
/// overload for the numbers of a map.
using UnaryOp = Tensor (*)(Operand);
/// A function with a uniform signature; it is called without tensors if `takes_nothing`.
struct Traced {
  Function call;
  bool takes_nothing;
};
template <class F> Traced traced(std::string_view caller, const F& f) {
  return {function_of(caller, f), kTakes<F, 0> && !kTakes<F, 1>};
}

struct Differentiated {
  std::vector<Tensor> values;
  std::vector<Gradient> gradients;
};
/// Throws DTypeError if argument x has an integer dtype or bool.
TAPEDECK_EXPORT void check_differentiable(std::string_view name, std::size_t argument, const Tensor& x);
/// Gradients with respect to arguments without a path are zeros, or none if `zeros` is false.
TAPEDECK_EXPORT Differentiated value_and_gradients(const Traced& f, const Sources& xs,
                                                   const GradientOptions& options, bool zeros = true);
TAPEDECK_EXPORT std::vector<Tensor> tangents(const Traced& f, const std::vector<Tensor>& xs,
                                             const std::vector<Tensor>& v);
TAPEDECK_EXPORT std::vector<Tensor> jacobians(const Traced& f, const std::vector<Tensor>& xs,
                                              const JacobianOptions& options);
TAPEDECK_EXPORT Tensor batch_jacobian(const Traced& f, const Tensor& x, const JacobianOptions& options);
TAPEDECK_EXPORT Tensor hessian(const Traced& f, const Tensor& x, const JacobianOptions& options);
TAPEDECK_EXPORT std::vector<Tensor> hessian_vector_product(const Traced& f, const std::vector<Tensor>& xs,
                                                           const std::vector<Tensor>& v, JacobianMode mode);

template <class F, class X>
auto value_and_grad_as(std::string_view name, const F& f, const X& x, const GradientOptions& options) {
  using Value = ResultOf<F>;
  Differentiated d = value_and_gradients(traced(name, f), sources_of(x), options);
  return std::pair<Value, typename GradientsOf<X>::Type>(structure_of<Value>(name, std::move(d.values)),
                                                         in_form_of<X>(std::move(d.gradients)));
}

}   // namespace detail

/// The value of f(x, …) as f returns it, and the gradient of its sum. Returns a std::pair with one Gradient
/// for a single x, or with a list, array or tuple of gradients for a list, array or tuple of xs. A variable
/// among xs stands for its value; if f has no arguments, a variable or tensor in xs stands for all reads of
/// it in f. A tensor listed twice counts as two independent arguments.
template <detail::Differentiable F = detail::UnaryOp, detail::AnySources X>
auto value_and_grad(const F& f, const X& x, const GradientOptions& options = {}) {
  if constexpr (detail::is_tensor_function<F>())
    return detail::value_and_grad_as("value_and_grad", f, x, options);
}
template <detail::Differentiable F = detail::UnaryOp>
auto value_and_grad(const F& f, std::initializer_list<Source> xs, const GradientOptions& options = {}) {
  return value_and_grad(f, Sources(xs), options);
}
/// Rejects arguments without braces at compile time, with a message that says what to write.
template <detail::Differentiable F, class A, class B, class... More>
auto value_and_grad(const F&, const A&, const B&,
                    const More&...) requires std::convertible_to<const B&, Source> {
  static_assert(sizeof(F) == 0, "value_and_grad: put several arguments in braces: value_and_grad(f, {x, y})");
}
/// Like value_and_grad, but returns the gradients only.
template <detail::Differentiable F = detail::UnaryOp, detail::AnySources X>
auto grad(const F& f, const X& x, const GradientOptions& options = {}) {
  if constexpr (detail::is_tensor_function<F>())
    return detail::value_and_grad_as("grad", f, x, options).second;
}
template <detail::Differentiable F = detail::UnaryOp>
auto grad(const F& f, std::initializer_list<Source> xs, const GradientOptions& options = {}) {
  return grad(f, Sources(xs), options);
}

/// Rejects arguments without braces at compile time, with a message that says what to write.
template <detail::Differentiable F, class A, class B, class... More>
auto grad(const F&, const A&, const B&, const More&...) requires std::convertible_to<const B&, Source> {
  static_assert(sizeof(F) == 0, "grad: put several arguments in braces: grad(f, {x, y})");
}

/// The result of implicit_value_and_grad. Optimizers accept both lists: apply_gradients(g.gradients,
/// g.variables).
struct ImplicitGradients {
  Tensor value;
  std::vector<Gradient> gradients;
  std::vector<Variable> variables;   // in order of creation
};
/// The value of f() and the gradient of its sum with respect to each trainable variable that f reads. Throws
/// ArgumentError if f reads none.
TAPEDECK_EXPORT ImplicitGradients implicit_value_and_grad(const std::function<Tensor()>& f);

/// Maps output gradients (cotangents) of f(x, …) to gradients of x, …, without running f again.
class TAPEDECK_EXPORT Pullback {
 public:
  /// The gradient of the sum of f's outputs, each weighted by its output gradient; an omitted output gradient
  /// means ones. A second call throws GradientError unless the pullback is persistent.
  std::vector<Gradient> operator()(const OutputGradients& dy = {}) const;
  std::vector<Gradient> operator()(const Tensor& dy) const { return (*this)(Gradient(dy)); }
  /// A template, so that braces are never taken for the arguments of a new variable.
  template <std::same_as<Variable> V> std::vector<Gradient> operator()(const V& dy) const {
    return (*this)(dy.value());
  }
  /// Throws GradientError if dy is none, since a missing path is not the same as ones.
  std::vector<Gradient> operator()(const Gradient& dy) const {
    return dy.defined() ? (*this)(OutputGradients{dy}) : (*this)(dy.dense());
  }

  // Internal.
  struct State;
  explicit Pullback(std::shared_ptr<State> state) : state_(std::move(state)) {}

 private:
  std::shared_ptr<State> state_;
};
/// Options of vjp.
struct VjpOptions {
  bool persistent = true;   // the pullback may be called more than once
};
namespace detail {
TAPEDECK_EXPORT std::pair<std::vector<Tensor>, Pullback> values_and_pullback(const Traced& f,
                                                                             const Sources& xs,
                                                                             const VjpOptions& options);
}
/// The vector-Jacobian product: the value of f(x, …) as f returns it, and its pullback. The pullback keeps
/// the intermediate values that the derivative needs, and must stay on its thread.
template <detail::Differentiable F = detail::UnaryOp>
auto vjp(const F& f, const Sources& xs, const VjpOptions& options = {}) {
  if constexpr (detail::is_tensor_function<F>()) {
    using Value = detail::ResultOf<F>;
    std::pair<std::vector<Tensor>, Pullback> r =
        detail::values_and_pullback(detail::traced("vjp", f), xs, options);
    return std::pair<Value, Pullback>(detail::structure_of<Value>("vjp", std::move(r.first)),
                                      std::move(r.second));
  }
}

/// The Jacobian-vector product: the derivative of f(x, …) in the direction `v`, which has one tangent for
/// each of `xs`. It has the structure of f's result, with zeros for outputs that do not depend on xs. Runs f
/// once, in forward mode.
template <detail::Differentiable F = detail::UnaryOp>
auto jvp(const F& f, const std::vector<Tensor>& xs, const std::vector<Tensor>& v) {
  if constexpr (detail::is_tensor_function<F>())
    return detail::structure_of<detail::ResultOf<F>>("jvp",
                                                     detail::tangents(detail::traced("jvp", f), xs, v));
}
template <detail::Differentiable F = detail::UnaryOp> auto jvp(const F& f, const Tensor& x, const Tensor& v) {
  return jvp(f, std::vector<Tensor>{x}, std::vector<Tensor>{v});
}

/// The derivative of every element of f(x, …), which returns one tensor, with respect to every element of x.
/// It has shape f(x).shape + x.shape and the dtype of x, in every mode, and is zero where f does not depend
/// on x. Throws DTypeError unless all tensors are f32, f64, f16 or bf16, and ShapeError if f(x) and x have
/// more than 8 axes together: reshape them to vectors first. For several tensors, as in jacobian(f, {x, y}),
/// the result is a vector of tensors.
template <detail::Differentiable F = detail::UnaryOp, class X = std::vector<Tensor>>
requires(std::convertible_to<const X&, const Tensor&> ||
         std::convertible_to<const X&, const std::vector<Tensor>&>) auto jacobian(const F& f, const X& x,
                                                                                  const JacobianOptions&
                                                                                      options = {}) {
  if constexpr (!detail::is_tensor_function<F>())
    return Tensor();
  else if constexpr (std::convertible_to<const X&, const Tensor&>)
    return detail::jacobians(detail::traced("jacobian", f), {static_cast<const Tensor&>(x)}, options)[0];
  else
    return detail::jacobians(detail::traced("jacobian", f), x, options);
}
/// The Jacobian of each f(x)[b] with respect to x[b], of shape [b] + f(x).shape[1:] + x.shape[1:]. Assumes
/// that f treats the rows of x independently. Throws ShapeError unless x and f(x) have rank 2 or more and
/// equal first extents.
template <detail::Differentiable F = detail::UnaryOp>
Tensor batch_jacobian(const F& f, const Tensor& x, const JacobianOptions& options = {}) {
  if constexpr (detail::is_tensor_function<F>())
    return detail::batch_jacobian(detail::traced("batch_jacobian", f), x, options);
  else
    return {};
}
/// The Hessian of f, of shape x.shape + x.shape. Throws ShapeError unless f(x) has one element.
template <detail::Differentiable F = detail::UnaryOp>
Tensor hessian(const F& f, const Tensor& x, const JacobianOptions& options = {}) {
  if constexpr (detail::is_tensor_function<F>())
    return detail::hessian(detail::traced("hessian", f), x, options);
  else
    return {};
}
/// The product of the Hessian with `v`, of the shape of x, without forming the Hessian. Throws as hessian
/// does. Reverse mode computes the gradient of the dot product of the gradient and v; forward mode, the
/// tangent of the gradient in the direction v, which needs less memory.
template <detail::Differentiable F = detail::UnaryOp>
std::vector<Tensor> hessian_vector_product(const F& f, const std::vector<Tensor>& xs,
                                           const std::vector<Tensor>& v,
                                           JacobianMode mode = JacobianMode::automatic) {
  if constexpr (detail::is_tensor_function<F>())
    return detail::hessian_vector_product(detail::traced("hessian_vector_product", f), xs, v, mode);
  else
    return {};
}
template <detail::Differentiable F = detail::UnaryOp>
Tensor hessian_vector_product(const F& f, const Tensor& x, const Tensor& v,
                              JacobianMode mode = JacobianMode::automatic) {
  if constexpr (detail::is_tensor_function<F>())
    return detail::hessian_vector_product(detail::traced("hessian_vector_product", f), {x}, {v}, mode)[0];
  else
    return {};
}

}   // namespace tapedeck
