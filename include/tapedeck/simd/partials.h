// The partial derivatives of the functions that are both ops and functions of active numbers, each defined
// once: the rules of the ops use them, and so do the derivatives of users' lambdas in simd/numbers.h.
//
// A partial is a generic lambda of the inputs and, if it has one more parameter, of the output. It is called
// with SIMD batches, scalars and active numbers; in the library also with Tensors, to record it, and with
// Probes, to determine which of them it reads. of_f is the partial of f(x); of_f_in_a and of_f_in_b are the
// partials of f(a, b).
#pragma once
#include <numbers>

#include "tapedeck/simd/slopes.h"

namespace tapedeck {
namespace detail {

/// A constant that f32 does not represent exactly, for use with values of type V: converted to their element
/// type if they are vectors.
template <class V> constexpr auto beside(double constant) {
  if constexpr (requires { typename V::value_type; })
    return static_cast<typename V::value_type>(constant);
  else
    return constant;
}

}   // namespace detail

namespace partial {

// Arithmetic.
inline constexpr auto of_neg = [](auto) { return -1; };
inline constexpr auto of_add_in_a = [](auto, auto) { return 1; };
inline constexpr auto of_add_in_b = [](auto, auto) { return 1; };
inline constexpr auto of_sub_in_a = [](auto, auto) { return 1; };
inline constexpr auto of_sub_in_b = [](auto, auto) { return -1; };
inline constexpr auto of_mul_in_a = [](auto, auto b) { return b; };
inline constexpr auto of_mul_in_b = [](auto a, auto) { return a; };
inline constexpr auto of_div_in_a = [](auto, auto b) { return 1 / b; };
inline constexpr auto of_div_in_b = [](auto, auto b, auto y) { return -y / b; };
inline constexpr auto of_square = [](auto x) { return 2 * x; };
inline constexpr auto of_abs = [](auto x) { return sign(x); };

// Powers, exponentials and logarithms.
inline constexpr auto of_sqrt = [](auto, auto y) { return 0.5 / y; };
inline constexpr auto of_rsqrt = [](auto, auto y) { return -0.5 * y * y * y; };
inline constexpr auto of_cbrt = [](auto, auto y) { return 1 / (3 * y * y); };
inline constexpr auto of_exp = [](auto, auto y) { return y; };
inline constexpr auto of_exp2 = [](auto, auto y) {
  return y * detail::beside<decltype(y)>(std::numbers::ln2);
};
inline constexpr auto of_expm1 = [](auto x) { return exp(x); };
inline constexpr auto of_log = [](auto x) { return 1 / x; };
inline constexpr auto of_log1p = [](auto x) { return 1 / (1 + x); };
inline constexpr auto of_log2 = [](auto x) { return detail::beside<decltype(x)>(std::numbers::log2e) / x; };
inline constexpr auto of_log10 = [](auto x) { return detail::beside<decltype(x)>(std::numbers::log10e) / x; };
inline constexpr auto of_logaddexp_in_a = [](auto a, auto b) { return logistic(log_ratio(a, b)); };
inline constexpr auto of_logaddexp_in_b = [](auto a, auto b) { return logistic(log_ratio(b, a)); };

/// Where aᵇ has a derivative with respect to b: where a > 0. The condition for complex Tensors is defined
/// next to the op.
template <Lanes B> auto has_log(const B& a) { return a > B(typename B::value_type(0)); }
/// `power` is pow, which is not the same function of batches in the library and in a user's program.
inline constexpr auto of_pow_in_a = [](auto a, auto b, auto power) {
  return b * power(where(no_inverse(a, b), 1, a), b - 1);
};
/// The 0 is a product, so that its own derivative is zeros and not none; a product with the sign, which is
/// finite.
inline constexpr auto of_pow_in_b = [](auto a, auto, auto y) {
  return where(has_log(a), y * log(where(has_log(a), a, 1)), 0 * sign(a));
};

// Trigonometric and hyperbolic functions.
inline constexpr auto of_sin = [](auto x) { return cos(x); };
inline constexpr auto of_cos = [](auto x) { return -sin(x); };
inline constexpr auto of_tan = [](auto, auto y) { return 1 + y * y; };
inline constexpr auto of_asin = [](auto x) { return asin_slope(x); };
inline constexpr auto of_acos = [](auto x) { return -asin_slope(x); };
inline constexpr auto of_atan = [](auto x) { return atan_slope(x); };
inline constexpr auto of_atan2_in_a = [](auto a, auto b) {
  const auto r = length_of(a, b);
  return b / r / r;
};
inline constexpr auto of_atan2_in_b = [](auto a, auto b) {
  const auto r = length_of(a, b);
  return -a / r / r;
};
inline constexpr auto of_hypot_in_a = [](auto a, auto b, auto y) { return over_hypot(a, b, y); };
inline constexpr auto of_hypot_in_b = [](auto a, auto b, auto y) { return over_hypot(b, a, y); };
inline constexpr auto of_sinh = [](auto x) { return cosh(x); };
inline constexpr auto of_cosh = [](auto x) { return sinh(x); };
inline constexpr auto of_tanh = [](auto, auto y) { return 1 - y * y; };
inline constexpr auto of_asinh = [](auto x) { return asinh_slope(x); };
inline constexpr auto of_acosh = [](auto x) { return acosh_slope(x); };
inline constexpr auto of_atanh = [](auto x) { return 1 / one_minus_square(x); };

// Functions of neural networks and statistics.
inline constexpr auto of_sigmoid = [](auto, auto y) { return y * (1 - y); };
inline constexpr auto of_logistic = [](auto x) { return logistic_slope(x); };
inline constexpr auto of_logistic_slope = [](auto x, auto y) { return -y * tanh(0.5 * x); };
inline constexpr auto of_softplus = [](auto x) { return logistic(x); };
inline constexpr auto of_erf = [](auto x) {
  return gaussian(x, 1) * detail::beside<decltype(x)>(2 * std::numbers::inv_sqrtpi);
};
inline constexpr auto of_erfc = [](auto x) {
  return gaussian(x, 1) * detail::beside<decltype(x)>(-2 * std::numbers::inv_sqrtpi);
};

// Functions that partials use.
inline constexpr auto of_gaussian_in_x = [](auto x, auto c, auto y) { return -2 * c * x * y; };
inline constexpr auto of_one_minus_square = [](auto x) { return -2 * x; };
inline constexpr auto of_atan_slope = [](auto x, auto y) { return -2 * (x * y) * y; };
inline constexpr auto of_asin_slope = [](auto x, auto y) { return (x * y) * y * y; };
inline constexpr auto of_acosh_slope = [](auto x, auto y) { return -(x * y) * y * y; };
inline constexpr auto of_asinh_slope = [](auto x, auto y) { return -(x * y) * y * y; };

}   // namespace partial
}   // namespace tapedeck
