// max, min, argmax and argmin.
#include <algorithm>
#include <memory>

#include "core/visit.h"
#include "kernels/reduce/fold_axes.h"
#include "kernels/reduce/reduce.h"

namespace tapedeck::kernels {
namespace {

template <class Best, class T> std::int64_t arg_row(const T* x, std::int64_t n) {
  const T best = fold_block<Best>(x, n);
  const bool is_nan = best != best;   // xsimd's != is false for NaN
  std::int64_t i = 0;
  for (; i + kWidth<T> <= n; i += kWidth<T>)
    if (const auto v = Batch<T>::load_unaligned(x + i); xsimd::any(is_nan ? ~(v == v) : v == Batch<T>(best)))
      break;
  return std::find_if(x + i, x + n, [&](T v) { return is_nan ? v != v : v == best; }) - x;
}

template <class Best, class T>
void arg_columns(const T* x, std::int64_t n, std::int64_t width, std::int64_t* y) {
  const auto best = std::make_unique_for_overwrite<T[]>(static_cast<std::size_t>(width));
  std::copy_n(x, width, best.get());
  std::fill_n(y, width, 0);
  for (std::int64_t r = 1; r < n; ++r)
    for (std::int64_t j = 0; j < width; ++j)
      if (T v = x[r * width + j], &b = best[static_cast<std::size_t>(j)];
          Best::better(v, b) || (v != v && b == b)) {
        b = v;
        y[j] = r;
      }
}

template <class Best> void extreme(const Tensor& x, unsigned axes, Tensor& y) {
  rounding_once(y, [&](Tensor& best) {
    visit(best.dtype(), [&](auto one) {
      using T = decltype(one);
      if constexpr (!std::is_same_v<T, bool>) fold<Best>(x, axes, elements<T>(best), best.size());
    });
  });
}

template <class Best> void arg_extreme(const Tensor& x, int axis, Tensor& y) {
  if (y.size() == 0) return;
  std::int64_t inner = 1;
  for (int d = x.ndim() + axis + 1; d < x.ndim(); ++d)
    inner *= x.shape()[d];
  const std::int64_t n = x.shape()[x.ndim() + axis];
  std::int64_t* out = elements<std::int64_t>(y);
  visit(x.dtype(), [&](auto one) {
    using T = decltype(one);
    if constexpr (!std::is_same_v<T, bool>) {
      const T* in = elements<T>(x);
      for_each(y.size() / inner, n * inner, [&](std::int64_t i) {
        if (inner == 1)
          out[i] = arg_row<Best>(in + i * n, n);
        else
          arg_columns<Best>(in + i * n * inner, n, inner, out + i * inner);
      });
    }
  });
}

}   // namespace

void max(const Tensor& x, unsigned axes, Tensor& y) { extreme<Max>(x, axes, y); }
void min(const Tensor& x, unsigned axes, Tensor& y) { extreme<Min>(x, axes, y); }
void argmax(const Tensor& x, int axis, Tensor& y) { arg_extreme<Max>(x, axis, y); }
void argmin(const Tensor& x, int axis, Tensor& y) { arg_extreme<Min>(x, axis, y); }

}   // namespace tapedeck::kernels
