// The meaning of the operations of Code, for one lane. Constants are folded by it, machine code calls it for
// large angles, and it is the reference of the tests.
#pragma once
#include <bit>
#include <cmath>
#include <type_traits>

#include "compile/machine/code.h"
#include "tapedeck/simd/elementary.h"

namespace tapedeck::compiled {

/// F: float or double.
template <class F> auto lane_result(LaneOp op, std::uint64_t imm, auto a, auto b, auto c) {
  using I = std::conditional_t<sizeof(F) == 4, std::int32_t, std::int64_t>;
  using U = std::make_unsigned_t<I>;
  static_assert(std::is_same_v<decltype(a), U>);
  const F x = std::bit_cast<F>(a), y = std::bit_cast<F>(b);
  const auto real = [](F v) { return std::bit_cast<U>(v); };
  const auto mask = [](bool v) { return v ? static_cast<U>(-1) : U(0); };
  const auto is_set = [](U m) { return static_cast<I>(m) < 0; };   // a mask has all bits or none
  switch (op) {
    case LaneOp::add:
      return real(x + y);
    case LaneOp::sub:
      return real(x - y);
    case LaneOp::mul:
      return real(x * y);
    case LaneOp::div:
      return real(x / y);
    case LaneOp::min:
      return real(x < y ? x : y);
    case LaneOp::max:
      return real(x > y ? x : y);
    case LaneOp::fma:
      return real(std::fma(x, y, std::bit_cast<F>(c)));
    case LaneOp::sqrt:
      return real(std::sqrt(x));
    case LaneOp::round:
      return real(imm == 0   ? std::nearbyint(x)
                  : imm == 1 ? std::floor(x)
                  : imm == 2 ? std::ceil(x)
                             : std::trunc(x));
    case LaneOp::bit_and:
      return static_cast<U>(a & b);
    case LaneOp::bit_or:
      return static_cast<U>(a | b);
    case LaneOp::bit_xor:
      return static_cast<U>(a ^ b);
    case LaneOp::int_add:
      return static_cast<U>(a + b);
    case LaneOp::int_sub:
      return static_cast<U>(a - b);
    case LaneOp::shift_left:
      return static_cast<U>(a << imm);
    case LaneOp::shift_right:
      return static_cast<U>(a >> imm);
    case LaneOp::compare:
      return mask(imm == detail::kEqual       ? x == y
                  : imm == detail::kLess      ? x < y
                  : imm == detail::kLessEqual ? x <= y
                                              : !(x == y));
    case LaneOp::int_equal:
      return mask(a == b);
    case LaneOp::int_greater:
      return mask(static_cast<I>(a) > static_cast<I>(b));
    case LaneOp::select:
      return is_set(c) ? a : b;
    case LaneOp::rarely:
      return is_set(c) ? b : a;
    case LaneOp::large_angle: {
      constexpr F largest = detail::kLargestAngle<xsimd::batch<F, detail::LaneTrace>>;
      const auto f = reinterpret_cast<double (*)(double)>(static_cast<std::uintptr_t>(imm));
      return std::abs(x) <= largest ? b : real(static_cast<F>(f(static_cast<double>(x))));
    }
    default:
      return a;
  }
}

}   // namespace tapedeck::compiled
