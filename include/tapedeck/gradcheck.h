// Tests of user-defined functions and ops: compares derivatives with central differences, and an op with
// samples. Opt-in: not included in tapedeck.h.
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

/// A function of tensors, made of ops. Inputs of f32, f64, c64 and c128 are varied, others are held constant.
using TensorFunction = std::function<Tensor(const std::vector<Tensor>&)>;

/// The derivative with respect to one number: an element of an input, or the real or imaginary part of a
/// complex element.
struct ElementDerivative {
  int input = 0;   // index of the input; after the inputs, of second order, comes the cotangent
  std::vector<std::int64_t> index;   // the index of the element
  bool imaginary = false;            // whether it is the imaginary part
  Spec spec;                         // the spec of the input
  double analytic = 0, numeric = 0;
};

/// The results of the derivative and of the differences, reduced to one number each. Converts to true if they
/// agree; NaN never does. Prints both numbers and, if they disagree, an element of an input for which they
/// disagree.
struct Agreement {
  std::string_view what;   // "vjp", "jvp", "vjp of vjp", "jvp of vjp"
  double analytic = 0, numeric = 0, tolerance = 0;
  std::optional<ElementDerivative> element = {};   // set if they disagree

  /// Whether analytic and numeric differ by at most tolerance · (1 + |numeric|).
  explicit operator bool() const {
    return std::abs(analytic - numeric) <= tolerance * (1 + std::abs(numeric));
  }
  TAPEDECK_EXPORT friend std::ostream& operator<<(std::ostream& out, const Agreement& a);
};

/// Options of the comparison of derivatives with differences.
struct GradcheckOptions {
  double step = 0;          // step of the differences; 0: 1e-5, or 1e-2 if a tensor is f32 or c64
  double tolerance = 0;     // relative to 1 + |numeric|; 0: 1e-6, or 1e-3 if a tensor is f32 or c64
  std::uint64_t seed = 1;   // seed of the random directions
  std::uint64_t held = 0;   // bit i: input i is held constant, whatever its dtype
};

/// Checks reverse mode: a GradientTape over f.
///
/// check_vjp, check_jvp and check_gradients compare ⟨dy, f'(x) v⟩ in a random direction v, with a random
/// cotangent dy, both within [-1, 1], with ⟨dy, f(x + step·v) - f(x - step·v)⟩ / (2·step), which calls only
/// the ops of f. The functions must be smooth within a step of x. They throw DTypeError if no input is f32,
/// f64, c64 or c128, or if the result is not, and ShapeError if a derivative differs in shape from its
/// tensor; exceptions of f are passed on. If the two disagree, the direction is halved until one element is
/// left, which takes about log2(elements of x) further calls of f. Complex elements are pairs of numbers,
/// each of which is varied on its own.
TAPEDECK_EXPORT Agreement check_vjp(const TensorFunction& f, const std::vector<Tensor>& x,
                                    const GradcheckOptions& options = {});
/// Checks forward mode: a ForwardAccumulator over f for one input after the other.
TAPEDECK_EXPORT Agreement check_jvp(const TensorFunction& f, const std::vector<Tensor>& x,
                                    const GradcheckOptions& options = {});
/// Checks both modes, and both over the vjp as a function of x and dy, that is, second derivatives. Returns
/// the first check that disagrees, or else the last one.
TAPEDECK_EXPORT Agreement check_gradients(const TensorFunction& f, const std::vector<Tensor>& x,
                                          const GradcheckOptions& options = {});

/// An op as a TensorFunction. Returns its output or, concatenated, its outputs that have derivatives; complex
/// if one of them is.
TAPEDECK_EXPORT TensorFunction as_function(const Op& op, const OwnedAttrs& attrs = {});

/// Inputs and attributes with which an op is checked, and the expected outputs.
struct Sample {
  std::vector<Tensor> inputs;
  OwnedAttrs attrs = {};
  /// The outputs from an independent source, and that source: a NumPy, SciPy or torch expression of the
  /// inputs by the op's argument names, or "by hand".
  std::vector<Tensor> expected = {};
  std::string_view oracle = {};
  /// The accepted absolute error of an output, however small its value: if terms cancel, the error is as
  /// large as that of the terms.
  double floor = 0;
};

/// Options of check_op.
struct OpCheckOptions {
  bool differences = true;   // false: the derivative is not compared with differences
  /// Options for the derivative. An input that is held must have no gradient.
  GradcheckOptions gradients = {};
};

/// The result of check_op. Converts to true if nothing is wrong; otherwise its text names the sample, the
/// fault and its size.
struct OpAgreement {
  std::string fault;

  /// Whether nothing is wrong.
  explicit operator bool() const { return fault.empty(); }
  TAPEDECK_EXPORT friend std::ostream& operator<<(std::ostream& out, const OpAgreement& a);
};

/// Checks an op by its samples, up to the first fault. An exception that a check does not expect is a fault.
///
/// Outputs have the specs that the op infers, and the expected values: within 1e-13, or 1e-6 for f32 or c64,
/// relative to the value, or within the sample's floor.
///
/// The derivative agrees with differences, as in check_gradients. With Rule::none() there is no gradient;
/// with Rule::undefined(), requesting it throws GradientError. Several stacked cotangents yield the
/// gradients of each, unless the rule states that it does not stack.
///
/// The outputs and gradients in f32 agree with those in f64 within 2e-5 and 1e-4 of the largest element,
/// unless the op throws DTypeError.
TAPEDECK_EXPORT OpAgreement check_op(const Op& op, std::span<const Sample> samples,
                                     const OpCheckOptions& options = {});

}   // namespace tapedeck
