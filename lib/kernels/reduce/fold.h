// Reductions (folds) of contiguous elements on SIMD batches, on one thread: sum, product, max and min.
// The order depends on the number of elements and the width of vectors alone.
#pragma once
#include <algorithm>
#include <limits>
#include <type_traits>

#include "core/cast.h"
#include "core/half_vectors.h"
#include "kernels/simd/simd.h"
#include "tapedeck/dtype.h"
#include "tapedeck/half.h"

namespace tapedeck::kernels {

struct Sum {
  template <class T> static constexpr T identity = T(0);
  template <class V> V operator()(const V& a, const V& b) const { return a + b; }
};

struct Product {
  template <class T> static constexpr T identity = T(1);
  template <class V> V operator()(const V& a, const V& b) const { return a * b; }
};

/// Max or min. NaN propagates from either operand.
template <bool largest> struct Extreme {
  template <class T> static constexpr T kInfinity = std::numeric_limits<T>::infinity();
  template <class T> static constexpr T identity = std::numeric_limits<T>::has_infinity
                                                       ? (largest ? -kInfinity<T> : kInfinity<T>)
                                                   : largest ? std::numeric_limits<T>::lowest()
                                                             : std::numeric_limits<T>::max();
  template <class T> static bool better(T a, T b) { return largest ? a > b : a < b; }
  template <class T>
  requires std::is_integral_v<T> T operator()(T a, T b) const { return better(a, b) ? a : b; }
  template <class T>
  requires std::is_floating_point_v<T> T operator()(T a, T b) const { return better(a, b) || a != a ? a : b; }
  template <class T, class A>
  xsimd::batch<T, A> operator()(const xsimd::batch<T, A>& a, const xsimd::batch<T, A>& b) const {
    if constexpr (std::is_integral_v<T>)   // without NaN
      return largest ? xsimd::max(a, b) : xsimd::min(a, b);
    else
      return largest ? maximum(a, b) : minimum(a, b);
  }
};
using Max = Extreme<true>;
using Min = Extreme<false>;
template <class Fold> inline constexpr bool kIsExtreme =
    std::is_same_v<Fold, Max> || std::is_same_v<Fold, Min>;
/// The type in which T is reduced: sums and products of integers use unsigned types, whose overflow is
/// defined.
template <class Fold, class T> using Wrapping =
    typename std::conditional_t<std::is_integral_v<T> && !std::is_same_v<T, bool> && !kIsExtreme<Fold>,
                                std::make_unsigned<T>, std::type_identity<T>>::type;

/// Maps applied to each element before the reduction.
struct Itself {
  template <class V> const V& operator()(const V& x) const { return x; }
};
struct Square {
  template <class V> V operator()(const V& x) const { return x * x; }
};

template <class Fold, class T> T fold_lanes(const Batch<T>& v) {
  constexpr Fold f;
  constexpr std::int64_t w = kWidth<T>, m = w < 4 ? w : 4;
  alignas(64) T lanes[w];
  v.store_aligned(lanes);
  for (std::int64_t i = m; i < w; i += m)
    for (std::int64_t k = 0; k < m; ++k)
      lanes[k] = f(lanes[k], lanes[i + k]);
  if constexpr (m == 4)
    return f(f(lanes[0], lanes[2]), f(lanes[1], lanes[3]));
  else
    return f(lanes[0], lanes[1]);
}

/// Reduces complex numbers: into eight interleaved accumulators, then these in a tree.
template <class Fold, class Of = Itself, class T>
requires ComplexNumber<T> T fold_block(const T* x, std::int64_t n) {
  constexpr Fold f;
  constexpr Of of;
  T s[8];
  std::fill_n(s, 8, Fold::template identity<T>);
  for (std::int64_t i = 0; i < n; ++i)
    s[i % 8] = f(s[i % 8], of(x[i]));
  return f(f(f(s[0], s[1]), f(s[2], s[3])), f(f(s[4], s[5]), f(s[6], s[7])));
}

/// A row of f16 or bf16, which is reduced in f32.
struct HalfRow {
  DType dtype;
  const Half* x;

  HalfRow operator+(std::int64_t n) const { return {dtype, x + n}; }
};
/// The type in which the elements of a row are reduced.
template <class Row> struct ElementOf { using Type = float; };
template <class T> struct ElementOf<T*> { using Type = std::remove_const_t<T>; };
template <class Row> using Element = typename ElementOf<Row>::Type;

template <class T> inline constexpr std::int64_t kFoldPiece = 256 * kWidth<T>;

/// Reduces n elements: pieces of 64 steps into four vector accumulators, then the results of the pieces, so
/// that rounding errors at each level are as small as in a short sum. at(i) returns the vector of elements
/// from i on; rest(i) returns the address of the elements from i on, which are fewer than four vectors.
template <class Fold, class Of, class T, class At, class Rest>
T fold_pieces(std::int64_t n, const At& at, const Rest& rest) {
  constexpr Fold f;
  constexpr Of of;
  constexpr std::int64_t w = kWidth<T>;
  T y = Fold::template identity<T>;
  const Batch<T> none(y);
  Batch<T> total = none;
  std::int64_t i = 0;
  while (i + 4 * w <= n) {
    Batch<T> s[4] = {none, none, none, none};
    for (const std::int64_t end = std::min(n, i + kFoldPiece<T>); i + 4 * w <= end; i += 4 * w)
      for (int k = 0; k < 4; ++k)
        s[k] = f(s[k], of(at(i + k * w)));
    total = f(total, f(f(s[0], s[1]), f(s[2], s[3])));
  }
  const T *x = rest(i), *const end = x + (n - i);
  for (; x + w <= end; x += w)
    total = f(total, of(Batch<T>::load_unaligned(x)));
  if (n >= w) y = fold_lanes<Fold>(total);
  for (; x < end; ++x)
    y = f(y, of(*x));
  return y;
}

template <class Fold, class Of = Itself, class T>
requires(!ComplexNumber<T>) T fold_block(const T* x, std::int64_t n) {
  return fold_pieces<Fold, Of, T>(
      n, [x](std::int64_t i) { return Batch<T>::load_unaligned(x + i); },
      [x](std::int64_t i) { return x + i; });
}

// Loads a vector of halves, in f32.
#ifdef TAPEDECK_HALF_VECTORS
inline Batch<float> load_f16(const Half* p) { return wide_f16(load_halves(p)); }
inline Batch<float> load_bf16(const Half* p) { return wide_bf16(load_halves(p)); }
#else
template <float value(std::uint16_t)> Batch<float> load_each(const Half* p) {
  alignas(64) float x[kWidth<float>];
  for (std::int64_t k = 0; k < kWidth<float>; ++k)
    x[k] = value(p[k].bits);
  return Batch<float>::load_aligned(x);
}
inline Batch<float> load_f16(const Half* p) { return load_each<detail::float16_value>(p); }
inline Batch<float> load_bf16(const Half* p) { return load_each<detail::bfloat16_value>(p); }
#endif

template <class Fold, class Of, Batch<float> load(const Half*)>
float fold_halves(HalfRow row, std::int64_t n) {
  alignas(64) float last[4 * kWidth<float>];
  return fold_pieces<Fold, Of, float>(
      n, [x = row.x](std::int64_t i) { return load(x + i); },
      [&last, row, n](std::int64_t i) {
        widen(row.dtype, row.x + i, last, n - i);
        return static_cast<const float*>(last);
      });
}
template <class Fold, class Of = Itself> float fold_block(HalfRow row, std::int64_t n) {
  return row.dtype == DType::f16 ? fold_halves<Fold, Of, load_f16>(row, n)
                                 : fold_halves<Fold, Of, load_bf16>(row, n);
}

}   // namespace tapedeck::kernels
