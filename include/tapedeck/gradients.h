// Derivatives without handling a tape: of what a Recording has seen.
#pragma once
#include "tapedeck/gradient_tape.h"

namespace tapedeck {

// Of what the innermost Recording, or other persistent tape, of this thread has seen; GradientError where there is none.
// What these compute is recorded in turn, so that derivatives of any order follow.

/// The gradient of the sum of ys for each of xs, none where there is no path; `output_gradients` is TensorFlow's grad_ys.
/// Throws what GradientTape::gradient throws, and DTypeError for a complex y without an output gradient.
TAPEDECK_EXPORT std::vector<Gradient> gradients(const Targets& ys, const Sources& xs, const GradientOptions& options = {});
/// For each of xs the matrix of second derivatives of the sum of ys, of shape x.shape + x.shape; undefined where ys or their
/// gradient does not depend on x, or zeros.
TAPEDECK_EXPORT std::vector<Tensor> hessians(const Targets& ys, const Sources& xs, const JacobianOptions& options = {});
/// The product of the matrix of second derivatives of the sum of ys, in all xs together, with the vector v, which is a constant
/// and has a part for each of xs. Throws ArgumentError where the lists differ in length.
TAPEDECK_EXPORT std::vector<Gradient> hessian_vector_product(const Targets& ys, const Sources& xs, std::span<const Tensor> v);

}  // namespace tapedeck
