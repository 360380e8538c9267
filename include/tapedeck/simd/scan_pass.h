// The arguments of the loops of a user's map_scan. The loops are compiled in the user's program and run by
// the library; therefore the types here do not depend on the width of vectors.
#pragma once
#include <cstdint>

namespace tapedeck::kernels {

/// A recurrence over time of independent lanes. Operands and results with a time axis have `lanes` elements
/// for each step.
template <class T> struct ScanPass {
  std::int64_t steps, lanes;
  std::int64_t begin, end;   // the lanes to run
  /// Carries, xs and parameters; then the cotangents of the final carries and outputs, or the tangents of the
  /// operands. A null pointer stands for zeros, for cotangents and tangents only.
  const T* const* in;
  /// Final carries and outputs, or their tangents; or the gradients of the operands. Null: not requested.
  T* const* out;
  /// The gradient stores the carries before every `every`-th step, and the carries of all steps of one
  /// segment between two of these.
  std::int64_t every;
  bool reverse;   // iterate from the last step to the first
  /// The carries before each step are results of the recurrence, and operands of its gradient, after all
  /// others. Then the gradient does not recompute carries.
  bool keeps;
};
template <class T> using ScanLoop = void (*)(const void* f, const ScanPass<T>& pass);
struct ScanLoops {
  ScanLoop<float> f32;
  ScanLoop<double> f64;
};

}   // namespace tapedeck::kernels
