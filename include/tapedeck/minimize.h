// Minimizers for smooth deterministic functions, without random batches, of few or many numbers: Newton's
// method and L-BFGS.
#pragma once
#include "tapedeck/gradients.h"

namespace tapedeck {

/// The state or result of a minimizer: the evaluated point with the smallest value. Values that differ by
/// rounding count as equal, and points where the value or the gradient is not finite are ignored.
struct Minimum {
  std::vector<Tensor> x;      // has the dtypes and shapes of the start
  double value = 0;           // the value at x
  double gradient_norm = 0;   // the Euclidean norm over all of x
  int iterations = 0;
  int evaluations = 0;   // evaluations of the value and gradient
  int products = 0;      // products with the Hessian
  bool converged = false;
  /// The reason for stopping: "the gradient is small", "max_iterations", "stopped by progress", or why no
  /// step lowers the value: rounding, values that are not finite, a kink or a wrong gradient.
  std::string reason;
};

/// When a minimizer stops. These come first in the options of each minimizer: `{{.tolerance = 1e-8}, …}`.
struct MinimizeOptions {
  /// Converged if the norm of the gradient is at most tolerance · max(1, norm of x).
  double tolerance = 1e-6;
  int max_iterations = 200;   // stops after these, converged or not
  /// Called after each iteration; ends the run if it returns false.
  std::function<bool(const Minimum&)> progress = {};
};

/// Options of minimize_newton.
struct NewtonOptions : MinimizeOptions {
  /// Maximum number of products with the Hessian for one step; 0: twice the number of elements of x, but at
  /// most 200.
  int max_products = 0;
};
/// Options of minimize_lbfgs.
struct LbfgsOptions : MinimizeOptions {
  int history = 6;   // pairs of steps and gradient changes that approximate the Hessian
};

/// Returns a function's value, a scalar, and its gradient with respect to each tensor, like value_and_grad.
struct ValueAndGrad {
  std::function<std::pair<Tensor, std::vector<Gradient>>(const std::vector<Tensor>&)> call;
};

namespace detail {
TAPEDECK_EXPORT Minimum minimize_newton(const Traced& f, const std::vector<Tensor>& x,
                                        const NewtonOptions& options);
TAPEDECK_EXPORT ValueAndGrad value_and_grad_of(std::string_view caller, Traced f);
}   // namespace detail

/// Newton's method with conjugate gradients, for a function of tensors that returns a scalar. Each step
/// approximately solves with the Hessian, by products with it only, as accurately as worthwhile or until a
/// direction of negative curvature occurs. It is then shortened until the value decreases enough; if it never
/// does, a step goes along the negative gradient. Nocedal and Wright, Numerical Optimization, 2nd edition,
/// algorithm 7.1. The Hessian is never formed: a product with it needs up to three times the memory of a
/// gradient of f, and the method keeps a dozen vectors of f64 as long as x. x is f32 or f64; between calls of
/// f, computations are in f64. Throws ArgumentError if the value or gradient at the start is not finite, if
/// the gradient with respect to x is none, and for options out of range; DTypeError; ShapeError for a value
/// that is not a scalar; and what f throws.
template <detail::Differentiable F>
Minimum minimize_newton(const F& f, const std::vector<Tensor>& x, const NewtonOptions& options = {}) {
  if constexpr (detail::is_tensor_function<F>())
    return detail::minimize_newton(detail::traced("minimize_newton", f), x, options);
  else
    return {};
}
template <detail::Differentiable F>
Minimum minimize_newton(const F& f, const Tensor& x, const NewtonOptions& options = {}) {
  return minimize_newton(f, std::vector<Tensor>{x}, options);
}

/// The limited-memory method of Broyden, Fletcher, Goldfarb and Shanno, by libLBFGS; needs only gradients. A
/// failed line search does not end the run: the history is dropped, and the next step goes along the negative
/// gradient from the best point so far. Throws what minimize_newton throws, and ArgumentError if the library
/// was built without libLBFGS (see has_lbfgs).
TAPEDECK_EXPORT Minimum minimize_lbfgs(const ValueAndGrad& f, const std::vector<Tensor>& x,
                                       const LbfgsOptions& options = {});
template <detail::Differentiable F>
Minimum minimize_lbfgs(const F& f, const std::vector<Tensor>& x, const LbfgsOptions& options = {}) {
  if constexpr (detail::is_tensor_function<F>())
    return minimize_lbfgs(detail::value_and_grad_of("minimize_lbfgs", detail::traced("minimize_lbfgs", f)), x,
                          options);
  else
    return {};
}
template <detail::Differentiable F>
Minimum minimize_lbfgs(const F& f, const Tensor& x, const LbfgsOptions& options = {}) {
  return minimize_lbfgs(f, std::vector<Tensor>{x}, options);
}
/// Whether the library was built with libLBFGS.
TAPEDECK_EXPORT bool has_lbfgs();

}   // namespace tapedeck
