// ForwardAccumulator: pushes tangents forward through what this thread computes.
#pragma once
#include "tapedeck/gradient.h"

namespace tapedeck {

class Forward;

/// While it lives, every op whose inputs have tangents gives its outputs theirs, at once. Accumulators and tapes nest: the
/// computation of a tangent is seen by those around it. It stays on the thread that made it.
class TAPEDECK_EXPORT ForwardAccumulator {
 public:
  /// tangent has primal's dtype and shape, else DTypeError or ShapeError.
  [[nodiscard]] ForwardAccumulator(const Tensor& primal, const Tensor& tangent);
  /// The same for several primals. Throws ArgumentError where the lists differ in length or a primal is given twice.
  [[nodiscard]] ForwardAccumulator(std::span<const Tensor> primals, std::span<const Tensor> tangents);
  [[nodiscard]] ForwardAccumulator(std::initializer_list<Tensor> primals, std::initializer_list<Tensor> tangents)
      : ForwardAccumulator(std::span<const Tensor>(primals.begin(), primals.size()), std::span<const Tensor>(tangents.begin(), tangents.size())) {}
  ~ForwardAccumulator();
  ForwardAccumulator(const ForwardAccumulator&) = delete;
  ForwardAccumulator& operator=(const ForwardAccumulator&) = delete;

  /// The tangent of x; undefined where x does not depend on the primal.
  Tensor jvp(const Tensor& x) const;

 private:
  std::unique_ptr<Forward> forward_;
};

}  // namespace tapedeck
