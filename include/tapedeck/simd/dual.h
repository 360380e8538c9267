// Dual: a batch of elements and their tangents, which is what a user's map computes with. The functions have
// the names, the values and the derivatives of the ops, so a lambda of them is one of Tensors as well.
#pragma once
#include <utility>

#include "tapedeck/simd/functions.h"
#include "tapedeck/simd/partials.h"

namespace tapedeck {

/// A batch of elements with N tangents: none to compute values, one for a derivative in one direction, one
/// for each input for all partial derivatives. The instruction set A is part of the type, so one program can
/// hold code for several of them.
template <class T, int N, class A> struct Dual {
  using Batch = xsimd::batch<T, A>;
  using Condition = xsimd::batch_bool<T, A>;
  using AllTangents = std::make_index_sequence<static_cast<std::size_t>(N)>;

  Batch value;
  /// With N = 0 there is one that nothing uses.
  Batch tangent[N > 0 ? N : 1];   // NOLINT(bugprone-branch-clone): N may be 1
  /// Bit i: tangent[i] may be other than 0. The compiler knows it where the loop is inlined.
  unsigned depends = 0;

  template <class Number>
  requires std::is_arithmetic_v<Number> Dual(Number number) : Dual(Batch(static_cast<T>(number))) {}
  explicit Dual(const Batch& v) : value(v) { clear(AllTangents()); }
  // Member by member, so that the members stay in registers.
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

  /// The result y of a function of *this, by its partial (see partials.h).
  template <class Partial> Dual unary(const Batch& y, const Partial& partial) const {
    Dual r(y);
    r.add(*this, partial, value);
    return r;
  }
  /// The result y of a function of *this and b, by its partials.
  template <class PartialA, class PartialB>
  Dual binary(const Dual& b, const Batch& y, const PartialA& partial_a, const PartialB& partial_b) const {
    Dual r(y);
    r.add(*this, partial_a, value, b.value);
    r.add(b, partial_b, value, b.value);
    return r;
  }
  /// The value y with the tangents of *this where the condition holds, elsewhere those of b. They are
  /// selected, not multiplied by 1 and 0, since what is not chosen may be infinite.
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
  // Adds the tangents of x, each times the partial, which is computed only if x has any.
  template <class Partial, class... In> void add(const Dual& x, const Partial& partial, const In&... inputs) {
    if constexpr (N > 0) {
      if (!x.depends) return;
      if constexpr (std::is_invocable_v<const Partial&, const In&...>)
        add_product(x, as_batch(partial(inputs...)), AllTangents());
      else
        add_product(x, as_batch(partial(inputs..., value)), AllTangents());
      depends |= x.depends;
    }
  }
  template <class P> static Batch as_batch(const P& partial) {
    if constexpr (std::is_arithmetic_v<P>)
      return Batch(static_cast<T>(partial));
    else
      return partial;
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

/// What comparisons give, for where(). It does not convert to bool, since it has an answer for each element.
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

/// f(x, y) with both operands as duals.
template <class X, class Y, class F> auto both(const X& x, const Y& y, const F& f) {
  return f(DualOf<X, Y>(x), DualOf<X, Y>(y));
}
template <class X, class Y, class F> auto compared(const X& x, const Y& y, const F& f) {
  return both(x, y, [&]<class D>(const D& a, const D& b) { return DualCondition<D>{f(a.value, b.value)}; });
}
/// f of a batch, computed by a call of the library.
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

}   // namespace detail

// Arithmetic. A function that is made of others has its derivatives by theirs.
template <DualNumber D> D operator-(const D& x) { return x.unary(-x.value, partial::of_neg); }
template <class X, class Y>
requires DualNumbers<X, Y> DualOf<X, Y>
operator+(const X& x, const Y& y) {
  return detail::both(x, y, []<class D>(const D& a, const D& b) {
    return a.binary(b, a.value + b.value, partial::of_add_in_a, partial::of_add_in_b);
  });
}
template <class X, class Y>
requires DualNumbers<X, Y> DualOf<X, Y>
operator-(const X& x, const Y& y) {
  return detail::both(x, y, []<class D>(const D& a, const D& b) {
    return a.binary(b, a.value - b.value, partial::of_sub_in_a, partial::of_sub_in_b);
  });
}
template <class X, class Y>
requires DualNumbers<X, Y> DualOf<X, Y>
operator*(const X& x, const Y& y) {
  return detail::both(x, y, []<class D>(const D& a, const D& b) {
    return a.binary(b, a.value * b.value, partial::of_mul_in_a, partial::of_mul_in_b);
  });
}
template <class X, class Y>
requires DualNumbers<X, Y> DualOf<X, Y>
operator/(const X& x, const Y& y) {
  return detail::both(x, y, []<class D>(const D& a, const D& b) {
    return a.binary(b, a.value / b.value, partial::of_div_in_a, partial::of_div_in_b);
  });
}
template <DualNumber D> D square(const D& x) { return x.unary(x.value * x.value, partial::of_square); }
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
  return logical_not(equal(x, y));   // xsimd's != takes NaN for equal on AVX-512
}
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
template <DualNumber D> D abs(const D& x) { return x.unary(xsimd::abs(x.value), partial::of_abs); }

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
template <DualNumber D> D sqrt(const D& x) { return x.unary(xsimd::sqrt(x.value), partial::of_sqrt); }
template <DualNumber D> D rsqrt(const D& x) { return x.unary(1 / xsimd::sqrt(x.value), partial::of_rsqrt); }
template <DualNumber D> D cbrt(const D& x) {
  return x.unary(detail::in_library(detail::VectorFunction::cbrt, x.value), partial::of_cbrt);
}
template <DualNumber D> D exp(const D& x) { return x.unary(exp(x.value), partial::of_exp); }
template <DualNumber D> D exp2(const D& x) { return x.unary(exp2(x.value), partial::of_exp2); }
template <DualNumber D> D expm1(const D& x) { return x.unary(expm1(x.value), partial::of_expm1); }
template <DualNumber D> D log(const D& x) { return x.unary(log(x.value), partial::of_log); }
template <DualNumber D> D log1p(const D& x) { return x.unary(log1p(x.value), partial::of_log1p); }
template <DualNumber D> D log2(const D& x) {
  return x.unary(detail::in_library(detail::VectorFunction::log2, x.value), partial::of_log2);
}
template <DualNumber D> D log10(const D& x) {
  return x.unary(detail::in_library(detail::VectorFunction::log10, x.value), partial::of_log10);
}
template <class X, class Y>
requires DualNumbers<X, Y> DualOf<X, Y> pow(const X& x, const Y& y) {
  return detail::both(x, y, []<class D>(const D& a, const D& b) {
    const auto power = [](const auto& base, const auto& exponent) {
      return detail::in_library(detail::VectorFunction::pow, base, exponent);
    };
    const auto partial_a = [power](const auto& base, const auto& exponent) {
      return partial::of_pow_in_a(base, exponent, power);
    };
    return a.binary(b, power(a.value, b.value), partial_a, partial::of_pow_in_b);
  });
}
template <class X, class Y>
requires DualNumbers<X, Y> DualOf<X, Y> logaddexp(const X& x, const Y& y) {
  return detail::both(x, y, []<class D>(const D& a, const D& b) {
    return a.binary(b, logaddexp(a.value, b.value), partial::of_logaddexp_in_a, partial::of_logaddexp_in_b);
  });
}

// Trigonometric and hyperbolic functions.
template <DualNumber D> D sin(const D& x) { return x.unary(sin(x.value), partial::of_sin); }
template <DualNumber D> D cos(const D& x) { return x.unary(cos(x.value), partial::of_cos); }
template <DualNumber D> D tan(const D& x) { return x.unary(tan(x.value), partial::of_tan); }
template <DualNumber D> D asin(const D& x) {
  return x.unary(detail::in_library(detail::VectorFunction::asin, x.value), partial::of_asin);
}
template <DualNumber D> D acos(const D& x) {
  return x.unary(detail::in_library(detail::VectorFunction::acos, x.value), partial::of_acos);
}
template <DualNumber D> D atan(const D& x) {
  return x.unary(detail::in_library(detail::VectorFunction::atan, x.value), partial::of_atan);
}
template <class X, class Y>
requires DualNumbers<X, Y> DualOf<X, Y> atan2(const X& x, const Y& y) {
  return detail::both(x, y, []<class D>(const D& a, const D& b) {
    return a.binary(b, detail::in_library(detail::VectorFunction::atan2, a.value, b.value),
                    partial::of_atan2_in_a, partial::of_atan2_in_b);
  });
}
template <class X, class Y>
requires DualNumbers<X, Y> DualOf<X, Y> hypot(const X& x, const Y& y) {
  return detail::both(x, y, []<class D>(const D& a, const D& b) {
    return a.binary(b, detail::in_library(detail::VectorFunction::hypot, a.value, b.value),
                    partial::of_hypot_in_a, partial::of_hypot_in_b);
  });
}
template <DualNumber D> D sinh(const D& x) { return x.unary(sinh(x.value), partial::of_sinh); }
template <DualNumber D> D cosh(const D& x) { return x.unary(cosh(x.value), partial::of_cosh); }
template <DualNumber D> D tanh(const D& x) { return x.unary(tanh(x.value), partial::of_tanh); }
template <DualNumber D> D asinh(const D& x) {
  return x.unary(detail::in_library(detail::VectorFunction::asinh, x.value), partial::of_asinh);
}
template <DualNumber D> D acosh(const D& x) {
  return x.unary(detail::in_library(detail::VectorFunction::acosh, x.value), partial::of_acosh);
}
template <DualNumber D> D atanh(const D& x) {
  return x.unary(detail::in_library(detail::VectorFunction::atanh, x.value), partial::of_atanh);
}

// Of neural networks and of statistics.
template <DualNumber D> D sigmoid(const D& x) { return x.unary(sigmoid(x.value), partial::of_sigmoid); }
template <DualNumber D> D log_sigmoid(const D& x) { return -softplus(-x); }
template <DualNumber D> D softplus(const D& x) {
  return x.unary(maximum(x.value, 0) + log1p(exp(-xsimd::abs(x.value))), partial::of_softplus);
}
template <DualNumber D> D erf(const D& x) {
  return x.unary(detail::in_library(detail::VectorFunction::erf, x.value), partial::of_erf);
}
template <DualNumber D> D erfc(const D& x) {
  return x.unary(detail::in_library(detail::VectorFunction::erfc, x.value), partial::of_erfc);
}

// Names that are likely mistakes: they do not compile, and the message names the right one.
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
