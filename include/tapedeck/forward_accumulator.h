// ForwardAccumulator: computes tangents (Jacobian-vector products) alongside the ops of this thread.
#pragma once
#include "tapedeck/gradient_tape.h"

namespace tapedeck {

class Forward;

/// Options of a ForwardAccumulator.
struct ForwardOptions {
  /// Every tangent has an additional first axis, which enumerates directions; all are computed in one pass.
  bool stacked = false;
};

/// From construction to destruction, every op whose inputs have tangents computes the tangents of its outputs
/// immediately. Accumulators and tapes nest in order of construction: the computation of a tangent is
/// recorded by those constructed before the accumulator and by none constructed after it. It does not keep
/// primals alive; a tangent is released together with its tensor. Use it only on the thread that created it.
class TAPEDECK_EXPORT ForwardAccumulator {
 public:
  /// Throws DTypeError or ShapeError unless `tangent` has the dtype and shape of `primal`. A variable as a
  /// primal stands for all its reads. Integer and bool tensors have no derivative: they only cause a warning.
  [[nodiscard]] ForwardAccumulator(const Source& primal, const Tensor& tangent, ForwardOptions options = {});
  /// The same for several primals; all other tensors have zero tangents. Throws ArgumentError if the lists
  /// differ in length or a primal is given twice, and ShapeError if stacked tangents differ in their number
  /// of directions.
  [[nodiscard]] ForwardAccumulator(const Sources& primals, std::span<const Tensor> tangents,
                                   ForwardOptions options = {});
  [[nodiscard]] ForwardAccumulator(const Sources& primals, std::initializer_list<Tensor> tangents,
                                   ForwardOptions options = {})
      : ForwardAccumulator(primals, std::span<const Tensor>(tangents.begin(), tangents.size()), options) {}
  ~ForwardAccumulator();
  ForwardAccumulator(const ForwardAccumulator&) = delete;
  ForwardAccumulator& operator=(const ForwardAccumulator&) = delete;

  /// Adds a primal. If it already has a tangent, the tangents are added. Throws as the constructor does.
  void watch(const Source& primal, const Tensor& tangent);

  /// Pause and resume the propagation of tangents; resuming makes it the innermost accumulator. Throw
  /// GradientError if it is already stopped or already active.
  void stop();
  void start();
  /// Whether it propagates tangents now.
  bool recording() const;

  /// The tangent of x, with the additional first axis if stacked; undefined or zeros if x does not depend on
  /// a primal. This is a lookup, not a computation, and may be done at any time. For a variable it is the
  /// tangent that was given. Throws ArgumentError if x is undefined or `unconnected` is not a value of its
  /// enum.
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
