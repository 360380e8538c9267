// Derivatives without handling a tape: of what a Recording has seen, and of functions.
#pragma once
#include "tapedeck/function.h"
#include "tapedeck/gradient_tape.h"

namespace tapedeck {

// Of what the innermost Recording, or other persistent tape, of this thread has seen; GradientError where
// there is none. What these compute is recorded in turn, so that derivatives of any order follow.

/// The gradient of the sum of ys for each of xs, none where there is no path; `output_gradients` is
/// TensorFlow's grad_ys. Throws what GradientTape::gradient throws, and DTypeError for a complex y without an
/// output gradient.
TAPEDECK_EXPORT std::vector<Gradient> gradients(const Targets& ys, const Sources& xs,
                                                const GradientOptions& options = {});
/// For each of xs the matrix of second derivatives of the sum of ys, of shape x.shape + x.shape; undefined
/// where ys or their gradient does not depend on x, or zeros.
TAPEDECK_EXPORT std::vector<Tensor> hessians(const Targets& ys, const Sources& xs,
                                             const JacobianOptions& options = {});
/// The product of the matrix of second derivatives of the sum of ys, in all xs together, with the vector v,
/// which is a constant and has a part for each of xs. Throws ArgumentError where the lists differ in length.
TAPEDECK_EXPORT std::vector<Gradient> hessian_vector_product(const Targets& ys, const Sources& xs,
                                                             std::span<const Tensor> v);

// Of functions made of ops. They take tensors one by one, up to eight, or as a span, or nothing and read
// variables; they give a tensor, or a list, array, pair or tuple of tensors. All throw ArgumentError for a
// function that takes another number of tensors or returns an undefined one.

namespace detail {

template <class F>
concept Differentiable = !std::convertible_to<const F&, Sources>;
/// A function in one form, which is called with nothing if it takes nothing.
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
TAPEDECK_EXPORT Differentiated value_and_gradients(const Traced& f, const Sources& xs,
                                                   const GradientOptions& options);
TAPEDECK_EXPORT std::vector<Tensor> tangents(const Traced& f, const std::vector<Tensor>& xs,
                                             const std::vector<Tensor>& v);
TAPEDECK_EXPORT std::vector<Tensor> jacobians(const Traced& f, const std::vector<Tensor>& xs,
                                              const JacobianOptions& options);
TAPEDECK_EXPORT Tensor batch_jacobian(const Traced& f, const Tensor& x, const JacobianOptions& options);
TAPEDECK_EXPORT Tensor hessian(const Traced& f, const Tensor& x, const JacobianOptions& options);
TAPEDECK_EXPORT std::vector<Tensor> hessian_vector_product(const Traced& f, const std::vector<Tensor>& xs,
                                                           const std::vector<Tensor>& v, JacobianMode mode);

}   // namespace detail

/// The value of f(x, …), as f gives it, and the gradient of its sum, none where there is no path: a std::pair
/// with a Gradient for one x, and a vector of them for a list. A variable among xs stands for its value;
/// where f takes nothing, a variable or tensor stands for all that f reads of it. A tensor that is given
/// twice counts as two.
template <detail::Differentiable F, class X>
auto value_and_grad(const F& f, const X& x, const GradientOptions& options = {}) {
  using Value = detail::ResultOf<F>;
  detail::Differentiated d =
      detail::value_and_gradients(detail::traced("value_and_grad", f), Sources(x), options);
  Value value = detail::structure_of<Value>("value_and_grad", std::move(d.values));
  if constexpr (std::convertible_to<const X&, Source>)
    return std::pair<Value, Gradient>(std::move(value), std::move(d.gradients[0]));
  else
    return std::pair<Value, std::vector<Gradient>>(std::move(value), std::move(d.gradients));
}
template <detail::Differentiable F>
auto value_and_grad(const F& f, std::initializer_list<Source> xs, const GradientOptions& options = {}) {
  return value_and_grad(f, Sources(xs), options);
}
/// The gradients alone.
template <detail::Differentiable F, class X>
auto grad(const F& f, const X& x, const GradientOptions& options = {}) {
  return value_and_grad(f, x, options).second;
}
template <detail::Differentiable F>
auto grad(const F& f, std::initializer_list<Source> xs, const GradientOptions& options = {}) {
  return value_and_grad(f, Sources(xs), options).second;
}

/// What implicit_value_and_grad gives; optimizers take the two lists: apply_gradients(g.gradients,
/// g.variables).
struct ImplicitGradients {
  Tensor value;
  std::vector<Gradient> gradients;
  std::vector<Variable> variables;   // in order of creation
};
/// The value of f() and the gradient of its sum for each trainable variable that f reads. Throws
/// ArgumentError where it reads none.
TAPEDECK_EXPORT ImplicitGradients implicit_value_and_grad(const std::function<Tensor()>& f);

/// From gradients of f(x, …) to those of x, …, without another run of f.
class TAPEDECK_EXPORT Pullback {
 public:
  /// The gradient of the sum of f's outputs, each weighted by its output gradient; ones where it is left out.
  /// A second call throws GradientError unless the pullback is persistent.
  std::vector<Gradient> operator()(const OutputGradients& dy = {}) const;
  std::vector<Gradient> operator()(const Tensor& dy) const { return (*this)(OutputGradients{dy}); }

  // For the library.
  struct State;
  explicit Pullback(std::shared_ptr<State> state) : state_(std::move(state)) {}

 private:
  std::shared_ptr<State> state_;
};
struct VjpOptions {
  bool persistent = true;   // the pullback may be called more than once
};
namespace detail {
TAPEDECK_EXPORT std::pair<std::vector<Tensor>, Pullback> values_and_pullback(const Traced& f,
                                                                             const Sources& xs,
                                                                             const VjpOptions& options);
}
/// The value of f(x, …), as f gives it, and its pullback, which keeps what f's derivative needs and stays on
/// its thread.
template <detail::Differentiable F> auto vjp(const F& f, const Sources& xs, const VjpOptions& options = {}) {
  using Value = detail::ResultOf<F>;
  std::pair<std::vector<Tensor>, Pullback> r =
      detail::values_and_pullback(detail::traced("vjp", f), xs, options);
  return std::pair<Value, Pullback>(detail::structure_of<Value>("vjp", std::move(r.first)),
                                    std::move(r.second));
}

/// The derivative of f(x, …) in the direction v, which has a part for each of xs: of f's structure, with
/// zeros for what does not depend on xs. One run of f, in forward mode.
template <detail::Differentiable F>
auto jvp(const F& f, const std::vector<Tensor>& xs, const std::vector<Tensor>& v) {
  return detail::structure_of<detail::ResultOf<F>>("jvp", detail::tangents(detail::traced("jvp", f), xs, v));
}
template <detail::Differentiable F> auto jvp(const F& f, const Tensor& x, const Tensor& v) {
  return jvp(f, std::vector<Tensor>{x}, std::vector<Tensor>{v});
}

// Of functions that give one tensor. What f does not depend on has zeros.

/// The derivative of every element of f(x, …) with respect to every element of x, of shape f(x).shape +
/// x.shape. Throws DTypeError unless all are f32 or f64.
template <detail::Differentiable F>
std::vector<Tensor> jacobian(const F& f, const std::vector<Tensor>& xs, const JacobianOptions& options = {}) {
  return detail::jacobians(detail::traced("jacobian", f), xs, options);
}
template <detail::Differentiable F>
Tensor jacobian(const F& f, const Tensor& x, const JacobianOptions& options = {}) {
  return detail::jacobians(detail::traced("jacobian", f), {x}, options)[0];
}
/// The Jacobian of each f(x)[b] with respect to x[b], of shape [b] + f(x).shape[1:] + x.shape[1:], where f
/// treats each row for itself. Throws ShapeError unless both have rank 2 or more and the same first extent.
template <detail::Differentiable F>
Tensor batch_jacobian(const F& f, const Tensor& x, const JacobianOptions& options = {}) {
  return detail::batch_jacobian(detail::traced("batch_jacobian", f), x, options);
}
/// The second derivatives of the sum of f(x), of shape x.shape + x.shape.
template <detail::Differentiable F>
Tensor hessian(const F& f, const Tensor& x, const JacobianOptions& options = {}) {
  return detail::hessian(detail::traced("hessian", f), x, options);
}
/// The product of the Hessian with v, without the Hessian, of the shape of x: the gradient of the gradient's
/// product with v, or in forward mode, which keeps less, the tangent of the gradient in the direction v.
template <detail::Differentiable F>
std::vector<Tensor> hessian_vector_product(const F& f, const std::vector<Tensor>& xs,
                                           const std::vector<Tensor>& v,
                                           JacobianMode mode = JacobianMode::automatic) {
  return detail::hessian_vector_product(detail::traced("hessian_vector_product", f), xs, v, mode);
}
template <detail::Differentiable F>
Tensor hessian_vector_product(const F& f, const Tensor& x, const Tensor& v,
                              JacobianMode mode = JacobianMode::automatic) {
  return detail::hessian_vector_product(detail::traced("hessian_vector_product", f), {x}, {v}, mode)[0];
}

}   // namespace tapedeck
