// The functions that lambdas of ops may use on SIMD batches: those of xsimd, found by argument-dependent
// lookup, and the functions below.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/simd/complexes.h"
#include "tapedeck/simd/choices.h"

namespace tapedeck {

/// x·c, for a constant that f32 cannot represent exactly.
template <class T, class A> xsimd::batch<T, A> times(const xsimd::batch<T, A>& x, double c) {
  return x * static_cast<T>(c);
}
/// a == b, under the name that tensors use.
template <class T, class A> xsimd::batch_bool<T, A> equal(const xsimd::batch<T, A>& a,
                                                          const std::type_identity_t<xsimd::batch<T, A>>& b) {
  return a == b;
}
/// a·b, or 0 where b is 0.
template <class T, class A>
xsimd::batch<T, A> mul_no_nan(const xsimd::batch<T, A>& a, const xsimd::batch<T, A>& b) {
  return where(b == T(0), T(0), a * b);
}
/// a·log b, a·log(1 + b) and a / b, or 0 where a is 0.
template <class T, class A>
xsimd::batch<T, A> xlogy(const xsimd::batch<T, A>& a, const xsimd::batch<T, A>& b) {
  return where(a == T(0), T(0), a * log(b));
}
template <class T, class A>
xsimd::batch<T, A> xlog1py(const xsimd::batch<T, A>& a, const xsimd::batch<T, A>& b) {
  return where(a == T(0), T(0), a * log1p(b));
}
template <class T, class A>
xsimd::batch<T, A> xdivy(const xsimd::batch<T, A>& a, const xsimd::batch<T, A>& b) {
  return where(a == T(0), T(0), a / b);
}

#ifdef TAPEDECK_CANNOT_TRACE
#error "include headers of the library before xsimd"
#endif

namespace kernels {

namespace tracing = xsimd::kernel::tracing;
/// Whether kernels keep functions that trace their lambdas, since machine code can be made for these vectors.
#ifdef TAPEDECK_MACHINE_CODE
inline constexpr bool kTraced = std::is_same_v<xsimd::batch<float>::arch_type, xsimd::fma3<xsimd::avx2>> ||
                                std::is_base_of_v<xsimd::avx512dq, xsimd::batch<float>::arch_type>;
#else
inline constexpr bool kTraced = false;
#endif

template <class T> using Batch = xsimd::batch<T>;
template <class T> inline constexpr std::int64_t kWidth = static_cast<std::int64_t>(xsimd::batch<T>::size);

/// Loops run over groups of 64 bytes whatever the vector width, so that code compiled for another instruction
/// set, such as a user's lambda, matches the padding of the library's rows.
template <class T> inline constexpr std::int64_t kGroup = 64 / static_cast<std::int64_t>(sizeof(T));

/// Loads n elements, and reads no memory beyond them.
template <class T> Batch<T> load_first(const T* p, std::int64_t n) {
  alignas(64) T lanes[kWidth<T>] = {};
  std::memcpy(lanes, p, static_cast<std::size_t>(n) * sizeof(T));
  return Batch<T>::load_aligned(lanes);
}

/// Stores the first n lanes, and writes no memory beyond them.
template <class T> void store_first(const Batch<T>& v, T* p, std::int64_t n) {
  alignas(64) T lanes[kWidth<T>];
  v.store_aligned(lanes);
  std::memcpy(p, lanes, static_cast<std::size_t>(n) * sizeof(T));
}

/// 64 bytes of integers, for lambdas written for SIMD batches; compilers vectorize the loops. Arithmetic
/// wraps around.
template <class T> struct Integers {
  using U = std::make_unsigned_t<T>;
  using value_type = T;
  T v[kGroup<T>];

  Integers() = default;
  Integers(T all) {
    for (T& e : v)
      e = all;
  }

  static Integers load_unaligned(const T* p) {
    Integers r;
    std::memcpy(r.v, p, sizeof r.v);
    return r;
  }
  void store_unaligned(T* p) const { std::memcpy(p, v, sizeof v); }

  template <class F> static Integers each(const Integers& a, const Integers& b, F f) {
    Integers r;
    for (std::int64_t i = 0; i < kGroup<T>; ++i)
      r.v[i] = static_cast<T>(f(a.v[i], b.v[i]));
    return r;
  }
  friend Integers operator+(const Integers& a, const Integers& b) {
    return each(a, b, [](T x, T y) { return static_cast<U>(x) + static_cast<U>(y); });
  }
  friend Integers operator-(const Integers& a, const Integers& b) {
    return each(a, b, [](T x, T y) { return static_cast<U>(x) - static_cast<U>(y); });
  }
  friend Integers operator*(const Integers& a, const Integers& b) {
    return each(a, b, [](T x, T y) { return static_cast<std::uint64_t>(x) * static_cast<std::uint64_t>(y); });
  }
  friend Integers operator-(const Integers& a) { return Integers(T(0)) - a; }
  friend Integers maximum(const Integers& a, const Integers& b) {
    return each(a, b, [](T x, T y) { return x > y ? x : y; });
  }
  friend Integers minimum(const Integers& a, const Integers& b) {
    return each(a, b, [](T x, T y) { return x < y ? x : y; });
  }
  friend Integers sign(const Integers& a) {
    return each(a, a, [](T x, T) { return (x > 0) - (x < 0); });
  }
  friend Integers abs(const Integers& a) { return std::is_signed_v<T> ? maximum(a, -a) : a; }
};

template <class T> struct VectorOf { using type = Integers<T>; };
template <> struct VectorOf<float> { using type = Batch<float>; };
template <> struct VectorOf<double> { using type = Batch<double>; };
template <class T> struct VectorOf<std::complex<T>> { using type = Complexes<std::complex<T>>; };
/// The vector type with which lambdas are called for elements of type T, and its number of elements.
template <class T> using Vector = typename VectorOf<T>::type;
template <class T>
inline constexpr std::int64_t kStep = std::is_floating_point_v<T>
                                          ? static_cast<std::int64_t>(sizeof(Vector<T>) / sizeof(T))
                                          : kGroup<T>;

}   // namespace kernels
}   // namespace tapedeck
