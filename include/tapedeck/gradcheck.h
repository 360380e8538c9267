// To test a function or an op of one's own: derivatives against central differences, and an op against
// samples. Opt-in: tapedeck.h leaves it out.
#pragma once
#include <cmath>
#include <functional>
#include <iosfwd>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tapedeck/op.h"

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

  /// Whether analytic and numeric differ by at most tolerance · (1 + |numeric|).
  explicit operator bool() const {
    return std::abs(analytic - numeric) <= tolerance * (1 + std::abs(numeric));
  }
  TAPEDECK_EXPORT friend std::ostream& operator<<(std::ostream& out, const Agreement& a);
};

/// How derivatives are compared with differences.
struct GradcheckOptions {
  double step = 0;          // of the differences; 0: 1e-5, or 1e-2 where a tensor is f32 or c64
  double tolerance = 0;     // relative to 1 + |numeric|; 0: 1e-6, or 1e-3 where a tensor is f32 or c64
  std::uint64_t seed = 1;   // of the random directions
  std::uint64_t held = 0;   // bit i: input i is held as it is, whatever its dtype
};

/// Reverse mode: a GradientTape over f.
///
/// check_vjp, check_jvp and check_gradients compare ⟨dy, f'(x) v⟩ in a random direction v, with a random
/// cotangent dy, both within [-1, 1], with ⟨dy, f(x + step·v) - f(x - step·v)⟩ / (2·step), which calls no op
/// but those of f. The functions must be smooth within a step of x. They throw DTypeError where no input, or
/// not the result, is f32, f64, c64 or c128, and ShapeError where a derivative has another shape than its
/// tensor; what f throws passes through. Where the two disagree, the direction is halved until one element is
/// left, which takes some log2(elements of x) further calls of f. Complex elements are pairs of numbers, each
/// varied on its own.
TAPEDECK_EXPORT Agreement check_vjp(const TensorFunction& f, const std::vector<Tensor>& x,
                                    const GradcheckOptions& options = {});
/// Forward mode: a ForwardAccumulator over f for one input after the other.
TAPEDECK_EXPORT Agreement check_jvp(const TensorFunction& f, const std::vector<Tensor>& x,
                                    const GradcheckOptions& options = {});
/// Both modes, and both over the vjp as a function of x and dy: second order. The first that disagrees, else
/// the last.
TAPEDECK_EXPORT Agreement check_gradients(const TensorFunction& f, const std::vector<Tensor>& x,
                                          const GradcheckOptions& options = {});

/// An op as such a function: its output, or those that have derivatives, end to end; complex if one of them
/// is.
TAPEDECK_EXPORT TensorFunction as_function(const Op& op, const OwnedAttrs& attrs = {});

/// Inputs and attributes to check an op with, and what comes out.
struct Sample {
  std::vector<Tensor> inputs;
  OwnedAttrs attrs = {};
  /// The outputs from an independent source, and that source: a NumPy, SciPy or torch expression of the
  /// inputs by the op's argument names, or "by hand".
  std::vector<Tensor> expected = {};
  std::string_view oracle = {};
  /// An error of an output up to this is accepted, however small the value: where terms cancel, the error is
  /// as large as that of the terms.
  double floor = 0;
};

/// Options of check_op.
struct OpCheckOptions {
  bool differences = true;   // false: the derivative is not compared with differences
  /// Of the derivative. An input that is held must have no gradient.
  GradcheckOptions gradients = {};
};

/// What check_op found. True where nothing is wrong; printed, it says which sample is, in what, and by how
/// much.
struct OpAgreement {
  std::string fault;

  /// Whether nothing is wrong.
  explicit operator bool() const { return fault.empty(); }
  TAPEDECK_EXPORT friend std::ostream& operator<<(std::ostream& out, const OpAgreement& a);
};

/// Checks an op by its samples, up to the first fault. What the op throws otherwise passes through.
///
/// Outputs have the specs that the op infers, and the expected values: within 1e-13, or 1e-6 where they are
/// f32 or c64, relative to the value, or within the sample's floor.
///
/// The derivative agrees with differences, as in check_gradients. By Rule::none() there is no gradient; by
/// Rule::undefined() asking for it throws GradientError. Several cotangents at once, stacked, give the
/// gradients of each, unless the rule says that it does not stack.
///
/// In f32 the outputs and gradients are those in f64 within 2e-5 and 1e-4 of the largest element, unless the
/// op throws DTypeError.
TAPEDECK_EXPORT OpAgreement check_op(const Op& op, std::span<const Sample> samples,
                                     const OpCheckOptions& options = {});

}   // namespace tapedeck
