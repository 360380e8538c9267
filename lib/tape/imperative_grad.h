// The engine: from a tape, targets and sources to gradients.
#pragma once
#include <functional>

#include "tape/tape.h"

namespace tapedeck {

/// How gradients are summed and made: the engine itself does not know dense from sparse ones.
struct VSpace {
  Gradient (*aggregate)(std::span<Gradient> terms);   // their sum; the terms are used up
  std::int64_t (*nbytes)(const Gradient& term);
  Tensor (*zeros)(const Spec&);
  Tensor (*ones)(const Spec&);
};
extern const VSpace kGradients;

/// Takes the gradient of a source, which may be none, when it is final, while the pass goes on.
using Arrival = std::function<void(std::size_t source, const Gradient& gradient)>;

/// How a pass over a tape may differ from that of a plain gradient.
struct Pass {
  /// Tensors that get gradients and pass none on to their producers.
  std::span<const Tensor> stops = {};
  /// The number of cotangents in one pass, along a leading axis of every gradient. 0: one, without that axis.
  std::int64_t directions = 0;
  /// Of a tape that is used up: another pass follows.
  bool keep_entries = false;
  /// `arrival` fires when a source's gradient is final, once for each watched source that an op of the pass
  /// takes.
  const Arrival* arrival = nullptr;
};

/// For each source, the gradient of the sum of the targets, or none. output_gradients: empty, or one for each
/// target, where an undefined tensor means ones. Uses up the entries of a tape that is used up, and only
/// those.
std::vector<Gradient> imperative_grad(const VSpace& space, Tape& tape, std::span<const Tensor> targets,
                                      std::span<const Tensor> sources, const GradientOptions& options,
                                      const Pass& pass = {});

/// GradientTape::gradient().
std::vector<Gradient> differentiate(Tape& tape, const Targets& targets, const Sources& sources,
                                    const GradientOptions& options, const Arrival& arrival = {});

/// Whether ops on the tape lead from the source to the target.
bool is_path(Tape& tape, const Tensor& target, const Tensor& source);

/// A none that says why: what the tape knows of the source and the targets.
Gradient explained_none(const char* what, const Tape& tape, std::span<const Tensor> targets,
                        const Source& source);

/// The tensors that a tape tracks for sources or targets. Throws ArgumentError where one is undefined, and
/// warns of those without a derivative.
std::vector<Tensor> tensors_of(const Sources& sources, std::string_view what);

/// Throws GradientError where the tape is used up, or belongs to another thread.
void require_usable(const Tape& tape);
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
