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
  /// Constructs an accumulator for several primals; all other tensors have zero tangents. Throws
  /// ArgumentError if the lists differ in length or a primal is given twice, and ShapeError if stacked
  /// tangents differ in their number of directions.
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

  /// Pause and resume the propagation of tangents; resuming makes this the innermost accumulator. Throw
  /// GradientError if the accumulator is already stopped or already active.
  void stop();
  void start();
  /// Whether the accumulator is propagating tangents.
  bool recording() const;

  /// The tangent of x, with the additional first axis if stacked; none or zeros if x does not depend on a
  /// primal. For several tensors in a list, array, pair or tuple, returns their tangents in a list, array,
  /// pair or tuple. This is a lookup, not a computation, and may be done at any time. The tangent of a
  /// variable is the one passed to the constructor or watch(). Throws ArgumentError if x is undefined or
  /// `unconnected` is not a value of its enum.
  template <detail::AnySources X = Sources> typename detail::GradientsOf<X>::Type jvp(
      const X& x, UnconnectedGradients unconnected = UnconnectedGradients::none) const {
    if constexpr (detail::OneSource<X>)
      return jvp_of(x, unconnected);
    else
      return detail::in_form_of<X>(jvps_of(detail::sources_of(x), unconnected));
  }
  /// jvp() for several tensors without a list: auto [da, db] = forward.jvp(a, b).
  template <detail::OneSource A, detail::OneSource B, detail::OneSource... More>
  std::array<Gradient, sizeof...(More) + 2> jvp(const A& a, const B& b, const More&... more) const {
    return jvp(std::array{Source(a), Source(b), Source(more)...});
  }

 private:
  Gradient jvp_of(const Source& x, UnconnectedGradients unconnected) const;
  std::vector<Gradient> jvps_of(const Sources& xs, UnconnectedGradients unconnected) const;

  std::unique_ptr<Forward> forward_;
};

}   // namespace tapedeck
