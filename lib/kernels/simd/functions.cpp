// Elementary functions of up to 64 bytes of elements, padded to whole SIMD vectors, for users' maps.
#include "tapedeck/simd/functions.h"

#include <algorithm>

#include "kernels/simd/simd.h"
#include "kernels/simd/sleef.h"

namespace tapedeck::kernels {
namespace {

template <class B> B value_of(VectorFunction f, const B& x, const B& y) {
  using enum VectorFunction;
  switch (f) {
    case cbrt:
      return tapedeck::cbrt(x);
    case log2:
      return tapedeck::log2(x);
    case log10:
      return tapedeck::log10(x);
    case pow:
      return tapedeck::pow(x, y);
    case asin:
      return tapedeck::asin(x);
    case acos:
      return tapedeck::acos(x);
    case atan:
      return tapedeck::atan(x);
    case atan2:
      return tapedeck::atan2(x, y);
    case hypot:
      return tapedeck::hypot(x, y);
    case asinh:
      return tapedeck::asinh(x);
    case acosh:
      return tapedeck::acosh(x);
    case atanh:
      return tapedeck::atanh(x);
    case erf:
      return tapedeck::erf(x);
    case erfc:
      break;
  }
  return tapedeck::erfc(x);
}

template <class T> void apply_to(VectorFunction f, T* x, const T* y, int n) {
  alignas(64) T a[kGroup<T>] = {}, b[kGroup<T>] = {};
  std::copy(x, x + n, a);
  if (y) std::copy(y, y + n, b);
  for (std::int64_t i = 0; i < n; i += kWidth<T>)
    value_of(f, Batch<T>::load_aligned(a + i), Batch<T>::load_aligned(b + i)).store_aligned(a + i);
  std::copy(a, a + n, x);
}

}   // namespace

void apply(VectorFunction f, float* x, const float* y, int n) { apply_to(f, x, y, n); }
void apply(VectorFunction f, double* x, const double* y, int n) { apply_to(f, x, y, n); }

}   // namespace tapedeck::kernels
