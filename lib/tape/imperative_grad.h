// The engine: from a tape, targets and sources to gradients.
#pragma once
#include <functional>

#include "tape/tape.h"

namespace tapedeck {

/// What the engine needs of the things that it adds up, so that sparse gradients live beside dense ones.
struct VSpace {
  Gradient (*aggregate)(std::span<Gradient> terms);   // their sum; the terms are used up
  std::int64_t (*nbytes)(const Gradient& term);
  Tensor (*zeros)(const Spec&);
  Tensor (*ones)(const Spec&);
};
extern const VSpace kGradients;

/// Takes the gradient, which may be none, of a source to which nothing more comes, while the pass goes on.
using Arrival = std::function<void(std::size_t source, const Gradient& gradient)>;

/// How a pass over a tape may differ from that of a plain gradient.
struct Pass {
  std::span<const Tensor> stops =
      {};   // gradients come to these tensors, but not to what they were computed from
  std::int64_t directions =
      0;   // cotangents that go through at once, along a leading axis of every gradient; 0: one, without it
  bool keep_entries = false;          // of a tape that is used up, for another pass
  const Arrival* arrival = nullptr;   // called once for each watched source that an op of the pass has taken
};

/// For each source, the gradient of the sum of the targets, or none. output_gradients: empty, or one for each
/// target, where an undefined tensor stands for ones. Takes the entries of a tape that is used up, and leaves
/// those of another.
std::vector<Gradient> imperative_grad(const VSpace& space, Tape& tape, std::span<const Tensor> targets,
                                      std::span<const Tensor> sources, const GradientOptions& options,
                                      const Pass& pass = {});

/// GradientTape::gradient().
std::vector<Gradient> differentiate(Tape& tape, const Targets& targets, const Sources& sources,
                                    const GradientOptions& options, const Arrival& arrival = {});

/// What stands for sources or targets on a tape. Throws ArgumentError where one is undefined, and warns of
/// those without a derivative.
std::vector<Tensor> tensors_of(const Sources& sources, std::string_view what);

/// Throws GradientError where the tape is used up.
void require_unused(const Tape& tape);
/// While it lives, a tape is differentiated; one that is not persistent is then used up.
class TapeUse {
 public:
  explicit TapeUse(Tape& tape) : tape_(tape) {
    if (!tape.options().persistent) tape.consume();
  }
  ~TapeUse() {
    if (tape_.used) tape_.free_entries();
  }
  TapeUse(const TapeUse&) = delete;

 private:
  Tape& tape_;
};

}   // namespace tapedeck
