// Dual: what a user's map computes with: a vector of elements and their derivatives with respect to some of
// the inputs. The functions have the names, the values and the derivatives of the ops, so a lambda of them is
// one of Tensors as well.
#pragma once
#include <utility>

#include "tapedeck/simd/choices.h"
#include "tapedeck/simd/functions.h"

namespace tapedeck {

/// A vector of elements with N tangents: 0 to compute values, 1 for a derivative in one direction, one for
/// each input for all partial derivatives. Its type has the instruction set in it, so code for several of
/// them can be in one program.
template <class T, int N, class A> struct Dual {
  using Batch = xsimd::batch<T, A>;
  using Condition = xsimd::batch_bool<T, A>;
  using AllTangents = std::make_index_sequence<static_cast<std::size_t>(N)>;

  Batch value;
  Batch tangent[N > 0 ? N : 1];   // of N = 0: not used
  unsigned depends =
      0;   // bit i: tangent[i] may be other than 0. Where loops are inlined it is known at compile time.

  template <class Number>
  requires std::is_arithmetic_v<Number> Dual(Number number) : Dual(Batch(static_cast<T>(number))) {}
  explicit Dual(const Batch& v) : value(v) { clear(AllTangents()); }
  // Part by part, so that the parts stay in registers.
  Dual(const Dual& o) { *this = o; }
  Dual& operator=(const Dual& o) {
    value = o.value;
    depends = o.depends;
    copy_tangents(o, AllTangents());
    return *this;
  }
  /// An input, with its tangent number i.
  Dual(const Batch& v, int i, const Batch& t) : Dual(v) {
    tangent[i] = t;
    depends = 1u << i;
  }

  /// A function of this alone, of that value and derivative; the latter is made where there is a tangent.
  template <class Partial> Dual function(const Batch& y, const Partial& partial) const {
    Dual r(y);
    r.add(*this, partial);
    return r;
  }
  /// A function of this and of b.
  template <class Partial, class PartialB>
  Dual function(const Batch& y, const Partial& partial, const Dual& b, const PartialB& partial_b) const {
    Dual r(y);
    r.add(*this, partial);
    r.add(b, partial_b);
    return r;
  }
  /// The tangents of this where the condition holds, else of b.
  Dual chosen(const Batch& y, const Condition& condition, const Dual& b) const {
    Dual r(y);
    r.choose(condition, *this, b, AllTangents());
    r.depends = depends | b.depends;
    return r;
  }

 private:
  template <std::size_t... I> void clear(std::index_sequence<I...>) { ((tangent[I] = Batch(T(0))), ...); }
  template <std::size_t... I> void copy_tangents(const Dual& o, std::index_sequence<I...>) {
    ((tangent[I] = o.tangent[I]), ...);
  }
  template <class Partial> void add(const Dual& x, const Partial& partial) {
    if constexpr (N > 0) {
      if (!x.depends) return;
      if constexpr (std::is_arithmetic_v<decltype(partial())>)
        add_product(x, Batch(static_cast<T>(partial())), AllTangents());
      else
        add_product(x, partial(), AllTangents());
      depends |= x.depends;
    }
  }
  template <std::size_t... I> void add_product(const Dual& x, const Batch& p, std::index_sequence<I...>) {
    ((x.depends >> I & 1
          ? void(tangent[I] = depends >> I & 1 ? tangent[I] + x.tangent[I] * p : x.tangent[I] * p)
          : void()),
     ...);
  }
  template <std::size_t... I>
  void choose(const Condition& c, const Dual& a, const Dual& b, std::index_sequence<I...>) {
    ((tangent[I] =
          (a.depends | b.depends) >> I & 1 ? xsimd::select(c, a.tangent[I], b.tangent[I]) : tangent[I]),
     ...);
  }
};

/// What comparisons give, for where(). It is neither true nor false, since it has an answer for each element.
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

template <class X> inline constexpr bool kIsDual = false;
template <class T, int N, class A> inline constexpr bool kIsDual<Dual<T, N, A>> = true;
template <class X>
concept DualNumber = kIsDual<X>;
/// Two operands of which one may be a plain number.
template <class X, class Y>
concept DualNumbers = (kIsDual<X> && (std::same_as<X, Y> || std::is_arithmetic_v<Y>)) ||
                      (std::is_arithmetic_v<X> && kIsDual<Y>);
template <class X, class Y> using DualOf = std::conditional_t<kIsDual<X>, X, Y>;

namespace detail {

/// f of both as duals.
template <class X, class Y, class F> auto both(const X& x, const Y& y, const F& f) {
  return f(DualOf<X, Y>(x), DualOf<X, Y>(y));
}
template <class X, class Y, class F> auto compared(const X& x, const Y& y, const F& f) {
  return both(x, y, [&]<class D>(const D& a, const D& b) { return DualCondition<D>{f(a.value, b.value)}; });
}
/// Functions that the library computes.
using kernels::VectorFunction;
template <class B> B in_library(VectorFunction f, const B& x) {
  alignas(64) typename B::value_type a[B::size];
  x.store_aligned(a);
  kernels::apply(f, a, nullptr, static_cast<int>(B::size));
  return B::load_aligned(a);
}
template <class B> B in_library(VectorFunction f, const B& x, const B& y) {
  alignas(64) typename B::value_type a[B::size], b[B::size];
  x.store_aligned(a);
  y.store_aligned(b);
  kernels::apply(f, a, b, static_cast<int>(B::size));
  return B::load_aligned(a);
}
template <class B> B number(double x) { return B(static_cast<typename B::value_type>(x)); }

}   // namespace detail

// Arithmetic.
template <DualNumber D> D operator-(const D& x) {
  return x.function(-x.value, [] { return -1; });
}
template <class X, class Y>
requires DualNumbers<X, Y> DualOf<X, Y>
operator+(const X& x, const Y& y) {
  return detail::both(x, y, []<class D>(const D& a, const D& b) {
    return a.function(
        a.value + b.value, [] { return 1; }, b, [] { return 1; });
  });
}
template <class X, class Y>
requires DualNumbers<X, Y> DualOf<X, Y>
operator-(const X& x, const Y& y) {
  return detail::both(x, y, []<class D>(const D& a, const D& b) {
    return a.function(
        a.value - b.value, [] { return 1; }, b, [] { return -1; });
  });
}
template <class X, class Y>
requires DualNumbers<X, Y> DualOf<X, Y>
operator*(const X& x, const Y& y) {
  return detail::both(x, y, []<class D>(const D& a, const D& b) {
    return a.function(
        a.value * b.value, [&] { return b.value; }, b, [&] { return a.value; });
  });
}
template <class X, class Y>
requires DualNumbers<X, Y> DualOf<X, Y>
operator/(const X& x, const Y& y) {
  return detail::both(x, y, []<class D>(const D& a, const D& b) {
    const auto quotient = a.value / b.value;
    return a.function(
        quotient, [&] { return 1 / b.value; }, b, [&] { return -quotient / b.value; });
  });
}
template <DualNumber D> D square(const D& x) {
  return x.function(x.value * x.value, [&] { return x.value + x.value; });
}
template <DualNumber D> D reciprocal(const D& x) { return 1 / x; }
template <class X, class Y>
requires DualNumbers<X, Y> DualOf<X, Y> squared_difference(const X& x, const Y& y) { return square(x - y); }

// Comparisons and choices.
template <class D> DualCondition<D> logical_and(const DualCondition<D>& a, const DualCondition<D>& b) {
  return {a.value && b.value};
}
template <class D> DualCondition<D> logical_or(const DualCondition<D>& a, const DualCondition<D>& b) {
  return {a.value || b.value};
}
template <class D> DualCondition<D> logical_not(const DualCondition<D>& x) { return {!x.value}; }
template <class X, class Y>
requires DualNumbers<X, Y>
auto operator<(const X& x, const Y& y) {
  return detail::compared(x, y, [](const auto& a, const auto& b) { return a < b; });
}
template <class X, class Y>
requires DualNumbers<X, Y>
auto operator<=(const X& x, const Y& y) {
  return detail::compared(x, y, [](const auto& a, const auto& b) { return a <= b; });
}
template <class X, class Y>
requires DualNumbers<X, Y>
auto operator>(const X& x, const Y& y) {
  return detail::compared(x, y, [](const auto& a, const auto& b) { return a > b; });
}
template <class X, class Y>
requires DualNumbers<X, Y>
auto operator>=(const X& x, const Y& y) {
  return detail::compared(x, y, [](const auto& a, const auto& b) { return a >= b; });
}
template <class X, class Y>
requires DualNumbers<X, Y>
auto equal(const X& x, const Y& y) {
  return detail::compared(x, y, [](const auto& a, const auto& b) { return a == b; });
}
template <class X, class Y>
requires DualNumbers<X, Y>
auto not_equal(const X& x, const Y& y) {
  return logical_not(equal(x, y));
}   // xsimd's != takes NaN for equal on AVX-512
template <class X, class Y>
requires DualNumbers<X, Y>
auto less(const X& x, const Y& y) { return x < y; }
template <class X, class Y>
requires DualNumbers<X, Y>
auto less_equal(const X& x, const Y& y) { return x <= y; }
template <class X, class Y>
requires DualNumbers<X, Y>
auto greater(const X& x, const Y& y) { return x > y; }
template <class X, class Y>
requires DualNumbers<X, Y>
auto greater_equal(const X& x, const Y& y) { return x >= y; }

template <class D, class X, class Y>
requires std::convertible_to<X, D> && std::convertible_to<Y, D> D where(const DualCondition<D>& condition,
                                                                        const X& x, const Y& y) {
  const D a(x), b(y);
  return a.chosen(xsimd::select(condition.value, a.value, b.value), condition.value, b);
}
template <class X, class Y>
requires DualNumbers<X, Y> DualOf<X, Y> maximum(const X& x, const Y& y) {
  return detail::both(x, y, []<class D>(const D& a, const D& b) {
    return a.chosen(maximum(a.value, b.value), a.value >= b.value, b);
  });
}
template <class X, class Y>
requires DualNumbers<X, Y> DualOf<X, Y> minimum(const X& x, const Y& y) {
  return detail::both(x, y, []<class D>(const D& a, const D& b) {
    return a.chosen(minimum(a.value, b.value), a.value <= b.value, b);
  });
}
template <DualNumber D, class Low, class High> D clip(const D& x, const Low& low, const High& high) {
  return minimum(maximum(x, low), high);
}
template <DualNumber D> D relu(const D& x) {
  return x.chosen(maximum(x.value, typename D::Batch(0)), x.value > typename D::Batch(0), D(0));
}
template <DualNumber D> D abs(const D& x) {
  return x.function(xsimd::abs(x.value), [&] { return sign(x.value); });
}

// Without a derivative.
template <DualNumber D> D sign(const D& x) { return D(sign(x.value)); }
namespace detail {
/// f(x), which without SSE4.1 goes through integers: numbers that do not fit there are whole, and NaN stays.
template <class B, class F> B rounded(const B& x, F f) {
#ifdef __SSE4_1__
  return f(x);
#else
  const auto fits = xsimd::abs(x) < B(kRounder<typename B::value_type>);
  return xsimd::select(fits, f(xsimd::select(fits, x, B(0))), x);
#endif
}
}   // namespace detail
template <DualNumber D> D floor(const D& x) {
  return D(detail::rounded(x.value, [](const auto& v) { return xsimd::floor(v); }));
}
template <DualNumber D> D ceil(const D& x) {
  return D(detail::rounded(x.value, [](const auto& v) { return xsimd::ceil(v); }));
}
template <DualNumber D> D trunc(const D& x) {
  return D(detail::rounded(x.value, [](const auto& v) { return xsimd::trunc(v); }));
}
template <DualNumber D> D round(const D& x) { return D(nearbyint(x.value)); }

// Powers, exponentials and logarithms.
template <DualNumber D> D sqrt(const D& x) {
  const auto y = xsimd::sqrt(x.value);
  return x.function(y, [&] { return detail::number<typename D::Batch>(0.5) / y; });
}
template <DualNumber D> D rsqrt(const D& x) {
  const typename D::Batch y = 1 / xsimd::sqrt(x.value);
  return x.function(y, [&] { return detail::number<typename D::Batch>(-0.5) * y * y * y; });
}
template <DualNumber D> D cbrt(const D& x) {
  const auto y = detail::in_library(detail::VectorFunction::cbrt, x.value);
  return x.function(y, [&] { return 1 / (3 * y * y); });
}
template <DualNumber D> D exp(const D& x) {
  const auto y = exp(x.value);
  return x.function(y, [&] { return y; });
}
template <DualNumber D> D exp2(const D& x) {
  const auto y = exp2(x.value);
  return x.function(y, [&] { return detail::number<typename D::Batch>(0.6931471805599453) * y; });
}
template <DualNumber D> D expm1(const D& x) {
  const auto y = expm1(x.value);
  return x.function(y, [&] { return y + 1; });
}
template <DualNumber D> D log(const D& x) {
  return x.function(log(x.value), [&] { return 1 / x.value; });
}
template <DualNumber D> D log1p(const D& x) {
  return x.function(log1p(x.value), [&] { return 1 / (1 + x.value); });
}
template <DualNumber D> D log2(const D& x) {
  return x.function(detail::in_library(detail::VectorFunction::log2, x.value),
                    [&] { return detail::number<typename D::Batch>(1.4426950408889634) / x.value; });
}
template <DualNumber D> D log10(const D& x) {
  return x.function(detail::in_library(detail::VectorFunction::log10, x.value),
                    [&] { return detail::number<typename D::Batch>(0.4342944819032518) / x.value; });
}
template <class X, class Y>
requires DualNumbers<X, Y> DualOf<X, Y> pow(const X& x, const Y& y) {
  return detail::both(x, y, []<class D>(const D& a, const D& b) {
    using B = typename D::Batch;
    const B p = detail::in_library<typename D::Batch>(detail::VectorFunction::pow, a.value, b.value);
    return a.function(
        p,
        [&] {
          return b.value *
                 detail::in_library<typename D::Batch>(detail::VectorFunction::pow, a.value, b.value - 1);
        },
        b,
        [&] {
          return xsimd::select(a.value > B(0), p * log(xsimd::select(a.value > B(0), a.value, B(1))), B(0));
        });
  });
}
template <class X, class Y>
requires DualNumbers<X, Y> DualOf<X, Y> logaddexp(const X& x, const Y& y) {
  return detail::both(x, y, []<class D>(const D& a, const D& b) {
    return a.function(
        logaddexp(a.value, b.value), [&] { return sigmoid(a.value - b.value); }, b,
        [&] { return sigmoid(b.value - a.value); });
  });
}

// Trigonometric and hyperbolic functions.
template <DualNumber D> D sin(const D& x) {
  return x.function(sin(x.value), [&] { return cos(x.value); });
}
template <DualNumber D> D cos(const D& x) {
  return x.function(cos(x.value), [&] { return -sin(x.value); });
}
template <DualNumber D> D tan(const D& x) {
  const auto y = tan(x.value);
  return x.function(y, [&] { return 1 + y * y; });
}
template <DualNumber D> D asin(const D& x) {
  return x.function(detail::in_library(detail::VectorFunction::asin, x.value),
                    [&] { return 1 / xsimd::sqrt((1 - x.value) * (1 + x.value)); });
}
template <DualNumber D> D acos(const D& x) {
  return x.function(detail::in_library(detail::VectorFunction::acos, x.value),
                    [&] { return -1 / xsimd::sqrt((1 - x.value) * (1 + x.value)); });
}
template <DualNumber D> D atan(const D& x) {
  return x.function(detail::in_library(detail::VectorFunction::atan, x.value),
                    [&] { return 1 / (1 + x.value * x.value); });
}
template <class X, class Y>
requires DualNumbers<X, Y> DualOf<X, Y> atan2(const X& x, const Y& y) {
  return detail::both(x, y, []<class D>(const D& a, const D& b) {
    const auto square_of_radius = a.value * a.value + b.value * b.value;
    return a.function(
        detail::in_library<typename D::Batch>(detail::VectorFunction::atan2, a.value, b.value),
        [&] { return b.value / square_of_radius; }, b, [&] { return -a.value / square_of_radius; });
  });
}
template <class X, class Y>
requires DualNumbers<X, Y> DualOf<X, Y> hypot(const X& x, const Y& y) {
  return detail::both(x, y, []<class D>(const D& a, const D& b) {
    const auto y = detail::in_library<typename D::Batch>(detail::VectorFunction::hypot, a.value, b.value);
    const auto of = [&](const auto& part) { return xsimd::select(y == 0, typename D::Batch(0), part / y); };
    return a.function(
        y, [&] { return of(a.value); }, b, [&] { return of(b.value); });
  });
}
template <DualNumber D> D sinh(const D& x) {
  return x.function(sinh(x.value), [&] { return cosh(x.value); });
}
template <DualNumber D> D cosh(const D& x) {
  return x.function(cosh(x.value), [&] { return sinh(x.value); });
}
template <DualNumber D> D tanh(const D& x) {
  const auto y = tanh(x.value);
  return x.function(y, [&] { return 1 - y * y; });
}
template <DualNumber D> D asinh(const D& x) {
  return x.function(detail::in_library(detail::VectorFunction::asinh, x.value),
                    [&] { return 1 / xsimd::sqrt(1 + x.value * x.value); });
}
template <DualNumber D> D acosh(const D& x) {
  return x.function(detail::in_library(detail::VectorFunction::acosh, x.value),
                    [&] { return 1 / (xsimd::sqrt(x.value - 1) * xsimd::sqrt(x.value + 1)); });
}
template <DualNumber D> D atanh(const D& x) {
  return x.function(detail::in_library(detail::VectorFunction::atanh, x.value),
                    [&] { return 1 / ((1 - x.value) * (1 + x.value)); });
}

// Of neural networks and of statistics.
template <DualNumber D> D sigmoid(const D& x) {
  const auto y = sigmoid(x.value);
  return x.function(y, [&] { return y * (1 - y); });
}
template <DualNumber D> D log_sigmoid(const D& x) { return -softplus(-x); }
template <DualNumber D> D softplus(const D& x) {
  return x.function(maximum(x.value, 0) + log1p(exp(-xsimd::abs(x.value))), [&] { return sigmoid(x.value); });
}
template <DualNumber D> D erf(const D& x) {
  return x.function(detail::in_library(detail::VectorFunction::erf, x.value), [&] {
    return detail::number<typename D::Batch>(1.1283791670955126) * exp(-x.value * x.value);
  });
}
template <DualNumber D> D erfc(const D& x) {
  return x.function(detail::in_library(detail::VectorFunction::erfc, x.value), [&] {
    return detail::number<typename D::Batch>(-1.1283791670955126) * exp(-x.value * x.value);
  });
}

// What looks right and is something else.
template <class X, class Y>
requires DualNumbers<X, Y> DualOf<X, Y> max(const X&, const Y&) {
  static_assert(sizeof(X) == 0, "map: the larger of two numbers is maximum(a, b)");
}
template <class X, class Y>
requires DualNumbers<X, Y> DualOf<X, Y> min(const X&, const Y&) {
  static_assert(sizeof(X) == 0, "map: the smaller of two numbers is minimum(a, b)");
}
template <class X, class Y>
requires DualNumbers<X, Y>
bool operator==(const X&, const Y&) {
  static_assert(sizeof(X) == 0, "map: whether elements are equal is equal(a, b), or not_equal(a, b)");
  return false;
}

}   // namespace tapedeck
