// Derivatives against central differences, to test a function or an op of one's own. Opt-in: tapedeck.h
// leaves it out.
#pragma once
#include <cmath>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string_view>
#include <vector>

#include "tapedeck/tensor.h"

namespace tapedeck {

/// A function of tensors, made of ops. f32, f64, c64 and c128 inputs are varied, others are held as they are.
using TensorFunction = std::function<Tensor(const std::vector<Tensor>&)>;

/// The derivative with respect to one number: an element of an input, or a part of a complex one.
struct ElementDerivative {
  int input = 0;                     // counted from 0; behind the inputs, of a second order, the cotangent
  std::vector<std::int64_t> index;   // of the element
  bool imaginary = false;            // its part
  Spec spec;                         // of the input
  double analytic = 0, numeric = 0;
};

/// What the derivative and the differences gave, reduced to one number each. True where they agree, NaN never
/// does; printed, it shows both, and where they disagree an element of an input for which they do.
struct Agreement {
  std::string_view what;   // "vjp", "jvp", "vjp of vjp", "jvp of vjp"
  double analytic = 0, numeric = 0, tolerance = 0;
  std::optional<ElementDerivative> element = {};   // set where they disagree

  explicit operator bool() const {
    return std::abs(analytic - numeric) <= tolerance * (1 + std::abs(numeric));
  }
  TAPEDECK_EXPORT friend std::ostream& operator<<(std::ostream& out, const Agreement& a);
};

struct GradcheckOptions {
  double step = 0;          // of the differences; 0: 1e-5, or 1e-2 where a tensor is f32 or c64
  double tolerance = 0;     // relative to 1 + |numeric|; 0: 1e-6, or 1e-3 where a tensor is f32 or c64
  std::uint64_t seed = 1;   // of the random directions
};

// Complex elements are pairs of numbers, each varied on its own.
// Each compares ⟨dy, f'(x) v⟩ in a random direction v, with a random cotangent dy, both within [-1, 1], with
// ⟨dy, f(x + step·v) - f(x - step·v)⟩ / (2·step), which calls no op but those of f. The functions must be
// smooth within a step of x. Each throws DTypeError where no input, or not the result, is f32, f64, c64 or
// c128, and ShapeError where a derivative has another shape than its tensor; what f throws passes through.
// Where the two disagree, the direction is halved until one element is left, which takes some log2(elements
// of x) further calls of f.

/// Reverse mode: a GradientTape over f.
TAPEDECK_EXPORT Agreement check_vjp(const TensorFunction& f, const std::vector<Tensor>& x,
                                    const GradcheckOptions& options = {});
/// Forward mode: a ForwardAccumulator over f for one input after the other.
TAPEDECK_EXPORT Agreement check_jvp(const TensorFunction& f, const std::vector<Tensor>& x,
                                    const GradcheckOptions& options = {});
/// Both modes, and both over the vjp as a function of x and dy: second order. The first that disagrees, else
/// the last.
TAPEDECK_EXPORT Agreement check_gradients(const TensorFunction& f, const std::vector<Tensor>& x,
                                          const GradcheckOptions& options = {});

}   // namespace tapedeck
