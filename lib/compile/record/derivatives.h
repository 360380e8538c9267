// Derivatives of a function that is recorded as one op: what they are taken of, and the functions that
// compute them.
#pragma once
#include "compile/record/inner.h"

namespace tapedeck::compiled {

/// The sources of the derivatives of a function: some of its operands, and what it captures; and which of its
/// results have cotangents.
struct Differentiated {
  std::size_t operands = 0;               // the number of operands
  std::vector<std::size_t> wanted = {};   // the indices of those that recorders follow
  CapturedSources captured = {};
  std::vector<bool> trainable = {};   // by defined result: whether it has a cotangent

  std::size_t sources() const { return wanted.size() + captured.size(); }

  /// Runs f. in: the operands; the cotangents of the results that have one; then, if there are more, for each
  /// captured source a tensor that is the first term of its gradient. Adds the results of f to y, and returns
  /// the gradients of the sources.
  std::vector<Gradient> gradients(const Function& f, std::span<const Tensor> in, UnconnectedGradients mode,
                                  Tensors& y) const;
  /// Runs f. in: the operands, then the tangents of the sources in `given`. Returns the tangents of the
  /// defined results; none for those that have no cotangent.
  Tensors tangents(const Function& f, std::span<const std::size_t> given, std::span<const Tensor> in,
                   UnconnectedGradients mode) const;

 private:
  Tensors distinct(std::span<const Tensor> in) const;
};

}   // namespace tapedeck::compiled
