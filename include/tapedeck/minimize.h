// Minimizers for smooth functions of few or many numbers that are not made of random batches: Newton's method
// and L-BFGS.
#pragma once
#include "tapedeck/gradients.h"

namespace tapedeck {

/// Where a minimizer stands, or stopped: the point with the least value of all that it has evaluated. Values
/// that differ by rounding count as equal, and points where the value or the gradient is not finite do not
/// count.
struct Minimum {
  std::vector<Tensor> x;      // of the dtypes and shapes of the start
  double value = 0;           // of exactly this x
  double gradient_norm = 0;   // Euclidean, over all of x
  int iterations = 0;
  int evaluations = 0;   // of the value and gradient
  int products = 0;      // with the Hessian
  bool converged = false;
  /// Why it stopped: "the gradient is small", "max_iterations", "stopped by progress", or why no step lowers
  /// the value: rounding, values that are not finite, a kink or a wrong gradient.
  std::string reason;
};

/// When a minimizer stops. They come first in the options of each: `{{.tolerance = 1e-8}, …}`.
struct MinimizeOptions {
  /// Converged where the norm of the gradient is at most tolerance · max(1, norm of x).
  double tolerance = 1e-6;
  int max_iterations = 200;   // that many, converged or not
  /// Seen after each iteration; false ends the run.
  std::function<bool(const Minimum&)> progress = {};
};

/// Options of minimize_newton.
struct NewtonOptions : MinimizeOptions {
  /// With the Hessian, for one step; 0: twice as many as there are numbers, and at most 200.
  int max_products = 0;
};
/// Options of minimize_lbfgs.
struct LbfgsOptions : MinimizeOptions {
  int history = 6;   // pairs of steps and changes of the gradient that stand for the Hessian
};

/// A function's value, a scalar, and the gradient for each of its tensors, as value_and_grad has them.
struct ValueAndGrad {
  std::function<std::pair<Tensor, std::vector<Gradient>>(const std::vector<Tensor>&)> call;
};

namespace detail {
TAPEDECK_EXPORT Minimum minimize_newton(const Traced& f, const std::vector<Tensor>& x,
                                        const NewtonOptions& options);
TAPEDECK_EXPORT ValueAndGrad value_and_grad_of(std::string_view caller, Traced f);
}   // namespace detail

/// Newton's method by conjugate gradients, for a function of tensors that gives a scalar: each step solves
/// with the Hessian as far as it pays, or until it meets a direction of negative curvature, by products with
/// it alone, and is shortened until the value falls enough; where it never does, a step goes along the
/// negative gradient. Nocedal and Wright, Numerical Optimization, 2nd edition, algorithm 7.1. The Hessian is
/// never formed: a product with it takes up to three times the memory of a gradient of f, and the method
/// keeps a dozen vectors of f64 as long as x. x is f32 or f64 and is computed with in f64 between calls of f.
/// Throws ArgumentError for a value or gradient at the start that is not finite, where no gradient reaches x,
/// for options out of range, DTypeError, ShapeError for a value that is no scalar, and what f throws.
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

/// The limited-memory method of Broyden, Fletcher, Goldfarb and Shanno, by libLBFGS; needs no more than
/// gradients. A line search that fails is no end: the history is dropped, and the next step goes along the
/// negative gradient from the best point seen. Throws what minimize_newton throws, and ArgumentError where
/// the library was built without libLBFGS (see has_lbfgs).
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
