// TensorState: the state of one tensor in a backward pass, with the gradient terms received so far.
#pragma once
#include <vector>

#include "tapedeck/gradient_tape.h"

namespace tapedeck {

struct VSpace;

struct TensorState {
  std::int32_t usages = 0;            // uses by ops of the pass whose rules have not run yet
  std::uint32_t further : 26 = 0;     // the number of terms after the first
  std::uint32_t narrow : 2 = 0;       // the sum so far is in f32, to be rounded to f16 (1) or bf16 (2)
  std::uint32_t is_source : 1 = 0;    // it keeps its gradient
  std::uint32_t stopped : 1 = 0;      // its producer receives no gradient
  std::uint32_t left_out : 1 = 0;     // it receives no gradient in this pass
  std::uint32_t gets_zeros : 1 = 0;   // by an op that was left out, since its derivative is zeros
  Gradient first;                     // the only term of most tensors
  std::vector<Gradient> more;

  /// Adds a term. The options decide whether terms are kept to be summed at once, or are summed early.
  void add_term(Gradient&& g, const VSpace& space, const GradientOptions& options) {
    if (first.defined()) [[unlikely]]
      add_further(std::move(g), space, options);
    else
      first = std::move(g);
  }
  /// Replaces the terms by their sum, and returns it.
  const Gradient& sum_terms(const VSpace& space) {
    if (!more.empty() || narrow) [[unlikely]]
      finish(space);
    return first;
  }

 private:
  // Out of line, so that the common case is small.
  void add_further(Gradient&& g, const VSpace& space, const GradientOptions& options);
  void sum_all(const VSpace& space);
  void sum_early(const VSpace& space);
  void finish(const VSpace& space);
  void sum_pairs(const VSpace& space);
};

}   // namespace tapedeck
