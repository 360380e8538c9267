// Active numbers: numbers that carry derivatives. A DualNumber has tangents, an AdjointNumber is recorded on
// a tape. The functions have the names, the values and the derivatives of the ops, so that a lambda of active
// numbers also accepts Tensors.
//
// An active number consists of values of a type V: SIMD batches, Scalars, or other active numbers, for higher
// derivatives.
#pragma once
#include <utility>

#include "tapedeck/simd/calls.h"
#include "tapedeck/simd/partials.h"

namespace tapedeck {

template <class V, int N, class Tag = void> struct DualNumber;
template <class V, class Tag = void> class AdjointNumber;

/// The result of comparisons of batches, for where(). It does not convert to bool, since it has a result for
/// each element.
template <class D> struct DualCondition {
  typename D::Condition value;

  template <class Bool>
  requires std::same_as<Bool, bool>
  explicit operator Bool() const {
    static_assert(sizeof(Bool) == 0,
                  "map: a condition differs between elements; write where(condition, a, b) for a choice, and "
                  "logical_and, logical_or, logical_not");
    return false;
  }
};

template <class X> inline constexpr bool kIsActive = false;
template <class V, int N, class Tag> inline constexpr bool kIsActive<DualNumber<V, N, Tag>> = true;
template <class V, class Tag> inline constexpr bool kIsActive<AdjointNumber<V, Tag>> = true;
template <class X>
concept ActiveNumber = kIsActive<X>;

namespace detail {

/// Whether numbers of type X accept a C as a constant: a plain number, or a value of the type that they
/// consist of.
template <class C, class X> inline constexpr bool kIsConstant = std::is_arithmetic_v<C>;
template <class C, class V, int N, class Tag> inline constexpr bool kIsConstant<C, DualNumber<V, N, Tag>> =
    std::same_as<C, V> || kIsConstant<C, V>;
template <class C, class V, class Tag> inline constexpr bool kIsConstant<C, AdjointNumber<V, Tag>> =
    std::same_as<C, V> || kIsConstant<C, V>;

/// Whether comparisons return bool instead of a result for each lane.
template <class X> inline constexpr bool kIsSingle = kIsScalar<X>;
template <class V, int N, class Tag> inline constexpr bool kIsSingle<DualNumber<V, N, Tag>> = kIsSingle<V>;
template <class V, class Tag> inline constexpr bool kIsSingle<AdjointNumber<V, Tag>> = kIsSingle<V>;

/// The type of comparisons of values of type V.
template <class V> struct ConditionOf { using Type = bool; };
template <class T, class A> struct ConditionOf<xsimd::batch<T, A>> { using Type = xsimd::batch_bool<T, A>; };
template <ActiveNumber V> struct ConditionOf<V> { using Type = typename V::Condition; };

/// Converts a constant to a value of type V.
template <class V, class C> V constant(const C& c) {
  if constexpr (std::is_arithmetic_v<C>)
    return V(static_cast<typename V::value_type>(c));
  else
    return V(c);
}

/// Evaluates a partial (see partials.h) of a function of these inputs whose value is y.
template <class Partial, class V, class... In>
V partial_at(const Partial& partial, const V& y, const In&... inputs) {
  if constexpr (std::is_invocable_v<const Partial&, const In&...>)
    return constant<V>(partial(inputs...));
  else
    return constant<V>(partial(inputs..., y));
}

/// a where the condition is true, else b.
template <class V> V chosen(const typename ConditionOf<V>::Type& condition, const V& a, const V& b) {
  if constexpr (std::same_as<typename ConditionOf<V>::Type, bool>)
    return condition ? a : b;
  else if constexpr (kIsActive<V>)
    return where(DualCondition<V>{condition}, a, b);
  else
    return xsimd::select(condition, a, b);
}

}   // namespace detail

/// Two operands, one of which may be a constant.
template <class X, class Y>
concept ActiveNumbers = (kIsActive<X> && (std::same_as<X, Y> || detail::kIsConstant<Y, X>)) ||
                        (kIsActive<Y> && detail::kIsConstant<X, Y>);
template <class X, class Y> using NumberOf =
    std::conditional_t<kIsActive<X> && (std::same_as<X, Y> || detail::kIsConstant<Y, X>), X, Y>;

namespace detail {

/// Returns f(x, y) with both operands converted to one type.
template <class X, class Y, class F> auto both(const X& x, const Y& y, const F& f) {
  return f(NumberOf<X, Y>(x), NumberOf<X, Y>(y));
}
/// Converts the result of a comparison of values to the result for numbers of type D.
template <class D, class C> auto condition(const C& c) {
  if constexpr (kIsSingle<D>)
    return c;
  else if constexpr (std::same_as<C, typename D::Condition>)
    return DualCondition<D>{c};
  else
    return DualCondition<D>{c.value};
}
template <class D> typename D::Condition raw(const DualCondition<D>& c) { return c.value; }
template <class T, class A> xsimd::batch_bool<T, A> raw(const xsimd::batch_bool<T, A>& c) { return c; }
inline bool raw(bool c) { return c; }
template <class X, class Y, class F> auto compared(const X& x, const Y& y, const F& f) {
  return both(x, y, [&]<class D>(const D& a, const D& b) { return condition<D>(f(a.value, b.value)); });
}

}   // namespace detail

// Arithmetic. A function composed of others is differentiated through them.
template <ActiveNumber D> D operator-(const D& x) { return x.unary(-x.value, partial::of_neg); }
template <class X, class Y>
requires ActiveNumbers<X, Y> NumberOf<X, Y>
operator+(const X& x, const Y& y) {
  return detail::both(x, y, []<class D>(const D& a, const D& b) {
    return a.binary(b, a.value + b.value, partial::of_add_in_a, partial::of_add_in_b);
  });
}
template <class X, class Y>
requires ActiveNumbers<X, Y> NumberOf<X, Y>
operator-(const X& x, const Y& y) {
  return detail::both(x, y, []<class D>(const D& a, const D& b) {
    return a.binary(b, a.value - b.value, partial::of_sub_in_a, partial::of_sub_in_b);
  });
}
template <class X, class Y>
requires ActiveNumbers<X, Y> NumberOf<X, Y>
operator*(const X& x, const Y& y) {
  return detail::both(x, y, []<class D>(const D& a, const D& b) {
    return a.binary(b, a.value * b.value, partial::of_mul_in_a, partial::of_mul_in_b);
  });
}
template <class X, class Y>
requires ActiveNumbers<X, Y> NumberOf<X, Y>
operator/(const X& x, const Y& y) {
  return detail::both(x, y, []<class D>(const D& a, const D& b) {
    return a.binary(b, a.value / b.value, partial::of_div_in_a, partial::of_div_in_b);
  });
}
template <ActiveNumber D> D square(const D& x) { return x.unary(x.value * x.value, partial::of_square); }
template <ActiveNumber D> D reciprocal(const D& x) { return 1 / x; }
template <class X, class Y>
requires ActiveNumbers<X, Y> NumberOf<X, Y> squared_difference(const X& x, const Y& y) {
  return square(x - y);
}

// Compound assignments.
template <ActiveNumber D, class Y>
requires std::convertible_to<Y, D> D& operator+=(D& x, const Y& y) { return x = x + y; }
template <ActiveNumber D, class Y>
requires std::convertible_to<Y, D> D& operator-=(D& x, const Y& y) { return x = x - y; }
template <ActiveNumber D, class Y>
requires std::convertible_to<Y, D> D& operator*=(D& x, const Y& y) { return x = x * y; }
template <ActiveNumber D, class Y>
requires std::convertible_to<Y, D> D& operator/=(D& x, const Y& y) { return x = x / y; }

// Comparisons and choices.
template <class D> DualCondition<D> logical_and(const DualCondition<D>& a, const DualCondition<D>& b) {
  return {a.value && b.value};
}
template <class D> DualCondition<D> logical_or(const DualCondition<D>& a, const DualCondition<D>& b) {
  return {a.value || b.value};
}
template <class D> DualCondition<D> logical_not(const DualCondition<D>& x) { return {!x.value}; }
template <class X, class Y>
requires ActiveNumbers<X, Y>
auto operator<(const X& x, const Y& y) {
  return detail::compared(x, y, [](const auto& a, const auto& b) { return a < b; });
}
template <class X, class Y>
requires ActiveNumbers<X, Y>
auto operator<=(const X& x, const Y& y) {
  return detail::compared(x, y, [](const auto& a, const auto& b) { return a <= b; });
}
template <class X, class Y>
requires ActiveNumbers<X, Y>
auto operator>(const X& x, const Y& y) {
  return detail::compared(x, y, [](const auto& a, const auto& b) { return a > b; });
}
template <class X, class Y>
requires ActiveNumbers<X, Y>
auto operator>=(const X& x, const Y& y) {
  return detail::compared(x, y, [](const auto& a, const auto& b) { return a >= b; });
}
template <class X, class Y>
requires ActiveNumbers<X, Y>
auto equal(const X& x, const Y& y) {
  return detail::compared(x, y, []<class V>(const V& a, const V& b) {
    if constexpr (kIsActive<V>)
      return equal(a, b);
    else
      return a == b;
  });
}
template <class X, class Y>
requires ActiveNumbers<X, Y>
auto not_equal(const X& x, const Y& y) {
  const auto same = equal(x, y);   // xsimd's != treats NaN as equal on AVX-512
  if constexpr (std::same_as<decltype(same), const bool>)
    return !same;
  else
    return logical_not(same);
}
template <class X, class Y>
requires ActiveNumbers<X, Y>
auto less(const X& x, const Y& y) { return x < y; }
template <class X, class Y>
requires ActiveNumbers<X, Y>
auto less_equal(const X& x, const Y& y) { return x <= y; }
template <class X, class Y>
requires ActiveNumbers<X, Y>
auto greater(const X& x, const Y& y) { return x > y; }
template <class X, class Y>
requires ActiveNumbers<X, Y>
auto greater_equal(const X& x, const Y& y) { return x >= y; }

template <class D, class X, class Y>
requires std::convertible_to<X, D> && std::convertible_to<Y, D> D where(const DualCondition<D>& condition,
                                                                        const X& x, const Y& y) {
  const D a(x), b(y);
  return a.chosen(detail::chosen(condition.value, a.value, b.value), condition.value, b);
}
template <class X, class Y>
requires ActiveNumbers<X, Y> NumberOf<X, Y> where(bool condition, const X& x, const Y& y) {
  return condition ? NumberOf<X, Y>(x) : NumberOf<X, Y>(y);
}
template <class X, class Y>
requires ActiveNumbers<X, Y> NumberOf<X, Y> maximum(const X& x, const Y& y) {
  return detail::both(x, y, []<class D>(const D& a, const D& b) {
    return a.chosen(maximum(a.value, b.value), detail::raw(a.value >= b.value), b);
  });
}
template <class X, class Y>
requires ActiveNumbers<X, Y> NumberOf<X, Y> minimum(const X& x, const Y& y) {
  return detail::both(x, y, []<class D>(const D& a, const D& b) {
    return a.chosen(minimum(a.value, b.value), detail::raw(a.value <= b.value), b);
  });
}
template <ActiveNumber D, class Low, class High> D clip(const D& x, const Low& low, const High& high) {
  return minimum(maximum(x, low), high);
}
template <ActiveNumber D> D relu(const D& x) {
  const typename D::Value zero = detail::constant<typename D::Value>(0);
  return x.chosen(maximum(x.value, zero), detail::raw(x.value > zero), D(0));
}
template <ActiveNumber D> D abs(const D& x) { return x.unary(abs(x.value), partial::of_abs); }

// Functions without a derivative.
template <ActiveNumber D> D sign(const D& x) { return D(sign(x.value)); }
template <ActiveNumber D> D floor(const D& x) { return D(floor(x.value)); }
template <ActiveNumber D> D ceil(const D& x) { return D(ceil(x.value)); }
template <ActiveNumber D> D trunc(const D& x) { return D(trunc(x.value)); }
template <ActiveNumber D> D nearbyint(const D& x) { return D(nearbyint(x.value)); }
template <ActiveNumber D> D round(const D& x) { return nearbyint(x); }

// Powers, exponentials and logarithms.
template <ActiveNumber D> D sqrt(const D& x) { return x.unary(sqrt(x.value), partial::of_sqrt); }
template <ActiveNumber D> D rsqrt(const D& x) { return x.unary(1 / sqrt(x.value), partial::of_rsqrt); }
template <ActiveNumber D> D cbrt(const D& x) { return x.unary(cbrt(x.value), partial::of_cbrt); }
template <ActiveNumber D> D exp(const D& x) { return x.unary(exp(x.value), partial::of_exp); }
template <ActiveNumber D> D exp2(const D& x) { return x.unary(exp2(x.value), partial::of_exp2); }
template <ActiveNumber D> D expm1(const D& x) { return x.unary(expm1(x.value), partial::of_expm1); }
template <ActiveNumber D> D log(const D& x) { return x.unary(log(x.value), partial::of_log); }
template <ActiveNumber D> D log1p(const D& x) { return x.unary(log1p(x.value), partial::of_log1p); }
template <ActiveNumber D> D log2(const D& x) { return x.unary(log2(x.value), partial::of_log2); }
template <ActiveNumber D> D log10(const D& x) { return x.unary(log10(x.value), partial::of_log10); }
template <class X, class Y>
requires ActiveNumbers<X, Y> NumberOf<X, Y> pow(const X& x, const Y& y) {
  return detail::both(x, y, []<class D>(const D& a, const D& b) {
    const auto power = [](const auto& base, const auto& exponent) { return pow(base, exponent); };
    const auto partial_a = [power](const auto& base, const auto& exponent) {
      return partial::of_pow_in_a(base, exponent, power);
    };
    return a.binary(b, power(a.value, b.value), partial_a, partial::of_pow_in_b);
  });
}
template <class X, class Y>
requires ActiveNumbers<X, Y> NumberOf<X, Y> logaddexp(const X& x, const Y& y) {
  return detail::both(x, y, []<class D>(const D& a, const D& b) {
    return a.binary(b, logaddexp(a.value, b.value), partial::of_logaddexp_in_a, partial::of_logaddexp_in_b);
  });
}

// Trigonometric and hyperbolic functions.
template <ActiveNumber D> D sin(const D& x) { return x.unary(sin(x.value), partial::of_sin); }
template <ActiveNumber D> D cos(const D& x) { return x.unary(cos(x.value), partial::of_cos); }
template <ActiveNumber D> D tan(const D& x) { return x.unary(tan(x.value), partial::of_tan); }
template <ActiveNumber D> D asin(const D& x) { return x.unary(asin(x.value), partial::of_asin); }
template <ActiveNumber D> D acos(const D& x) { return x.unary(acos(x.value), partial::of_acos); }
template <ActiveNumber D> D atan(const D& x) { return x.unary(atan(x.value), partial::of_atan); }
template <class X, class Y>
requires ActiveNumbers<X, Y> NumberOf<X, Y> atan2(const X& x, const Y& y) {
  return detail::both(x, y, []<class D>(const D& a, const D& b) {
    return a.binary(b, atan2(a.value, b.value), partial::of_atan2_in_a, partial::of_atan2_in_b);
  });
}
template <class X, class Y>
requires ActiveNumbers<X, Y> NumberOf<X, Y> hypot(const X& x, const Y& y) {
  return detail::both(x, y, []<class D>(const D& a, const D& b) {
    return a.binary(b, hypot(a.value, b.value), partial::of_hypot_in_a, partial::of_hypot_in_b);
  });
}
template <ActiveNumber D> D sinh(const D& x) { return x.unary(sinh(x.value), partial::of_sinh); }
template <ActiveNumber D> D cosh(const D& x) { return x.unary(cosh(x.value), partial::of_cosh); }
template <ActiveNumber D> D tanh(const D& x) { return x.unary(tanh(x.value), partial::of_tanh); }
template <ActiveNumber D> D asinh(const D& x) { return x.unary(asinh(x.value), partial::of_asinh); }
template <ActiveNumber D> D acosh(const D& x) { return x.unary(acosh(x.value), partial::of_acosh); }
template <ActiveNumber D> D atanh(const D& x) { return x.unary(atanh(x.value), partial::of_atanh); }

// Functions of neural networks and statistics.
template <ActiveNumber D> D sigmoid(const D& x) { return x.unary(sigmoid(x.value), partial::of_sigmoid); }
template <Lanes B> B softplus(const B& x) { return maximum(x, 0) + log1p(exp(-abs(x))); }
template <Lanes B> B log_sigmoid(const B& x) { return -softplus(-x); }
template <ActiveNumber D> D softplus(const D& x) { return x.unary(softplus(x.value), partial::of_softplus); }
template <ActiveNumber D> D log_sigmoid(const D& x) { return -softplus(-x); }
template <ActiveNumber D> D erf(const D& x) { return x.unary(erf(x.value), partial::of_erf); }
template <ActiveNumber D> D erfc(const D& x) { return x.unary(erfc(x.value), partial::of_erfc); }

// Functions that partials use, for higher derivatives.
template <ActiveNumber D> D logistic(const D& x) { return x.unary(logistic(x.value), partial::of_logistic); }
template <ActiveNumber D> D logistic_slope(const D& x) {
  return x.unary(logistic_slope(x.value), partial::of_logistic_slope);
}
template <ActiveNumber D> D log_ratio(const D& a, const D& b) {
  return a.binary(b, log_ratio(a.value, b.value), partial::of_sub_in_a, partial::of_sub_in_b);
}
template <ActiveNumber D> D gaussian(const D& x, double c) {
  using V = typename D::Value;
  const auto partial = [c](auto v, auto y) {
    return partial::of_gaussian_in_x(v, detail::constant<V>(c), y);
  };
  if constexpr (kIsActive<V>)
    return x.unary(gaussian(x.value, c), partial);
  else
    return x.unary(gaussian(x.value, detail::constant<V>(c)), partial);
}
template <ActiveNumber D> D one_minus_square(const D& x) {
  return x.unary(one_minus_square(x.value), partial::of_one_minus_square);
}
template <ActiveNumber D> D asin_slope(const D& x) {
  return x.unary(asin_slope(x.value), partial::of_asin_slope);
}
template <ActiveNumber D> D acosh_slope(const D& x) {
  return x.unary(acosh_slope(x.value), partial::of_acosh_slope);
}
template <ActiveNumber D> D atan_slope(const D& x) {
  return x.unary(atan_slope(x.value), partial::of_atan_slope);
}
template <ActiveNumber D> D asinh_slope(const D& x) {
  return x.unary(asinh_slope(x.value), partial::of_asinh_slope);
}
template <ActiveNumber D> D div_no_nan(const D& a, const D& b) {
  const auto zero = equal(b, 0);
  return where(zero, D(0), a / where(zero, D(1), b));
}
template <ActiveNumber D> D length_of(const D& a, const D& b) {
  return a.binary(
      b, length_of(a.value, b.value), [](auto p, auto, auto y) { return p / y; },
      [](auto, auto q, auto y) { return q / y; });
}
template <ActiveNumber D> D over_hypot(const D& a, const D& b, const D&) {
  const auto y = length_of(a, b);
  return where(equal(y, y), div_no_nan(a, y), D(0));
}
template <ActiveNumber D> auto has_log(const D& a) { return a > 0; }
template <ActiveNumber D> auto no_inverse(const D& a, const D& b) {
  return detail::condition<D>(no_inverse(a.value, b.value));
}

// Names that are likely mistakes: they do not compile, and the message names the right one.
template <class X, class Y>
requires ActiveNumbers<X, Y> NumberOf<X, Y> max(const X&, const Y&) {
  static_assert(sizeof(X) == 0, "map: the larger of two numbers is maximum(a, b)");
}
template <class X, class Y>
requires ActiveNumbers<X, Y> NumberOf<X, Y> min(const X&, const Y&) {
  static_assert(sizeof(X) == 0, "map: the smaller of two numbers is minimum(a, b)");
}
template <class X, class Y>
requires ActiveNumbers<X, Y>
bool operator==(const X& x, const Y& y) {
  static_assert(detail::kIsSingle<NumberOf<X, Y>>,
                "map: whether elements are equal is equal(a, b), or not_equal(a, b)");
  return equal(x, y);
}

}   // namespace tapedeck
