// Real and imaginary parts, conjugates, magnitudes and angles, element by element.
#include "kernels/elementwise/complex_parts.h"

#include "core/bytes.h"
#include "core/parallel.h"
#include "core/visit.h"
#include "kernels/elementwise/limits.h"

namespace tapedeck::kernels {
namespace {

// y[i] = f(z[i])
template <class F> void each(const Tensor& z, Tensor& y, F f) {
  visit_complex(z.dtype(), [&]<class T>(T) {
    const T* in = elements<T>(z);
    auto* out = elements<std::invoke_result_t<F, T>>(y);
    parallel_for(z.size(), kComplexPartsCut, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i)
        out[i] = f(in[i]);
    });
  });
}

}   // namespace

void join_parts(const Tensor& re, const Tensor& im, Tensor& z) {
  visit_complex(z.dtype(), [&]<class T>(T) {
    const auto* x = elements<typename T::value_type>(re);
    const auto* y = elements<typename T::value_type>(im);
    T* out = elements<T>(z);
    parallel_for(z.size(), kComplexPartsCut, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i)
        out[i] = {x[i], y[i]};
    });
  });
}

void real_parts(const Tensor& z, Tensor& y) {
  each(z, y, [](auto v) { return v.real(); });
}
void imaginary_parts(const Tensor& z, Tensor& y) {
  each(z, y, [](auto v) { return v.imag(); });
}
void conjugates(const Tensor& z, Tensor& y) {
  each(z, y, [](auto v) { return std::conj(v); });
}
void magnitudes(const Tensor& z, Tensor& y) {
  each(z, y, [](auto v) { return std::abs(v); });
}
void angles(const Tensor& z, Tensor& y) {
  each(z, y, [](auto v) { return std::arg(v); });
}

}   // namespace tapedeck::kernels
