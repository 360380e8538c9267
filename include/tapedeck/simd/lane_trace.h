// LaneTrace: an instruction set of xsimd whose vectors are numbers of values. A function of SIMD batches that
// is called with batch<T, LaneTrace> computes nothing: it writes its operations down, and the library makes
// machine code of them. Included before xsimd, whose functions see only the kernels that are declared before
// them; a program that includes xsimd first can do without.
#pragma once
#ifdef XSIMD_HPP
#define TAPEDECK_CANNOT_TRACE
#endif
#include <bit>
#include <cstdint>
#include <type_traits>

#include <xsimd/config/xsimd_config.hpp>
#include <xsimd/types/xsimd_generic_arch.hpp>
#include <xsimd/types/xsimd_register.hpp>

namespace tapedeck::detail {

/// The operations of traced code, on vectors of lanes of 4 or of 8 bytes; all lanes of one code have the same
/// size. A mask has all bits of a lane set, or none.
enum class LaneOp : std::uint8_t {
  // Operands. imm: the bits of each lane; the number of an operand with a single element; the number of an
  // operand with one element for each lane.
  constant,
  single,
  stream,
  // Arithmetic. min: a if a < b, else b. max: a if a > b, else b. fma: a b + c, rounded once. round: imm is 0
  // to nearest, 1 down, 2 up, 3 towards 0.
  add,
  sub,
  mul,
  div,
  min,
  max,
  fma,
  sqrt,
  round,
  // Bits and integers. Shifts: by imm bits; zeros are shifted in.
  bit_and,
  bit_or,
  bit_xor,
  int_add,
  int_sub,
  shift_left,
  shift_right,
  // Masks. compare: imm is a Comparison of numbers.
  compare,
  int_equal,
  int_greater,
  // Choices. select: a where the mask c is set, else b. rarely: a, but b if the mask c is set in some lane; b
  // is computed only then. large_angle: f(a) where |a| is above kLargestAngle or a is NaN, else b, for the
  // function imm, a double (*)(double).
  select,
  rarely,
  large_angle,
  store,   // a is written to result imm
};
/// As x86 encodes them.
enum Comparison : std::uint8_t { kEqual = 0, kLess = 1, kLessEqual = 2, kUnequal = 4 };

/// The number of a value.
using LaneValue = std::uint32_t;
inline constexpr LaneValue kNoValue = ~LaneValue(0);
/// Appends an operation to the code that this thread traces.
LaneValue trace_lanes(LaneOp op, LaneValue a = kNoValue, LaneValue b = kNoValue, LaneValue c = kNoValue,
                      std::uint64_t imm = 0);
/// Says that a function cannot be traced. Its result may be any value.
void cannot_be_traced();
/// Begin and end what is computed only if the mask is set in some lane.
void begin_rarely();
LaneValue end_rarely(LaneValue mask, LaneValue usual, LaneValue rare);

struct LaneTrace : xsimd::generic {};

/// What xsimd takes for a register. It has the size of T, so that a vector has one lane.
template <class T> struct TracedVector {
  std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t> value;
};
template <class T> struct TracedMask {
  using register_type = TracedMask;
  std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t> value;
};

template <class B> inline constexpr bool kIsTraced = false;

}   // namespace tapedeck::detail

namespace xsimd {
template <class T, class A> class batch;
template <class T, class A> class batch_bool;

namespace types {
template <class T> struct has_simd_register<T, tapedeck::detail::LaneTrace> : std::true_type {};
template <class T> struct simd_register<T, tapedeck::detail::LaneTrace> {
  using register_type = tapedeck::detail::TracedVector<T>;
  register_type data;
  operator register_type() const noexcept { return data; }
};
template <class T> struct get_bool_simd_register<T, tapedeck::detail::LaneTrace> {
  struct type {
    using register_type = tapedeck::detail::TracedMask<T>;
    register_type data;
    type() = default;
    type(register_type r) : data(r) {}
    operator register_type() const noexcept { return data; }
  };
};
}   // namespace types

namespace kernel {
namespace tracing {

using tapedeck::detail::LaneOp;
using tapedeck::detail::LaneValue;
using Arch = tapedeck::detail::LaneTrace;
template <class T> using Vector = batch<T, Arch>;
template <class T> using Mask = batch_bool<T, Arch>;

template <class T> LaneValue id(const Vector<T>& x) { return static_cast<LaneValue>(x.data.value); }
template <class T> LaneValue id(const Mask<T>& x) { return static_cast<LaneValue>(x.data.value); }
template <class T> Vector<T> vector(LaneValue v) { return Vector<T>(tapedeck::detail::TracedVector<T>{v}); }
template <class T> Mask<T> mask(LaneValue v) { return Mask<T>(tapedeck::detail::TracedMask<T>{v}); }
template <class T, class... X> Vector<T> apply(LaneOp op, const X&... x) {
  return vector<T>(tapedeck::detail::trace_lanes(op, id(x)...));
}
template <class T> Vector<T> with_imm(LaneOp op, std::uint64_t imm, const Vector<T>& x) {
  return vector<T>(
      tapedeck::detail::trace_lanes(op, id(x), tapedeck::detail::kNoValue, tapedeck::detail::kNoValue, imm));
}
template <class T, class... X> Mask<T> test(LaneOp op, const X&... x) {
  return mask<T>(tapedeck::detail::trace_lanes(op, id(x)...));
}
template <class T> Mask<T> compare(tapedeck::detail::Comparison how, const Vector<T>& a, const Vector<T>& b) {
  return mask<T>(
      tapedeck::detail::trace_lanes(LaneOp::compare, id(a), id(b), tapedeck::detail::kNoValue, how));
}
inline LaneValue bits(std::uint64_t pattern) {
  using tapedeck::detail::kNoValue;
  return tapedeck::detail::trace_lanes(LaneOp::constant, kNoValue, kNoValue, kNoValue, pattern);
}
template <class T> inline constexpr std::uint64_t kAllBits = ~std::uint64_t(0) >> (64 - 8 * sizeof(T));
template <class T> inline constexpr std::uint64_t kSignBit = std::uint64_t(1) << (8 * sizeof(T) - 1);
template <class T> Mask<T> inverse(const Mask<T>& m) {
  return mask<T>(tapedeck::detail::trace_lanes(LaneOp::bit_xor, id(m), bits(kAllBits<T>)));
}
template <class T> Vector<T> with_bits(LaneOp op, const Vector<T>& x, std::uint64_t pattern) {
  return apply<T>(op, x, vector<T>(bits(pattern)));
}
template <class T> inline constexpr bool kIsReal = std::is_floating_point_v<T>;

}   // namespace tracing

// The kernels of xsimd's functions, for LaneTrace. For functions that are missing here xsimd takes the
// generic kernels, which are made of others; not for these two, which round once where the machine does.
template <class A, class T> tracing::Vector<T> fms(const batch<T, A>&, const batch<T, A>&, const batch<T, A>&,
                                                   requires_arch<tracing::Arch>) = delete;
template <class A, class T> tracing::Vector<T> fnma(const batch<T, A>&, const batch<T, A>&,
                                                    const batch<T, A>&,
                                                    requires_arch<tracing::Arch>) = delete;

template <class A, class T> tracing::Vector<T> broadcast(T x, requires_arch<tracing::Arch>) noexcept {
  using Word = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
  return tracing::vector<T>(tracing::bits(std::bit_cast<Word>(x)));
}
template <class A, class T, class V>
tracing::Mask<T> set(const batch_bool<T, A>&, requires_arch<tracing::Arch>, V x) noexcept {
  return tracing::mask<T>(tracing::bits(x ? tracing::kAllBits<T> : 0));
}

#define TAPEDECK_TRACE(name, of_reals, of_integers)                                                          \
  template <class A, class T> tracing::Vector<T> name(const batch<T, A>& a, const batch<T, A>& b,            \
                                                      requires_arch<tracing::Arch>) noexcept {               \
    return tracing::apply<T>(tracing::kIsReal<T> ? tracing::LaneOp::of_reals : tracing::LaneOp::of_integers, \
                             a, b);                                                                          \
  }
TAPEDECK_TRACE(add, add, int_add)
TAPEDECK_TRACE(sub, sub, int_sub)
TAPEDECK_TRACE(bitwise_and, bit_and, bit_and)
TAPEDECK_TRACE(bitwise_or, bit_or, bit_or)
TAPEDECK_TRACE(bitwise_xor, bit_xor, bit_xor)
#undef TAPEDECK_TRACE

#define TAPEDECK_TRACE(name)                                                                       \
  template <class A, class T>                                                                      \
  requires tracing::kIsReal<T> tracing::Vector<T> name(const batch<T, A>& a, const batch<T, A>& b, \
                                                       requires_arch<tracing::Arch>)               \
  noexcept { return tracing::apply<T>(tracing::LaneOp::name, a, b); }
TAPEDECK_TRACE(mul)
TAPEDECK_TRACE(div)
TAPEDECK_TRACE(min)
TAPEDECK_TRACE(max)
#undef TAPEDECK_TRACE

template <class A, class T>
requires tracing::kIsReal<T> tracing::Vector<T> fma(const batch<T, A>& a, const batch<T, A>& b,
                                                    const batch<T, A>& c, requires_arch<tracing::Arch>)
noexcept { return tracing::apply<T>(tracing::LaneOp::fma, a, b, c); }

#define TAPEDECK_TRACE(name, result)                                                                       \
  template <class A, class T>                                                                              \
  requires tracing::kIsReal<T> tracing::Vector<T> name(const batch<T, A>& a, requires_arch<tracing::Arch>) \
  noexcept { return tracing::result; }
TAPEDECK_TRACE(sqrt, apply<T>(tracing::LaneOp::sqrt, a))
TAPEDECK_TRACE(nearbyint, with_imm(tracing::LaneOp::round, 0, a))
TAPEDECK_TRACE(floor, with_imm(tracing::LaneOp::round, 1, a))
TAPEDECK_TRACE(ceil, with_imm(tracing::LaneOp::round, 2, a))
TAPEDECK_TRACE(trunc, with_imm(tracing::LaneOp::round, 3, a))
TAPEDECK_TRACE(abs, with_bits(tracing::LaneOp::bit_and, a, tracing::kAllBits<T> ^ tracing::kSignBit<T>))
TAPEDECK_TRACE(bitofsign, with_bits(tracing::LaneOp::bit_and, a, tracing::kSignBit<T>))
TAPEDECK_TRACE(neg, with_bits(tracing::LaneOp::bit_xor, a, tracing::kSignBit<T>))
#undef TAPEDECK_TRACE

template <class A, class T>
tracing::Vector<T> bitwise_not(const batch<T, A>& a, requires_arch<tracing::Arch>) noexcept {
  return tracing::with_bits(tracing::LaneOp::bit_xor, a, tracing::kAllBits<T>);
}
template <class A, class T> tracing::Vector<T> bitwise_lshift(const batch<T, A>& a, std::int32_t by,
                                                              requires_arch<tracing::Arch>) noexcept {
  return tracing::with_imm(tracing::LaneOp::shift_left, static_cast<std::uint64_t>(by), a);
}
template <class A, class T> tracing::Vector<T> bitwise_rshift(const batch<T, A>& a, std::int32_t by,
                                                              requires_arch<tracing::Arch>) noexcept {
  const auto shifted = tracing::with_imm(tracing::LaneOp::shift_right, static_cast<std::uint64_t>(by), a);
  if constexpr (std::is_unsigned_v<T>) return shifted;
  const auto sign = tracing::vector<T>(tracing::bits(tracing::kSignBit<T> >> by));   // to be extended
  return (shifted ^ sign) - sign;
}

template <class A, class T>
tracing::Mask<T> eq(const batch<T, A>& a, const batch<T, A>& b, requires_arch<tracing::Arch>) noexcept {
  if constexpr (tracing::kIsReal<T>)
    return tracing::compare(tapedeck::detail::kEqual, a, b);
  else
    return tracing::test<T>(tracing::LaneOp::int_equal, a, b);
}
template <class A, class T>
tracing::Mask<T> neq(const batch<T, A>& a, const batch<T, A>& b, requires_arch<tracing::Arch>) noexcept {
  if constexpr (tracing::kIsReal<T>)
    return tracing::compare(tapedeck::detail::kUnequal, a, b);
  else
    return tracing::inverse(tracing::test<T>(tracing::LaneOp::int_equal, a, b));
}
template <class A, class T>
tracing::Mask<T> lt(const batch<T, A>& a, const batch<T, A>& b, requires_arch<tracing::Arch>) noexcept {
  static_assert(std::is_signed_v<T>);
  if constexpr (tracing::kIsReal<T>)
    return tracing::compare(tapedeck::detail::kLess, a, b);
  else
    return tracing::test<T>(tracing::LaneOp::int_greater, b, a);
}
template <class A, class T>
tracing::Mask<T> le(const batch<T, A>& a, const batch<T, A>& b, requires_arch<tracing::Arch>) noexcept {
  if constexpr (tracing::kIsReal<T>)
    return tracing::compare(tapedeck::detail::kLessEqual, a, b);
  else
    return tracing::inverse(tracing::test<T>(tracing::LaneOp::int_greater, a, b));
}
template <class A, class T>
tracing::Mask<T> gt(const batch<T, A>& a, const batch<T, A>& b, requires_arch<tracing::Arch>) noexcept {
  return lt<A>(b, a, A());
}
template <class A, class T>
tracing::Mask<T> ge(const batch<T, A>& a, const batch<T, A>& b, requires_arch<tracing::Arch>) noexcept {
  return le<A>(b, a, A());
}
template <class A, class T>
tracing::Mask<T> isnan(const batch<T, A>& a, requires_arch<tracing::Arch>) noexcept {
  return tracing::compare(tapedeck::detail::kUnequal, a, a);
}

#define TAPEDECK_TRACE(name, op)                                                                          \
  template <class A, class T> tracing::Mask<T> name(const batch_bool<T, A>& a, const batch_bool<T, A>& b, \
                                                    requires_arch<tracing::Arch>) noexcept {              \
    return tracing::test<T>(tracing::LaneOp::op, a, b);                                                   \
  }
TAPEDECK_TRACE(bitwise_and, bit_and)
TAPEDECK_TRACE(bitwise_or, bit_or)
TAPEDECK_TRACE(bitwise_xor, bit_xor)
TAPEDECK_TRACE(neq, bit_xor)
#undef TAPEDECK_TRACE
template <class A, class T>
tracing::Mask<T> bitwise_not(const batch_bool<T, A>& a, requires_arch<tracing::Arch>) noexcept {
  return tracing::inverse(a);
}
/// Also xsimd's !a, which is a == false.
template <class A, class T> tracing::Mask<T> eq(const batch_bool<T, A>& a, const batch_bool<T, A>& b,
                                                requires_arch<tracing::Arch>) noexcept {
  return tracing::inverse(tracing::test<T>(tracing::LaneOp::bit_xor, a, b));
}

template <class A, class T> tracing::Vector<T> select(const batch_bool<T, A>& c, const batch<T, A>& a,
                                                      const batch<T, A>& b,
                                                      requires_arch<tracing::Arch>) noexcept {
  return tracing::apply<T>(tracing::LaneOp::select, a, b, c);
}
template <class A, class T, class U> tracing::Vector<U> bitwise_cast(const batch<T, A>& a, const batch<U, A>&,
                                                                     requires_arch<tracing::Arch>) noexcept {
  static_assert(sizeof(T) == sizeof(U));
  return tracing::vector<U>(tracing::id(a));
}
#define TAPEDECK_TRACE(from, to)                                                                     \
  template <class A>                                                                                 \
  batch_bool<to, A> bool_cast(const batch_bool<from, A>& a, requires_arch<tracing::Arch>) noexcept { \
    return tracing::mask<to>(tracing::id(a));                                                        \
  }
TAPEDECK_TRACE(std::int32_t, float)
TAPEDECK_TRACE(std::int64_t, double)
#undef TAPEDECK_TRACE

}   // namespace kernel
}   // namespace xsimd

namespace tapedeck::detail {
template <class T> inline constexpr bool kIsTraced<xsimd::batch<T, LaneTrace>> = true;
}   // namespace tapedeck::detail
