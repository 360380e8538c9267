// ForwardAccumulator: pushes tangents forward through what this thread computes.
#pragma once
#include "tapedeck/gradient_tape.h"

namespace tapedeck {

class Forward;

struct ForwardOptions {
  /// Every tangent has one axis more than its primal, in front: so many directions, all pushed forward in one
  /// pass.
  bool stacked = false;
};

/// From its construction to its end every op whose inputs have tangents gives its outputs theirs, at once.
/// Accumulators and tapes nest in the order in which they begin: the computation of a tangent is seen by
/// those around the accumulator, and by none inside it. It holds no primal, and a tangent ends with the
/// tensor that it belongs to. It stays on the thread that made it.
class TAPEDECK_EXPORT ForwardAccumulator {
 public:
  /// tangent has primal's dtype and shape, else DTypeError or ShapeError. A variable as a primal stands for
  /// all its reads. Integers and bools have no derivative and only cause a warning.
  [[nodiscard]] ForwardAccumulator(const Source& primal, const Tensor& tangent, ForwardOptions options = {});
  /// The same for several primals; what is not among them has the tangent zero. Throws ArgumentError where
  /// the lists differ in length or a primal is given twice, ShapeError where stacks differ in their number of
  /// directions.
  [[nodiscard]] ForwardAccumulator(const Sources& primals, std::span<const Tensor> tangents,
                                   ForwardOptions options = {});
  [[nodiscard]] ForwardAccumulator(const Sources& primals, std::initializer_list<Tensor> tangents,
                                   ForwardOptions options = {})
      : ForwardAccumulator(primals, std::span<const Tensor>(tangents.begin(), tangents.size()), options) {}
  ~ForwardAccumulator();
  ForwardAccumulator(const ForwardAccumulator&) = delete;
  ForwardAccumulator& operator=(const ForwardAccumulator&) = delete;

  /// A further primal. The tangents of one that has a tangent already add up. Throws as the constructor does.
  void watch(const Source& primal, const Tensor& tangent);

  /// Push no more tangents, and go on with it as the innermost. Throw GradientError where it is stopped, or
  /// pushes, already.
  void stop();
  void start();
  bool recording() const;

  /// The tangent of x, stacked where the accumulator is; where x does not depend on a primal, undefined or
  /// zeros. It is looked up, not computed, at any time. Of a variable it is the tangent that was given.
  /// Throws ArgumentError for an undefined x, or where `unconnected` is neither of its values.
  template <class X> Tensor jvp(const X& x, UnconnectedGradients unconnected = UnconnectedGradients::none)
      const requires std::convertible_to<const X&, Source> {
    return jvp_of(x, unconnected);
  }
  /// The same for several tensors: auto [da, db] = forward.jvp(a, b).
  template <class A, class B, class... X>
  std::array<Tensor, sizeof...(X) + 2> jvp(const A& a, const B& b, const X&... more)
      const requires std::convertible_to<const A&, Source> && std::convertible_to<const B&, Source> {
    return {jvp_of(a, UnconnectedGradients::none), jvp_of(b, UnconnectedGradients::none),
            jvp_of(more, UnconnectedGradients::none)...};
  }
  std::vector<Tensor> jvp(const Sources& xs,
                          UnconnectedGradients unconnected = UnconnectedGradients::none) const;

 private:
  Tensor jvp_of(const Source& x, UnconnectedGradients unconnected) const;
  std::unique_ptr<Forward> forward_;
};

}   // namespace tapedeck
