// The engine: from a tape, targets and sources to gradients.
#pragma once
#include "autodiff/tape.h"

namespace tapedeck {

/// What the engine needs of the things that it adds up, so that sparse gradients live beside dense ones.
struct VSpace {
  Gradient (*aggregate)(std::span<Gradient> terms);        // their sum; the terms are used up
  std::int64_t (*nbytes)(const Gradient& term);
  Tensor (*zeros)(const Spec&);
  Tensor (*ones)(const Spec&);
};
extern const VSpace kGradients;

/// For each source, the gradient of the sum of the targets, or none. output_gradients: empty, or one for each target, where
/// an undefined tensor stands for ones. Takes the entries of a tape that is used up, and leaves those of another.
std::vector<Gradient> imperative_grad(const VSpace& space, Tape& tape, std::span<const Tensor> targets, std::span<const Tensor> sources,
                                      const GradientOptions& options);

}  // namespace tapedeck
