// What the loops of a user's map_scan are given. They are compiled in the user's program and run by the
// library: the types here do not depend on the width of vectors.
#pragma once
#include <cstdint>

namespace tapedeck::kernels {

/// A recurrence over time of independent lanes. Operands and results that have an axis of time have `lanes`
/// elements for each step.
template <class T> struct ScanPass {
  std::int64_t steps, lanes;
  std::int64_t begin, end;   // the lanes to run
  /// Carries, xs and parameters; then the cotangents of the final carries and outputs, or the tangents of the
  /// operands. Null: zeros, of cotangents and tangents.
  const T* const* in;
  /// Final carries and outputs, or their tangents; or the gradients of the operands. Null: not wanted.
  T* const* out;
  /// The gradient keeps the carries of every so many steps, and those of all steps between two of them.
  std::int64_t every;
  bool reverse;   // from the last step to the first
  /// The carries before each step are results of the recurrence, and operands of its gradient, behind all
  /// others. Then the gradient computes no carries.
  bool keeps;
};
template <class T> using ScanLoop = void (*)(const void* f, const ScanPass<T>& pass);
struct ScanLoops {
  ScanLoop<float> f32;
  ScanLoop<double> f64;
};

}   // namespace tapedeck::kernels
