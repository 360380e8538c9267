// Derivatives of programs of scalars: generic lambdas of a number, or of a std::array of numbers. They are
// compiled into the program; no tape of tensors is involved. Not included in tapedeck.h, since it needs
// xsimd, as map.h does.
#pragma once
#include <array>

#include "tapedeck/simd/adjoint.h"
#include "tapedeck/simd/dual.h"

namespace tapedeck::scalars {

/// How a derivative is computed: with tangents, or from a recording in reverse.
enum class Mode { forward, reverse };

namespace detail {

using tapedeck::detail::constant;

/// The type in which numbers of type S are computed: Scalar for float and double, S itself otherwise.
template <class S> struct LaneOf { using Type = S; };
template <std::floating_point T> struct LaneOf<T> { using Type = Scalar<T>; };
template <class S> using Lane = typename LaneOf<S>::Type;

template <class X> inline constexpr bool kIsArray = false;
template <class S, std::size_t n> inline constexpr bool kIsArray<std::array<S, n>> = true;
template <class X> struct NumberIn { using Type = X; };
template <class S, std::size_t n> struct NumberIn<std::array<S, n>> { using Type = S; };
template <class X> using Number = typename NumberIn<X>::Type;
template <class X> using LaneIn = Lane<Number<X>>;

/// Applies g to x, or to each element, with its index.
template <class X, class G> auto each(const X& x, const G& g) {
  if constexpr (kIsArray<X>) {
    std::array<decltype(g(x[0], 0)), std::tuple_size_v<X>> y;
    for (std::size_t i = 0; i < y.size(); ++i)
      y[i] = g(x[i], static_cast<int>(i));
    return y;
  } else {
    return g(x, 0);
  }
}
template <class X> inline constexpr int kSize = 1;
template <class S, std::size_t n> inline constexpr int kSize<std::array<S, n>> = static_cast<int>(n);

/// Converts y to numbers of the caller's type.
template <class S, class Y> auto returned(const Y& y) {
  return each(y, [](const auto& v, int) { return static_cast<S>(v); });
}
/// The result of f as numbers of type D: constants may be plain numbers.
template <class D, class Y> auto result_as(const Y& y) {
  return each(y, [](const auto& v, int) { return D(v); });
}

/// Maximum number of tangents that are computed at once.
inline constexpr int kMostTangents = 8;

/// Calls use(y, begin) with y = f(x), computed with the tangents of the inputs from `begin` on, until all
/// inputs are covered.
template <class F, class X, class Use> void for_tangents(const F& f, const X& x, const Use& use) {
  using V = LaneIn<X>;
  constexpr int n = kSize<X>, N = std::clamp(n, 1, kMostTangents);
  using D = DualNumber<V, N, F>;
  const V one = constant<V>(1);
  int begin = 0;
  do {
    const auto in = each(x, [&](const auto& v, int i) {
      return i >= begin && i < begin + N ? D(V(v), i - begin, one) : D(V(v));
    });
    use(result_as<D>(f(in)), begin);
    begin += N;
  } while (begin < n);
}

/// f applied to numbers that are recorded on a tape, and the cotangents of its inputs.
template <class F, class X> class Recorded {
 public:
  using V = LaneIn<X>;
  using D = AdjointNumber<V, F>;

  explicit Recorded(const X& x)
      : cotangents_(each(x, [](const auto&, int) { return constant<V>(0); })),
        in_(each(x, [&](const auto& v, int i) { return D(V(v), tape_, cotangent(i)); })) {}
  Recorded(const Recorded&) = delete;
  Recorded& operator=(const Recorded&) = delete;

  auto run(const F& f) { return result_as<D>(f(in_)); }
  /// The derivative of y with respect to the inputs.
  auto gradient(const D& y) {
    y.seed(constant<V>(1));
    tape_.sweep();
    return cotangents_;
  }
  /// Clears the tape and the cotangents.
  void clear() {
    tape_.clear();
    for (int i = 0; i < kSize<X>; ++i)
      cotangent(i) = constant<V>(0);
  }

 private:
  V& cotangent(int i) {
    if constexpr (kIsArray<X>)
      return cotangents_[static_cast<std::size_t>(i)];
    else
      return cotangents_;
  }
  using Cotangents = decltype(each(std::declval<const X&>(), [](const auto&, int) { return V(); }));

  NumberTape<V> tape_;
  Cotangents cotangents_;
  decltype(each(std::declval<const X&>(), [](const auto&, int) { return D(); })) in_;
};

}   // namespace detail

/// Returns f(x), computed with Scalars. f is a generic lambda of a number or a std::array of numbers, and
/// returns a number or an array. It calls elementwise ops by their names, as in map(); comparisons return
/// bool, so `if` and `while` are allowed. Here and below, x is a float, a double, a number of an enclosing
/// derivative, or an array of these; the result consists of numbers of the same type.
template <class F, class X> auto value(const F& f, const X& x) {
  using V = detail::LaneIn<X>;
  const auto in = detail::each(x, [](const auto& v, int) { return V(v); });
  return detail::returned<detail::Number<X>>(detail::result_as<V>(f(in)));
}

/// Returns f(x) and its derivatives with respect to all of x, where f returns one number. With Mode::forward
/// they are computed eight at a time.
template <Mode mode = Mode::reverse, class F, class X>
[[gnu::flatten]] auto value_and_gradient(const F& f, const X& x) {
  using S = detail::Number<X>;
  using V = detail::LaneIn<X>;
  if constexpr (mode == Mode::reverse) {
    detail::Recorded<F, X> recorded(x);
    const auto y = recorded.run(f);
    return std::pair(static_cast<S>(y.value), detail::returned<S>(recorded.gradient(y)));
  } else {
    V value;
    auto gradient = detail::each(x, [](const auto& v, int) { return V(v); });
    detail::for_tangents(f, x, [&](const auto& y, int begin) {
      value = y.value;
      gradient = detail::each(gradient, [&](const V& g, int i) {
        const int k = i - begin;
        return k >= 0 && k < detail::kMostTangents ? y.tangent[k] : g;
      });
    });
    return std::pair(static_cast<S>(value), detail::returned<S>(gradient));
  }
}
/// Returns the derivatives of f with respect to all of x, where f returns one number.
template <Mode mode = Mode::reverse, class F, class X> auto gradient(const F& f, const X& x) {
  return value_and_gradient<mode>(f, x).second;
}

/// Returns f(x) and its derivative in the direction dx, which has the type of x.
template <class F, class X> [[gnu::flatten]] auto jvp(const F& f, const X& x, const X& dx) {
  using S = detail::Number<X>;
  using V = detail::LaneIn<X>;
  using D = DualNumber<V, 1, F>;
  const auto in = detail::each(x, [&](const auto& v, int i) {
    if constexpr (detail::kIsArray<X>)
      return D(V(v), 0, V(dx[static_cast<std::size_t>(i)]));
    else
      return D(V(v), 0, V(dx));
  });
  const auto y = detail::result_as<D>(f(in));
  return std::pair(detail::each(y, [](const D& v, int) { return static_cast<S>(v.value); }),
                   detail::each(y, [](const D& v, int) { return static_cast<S>(v.tangent[0]); }));
}
/// The derivative of f, a function of one number that returns a number or an array.
template <class F, class S> auto derivative(const F& f, const S& x) { return jvp(f, x, S(1)).second; }

/// The Jacobian of a function from an array to an array: element [k][i] is the derivative of result k with
/// respect to x[i].
template <Mode mode = Mode::forward, class F, class S, std::size_t n>
auto jacobian(const F& f, const std::array<S, n>& x) {
  using X = std::array<S, n>;
  if constexpr (mode == Mode::reverse) {
    detail::Recorded<F, X> recorded(x);
    return detail::each(recorded.run(f), [&](const auto& y, int) {
      recorded.clear();
      return detail::returned<S>(recorded.gradient(y));
    });
  } else {
    using D = DualNumber<detail::Lane<S>, std::clamp(static_cast<int>(n), 1, detail::kMostTangents), F>;
    std::array<X, std::tuple_size_v<decltype(f(std::array<D, n>()))>> rows;
    detail::for_tangents(f, x, [&](const auto& y, int begin) {
      const auto first = static_cast<std::size_t>(begin);
      for (std::size_t k = 0; k < rows.size(); ++k)
        for (std::size_t i = first; i < n && i < first + detail::kMostTangents; ++i)
          rows[k][i] = static_cast<S>(y[k].tangent[i - first]);
    });
    return rows;
  }
}
/// The second derivatives of f, which returns one number, by forward over reverse mode.
template <class F, class S, std::size_t n> auto hessian(const F& f, const std::array<S, n>& x) {
  return jacobian([&f](const auto& z) { return gradient(f, z); }, x);
}

}   // namespace tapedeck::scalars
