// The engine: from a tape, targets and sources to gradients.
#pragma once
#include <functional>

#include "tape/tape.h"

namespace tapedeck {

/// How gradients are created and summed; the engine itself does not distinguish dense and sparse ones.
struct VSpace {
  Gradient (*aggregate)(std::span<Gradient> terms);   // returns the sum and consumes the terms
  std::int64_t (*nbytes)(const Gradient& term);
  Tensor (*zeros)(const Spec&);
  Tensor (*ones)(const Spec&);
};
extern const VSpace kGradients;

/// Called during the pass with the final gradient of a source, which may be none.
using Arrival = std::function<void(std::size_t source, const Gradient& gradient)>;

/// The options of a pass beyond those of gradient().
struct PassOptions {
  /// Tensors that receive gradients, but pass none on to their producers.
  std::span<const Tensor> stops = {};
  /// The number of cotangents in this pass, which is the extent of a leading axis of every gradient. 0: a
  /// single cotangent, without that axis.
  std::int64_t directions = 0;
  /// Keeps the entries of a consumed tape, since another pass follows.
  bool keep_entries = false;
  /// Called when a source's gradient is final, once for each watched source that is an input of an op of the
  /// pass.
  const Arrival* arrival = nullptr;
};

/// Returns, for each source, the gradient of the sum of the targets, or none. options.output_gradients is
/// empty, or has one for each target, where an undefined one stands for ones. Releases the entries of a tape
/// that has been consumed (Tape::used), and only of such a tape.
std::vector<Gradient> imperative_grad(const VSpace& space, Tape& tape, std::span<const Tensor> targets,
                                      std::span<const Tensor> sources, const GradientOptions& options,
                                      const PassOptions& pass = {});

/// The implementation of GradientTape::gradient().
std::vector<Gradient> differentiate(Tape& tape, const Targets& targets, const Sources& sources,
                                    const GradientOptions& options, const Arrival& arrival = {});

/// Whether ops on the tape lead from the source to the target.
bool is_path(Tape& tape, const Tensor& target, const Tensor& source);

/// A none that says why: what the tape knows of the source and the targets.
Gradient explained_none(const char* what, const Tape& tape, std::span<const Tensor> targets,
                        const Source& source);

/// The tensors that a tape tracks for the given sources or targets. Throws ArgumentError if one is undefined;
/// warns if the dtype of one has no derivative.
std::vector<Tensor> tensors_of(const Sources& sources, std::string_view what);

/// Throws GradientError if the tape was consumed, or belongs to another thread.
void require_usable(const Tape& tape, std::string_view name = "gradient");
/// Scope in which a tape is differentiated. Consumes the tape at its beginning, unless it is persistent, and
/// frees the entries of a consumed tape at its end.
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
