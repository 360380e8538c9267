// Sums, products, means and norms, as folds (fold_axes.h). Norms whose squares overflow or
// underflow are computed from scaled elements.
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstddef>
#include <memory>

#include "core/bytes.h"
#include "core/convert.h"
#include "core/storage.h"
#include "core/visit.h"
#include "kernels/reduce/fold_axes.h"
#include "kernels/reduce/reduce.h"
#include "kernels/simd/lanes.h"

namespace tapedeck::kernels {
namespace {

// Sums and products. Reduces integers as unsigned, whose overflow is defined.
template <class Fold> void fold_numbers(const Tensor& x, unsigned axes, const Results& y) {
  switch (y.dtype) {
    case DType::f32:
      return fold<Fold>(x, axes, y.as<float>(), y.size);
    case DType::f64:
      return fold<Fold>(x, axes, y.as<double>(), y.size);
    case DType::c64:
      return fold<Fold>(x, axes, y.as<std::complex<float>>(), y.size);
    case DType::c128:
      return fold<Fold>(x, axes, y.as<std::complex<double>>(), y.size);
    case DType::i32:
      return fold<Fold>(x, axes, y.as<std::uint32_t>(), y.size);
    default:
      return fold<Fold>(x, axes, y.as<std::uint64_t>(), y.size);
  }
}

/// too_large: whether the squares under the norm's root have overflowed. too_small: whether they may have
/// lost digits by underflow.
template <class T> bool too_large(T norm) { return std::isinf(norm); }
template <class T> bool too_small(T norm) {
  return norm * norm < std::numeric_limits<T>::min() / std::numeric_limits<T>::epsilon();
}
template <class T> constexpr T power_of_two(int n) {
  T power = 1;
  for (; n > 0; --n)
    power *= 2;
  for (; n < 0; ++n)
    power /= 2;
  return power;
}

/// Maps x to (2ⁿ x)².
template <int n, class T> struct ScaledSquare {
  template <class V> V operator()(const V& x) const {
    const V scaled = x * V(power_of_two<T>(n));
    return scaled * scaled;
  }
};
/// Recomputes those norms in y for which f returns true, from the squares of 2ⁿ x.
template <int n, class T> void replace_norms(const Tensor& x, unsigned axes, bool (*f)(T), Tensor& y) {
  Tensor sums = allocate(y.spec());
  fold<Sum, ScaledSquare<n, T>>(x, axes, elements<T>(sums), y.size());
  T *in = elements<T>(sums), *out = elements<T>(y);
  for (std::int64_t i = 0; i < y.size(); ++i)
    if (f(out[i])) out[i] = std::sqrt(in[i]) / power_of_two<T>(n);
}

}   // namespace

bool fold_steps(FoldStep first, FoldStep next, const void* row, const Shape& shape, unsigned axes, void* y,
                std::int64_t size) {
  const AxisRuns runs(shape, axes);
  std::unique_ptr<std::byte[]> step;
  std::int64_t outer = shape.size(), inner = 1;
  for (int r = runs.count; r-- > 0;) {
    const auto [n, folded] = runs.list[static_cast<std::size_t>(r)];
    outer /= n;
    if (!folded) {
      inner *= n;
      continue;
    }
    const bool last = r < 2;   // reduced and kept runs alternate
    std::unique_ptr<std::byte[]> results;
    if (!last)
      results = std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(outer * inner * size));
    void* const to = last ? y : results.get();
    if (step)
      next(step.get(), outer, n, inner, to);
    else
      first(row, outer, n, inner, to);
    if (last) return true;
    step = std::move(results);
  }
  return false;
}

void sum(const Tensor& x, unsigned axes, Tensor& y) {
  rounding_once(y, [&](const Results& sums) { fold_numbers<Sum>(x, axes, sums); });
}
void prod(const Tensor& x, unsigned axes, Tensor& y) { fold_numbers<Product>(x, axes, Results(y)); }

void mean(const Tensor& x, unsigned axes, Tensor& y) {
  rounding_once(y, [&](const Results& means) {
    fold_numbers<Sum>(x, axes, means);
    visit_trainable(means.dtype, [&](auto one) {
      using T = decltype(one);
      const auto count = convert<T>(means.size ? x.size() / means.size : 0);
      for (T *p = means.as<T>(), *end = p + means.size; p < end; ++p)
        *p /= count;
    });
  });
}

void euclidean_norm(const Tensor& x, unsigned axes, Tensor& y) {
  visit_floating(y.dtype(), [&](auto one) {
    using T = decltype(one);
    T* out = elements<T>(y);
    fold<Sum, Square>(x, axes, out, y.size());
    each_group<T>(y.size(), [out](std::int64_t i, auto some) {
      using std::sqrt;
      store(sqrt(load<decltype(some)>(out + i)), out + i);
    });
    if (std::any_of(out, out + y.size(), too_large<T>))
      replace_norms<sizeof(T) == 4 ? -80 : -600>(x, axes, too_large<T>, y);
    if (std::any_of(out, out + y.size(), too_small<T>))
      replace_norms<sizeof(T) == 4 ? 100 : 700>(x, axes, too_small<T>, y);
  });
}

}   // namespace tapedeck::kernels
