// DType: the element type of a tensor, and the rules of type promotion.
#pragma once
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <string_view>

#include "tapedeck/error.h"
#include "tapedeck/half.h"

namespace tapedeck {

/// bool is stored as one byte, 0 or 1; c64 and c128 as two f32 or f64 numbers, the real part first. The
/// dtypes from f16 on are for storage: ops compute with them in f32 or i64, and round once.
enum class DType : std::uint8_t {
  f32,
  f64,
  i8,
  i32,
  i64,
  u8,
  boolean,
  c64,
  c128,
  f16,
  bf16,
  i16,
  u16,
  u32,
  u64
};

inline constexpr int kDTypes = 15;

namespace detail {

[[noreturn]] TAPEDECK_EXPORT void throw_no_dtype(int number);
/// The row of t in a table of dtypes. Throws DTypeError if t is not an enumerator.
constexpr int row_of(DType t) {
  const int row = static_cast<int>(t);
  if (row >= kDTypes) [[unlikely]]
    throw_no_dtype(row);
  return row;
}

}   // namespace detail

/// Bytes of one element. This and the functions below that look up t in a table throw DTypeError if t is not
/// an enumerator.
constexpr std::int64_t size_of(DType t) {
  constexpr std::int64_t sizes[kDTypes] = {4, 8, 1, 4, 8, 1, 1, 8, 16, 2, 2, 2, 2, 4, 8};
  return sizes[detail::row_of(t)];
}
/// is_half: whether t is f16 or bf16. is_floating: one of these, f32 or f64. is_complex: c64 or c128.
constexpr bool is_half(DType t) { return t == DType::f16 || t == DType::bf16; }
constexpr bool is_floating(DType t) { return t == DType::f32 || t == DType::f64 || is_half(t); }
constexpr bool is_complex(DType t) { return t == DType::c64 || t == DType::c128; }
/// Whether t is a signed or unsigned integer type; bool is not.
constexpr bool is_integer(DType t) { return !is_floating(t) && !is_complex(t) && t != DType::boolean; }
/// Whether values of this type have derivatives: floating-point and complex types.
constexpr bool is_trainable(DType t) { return is_floating(t) || is_complex(t); }
/// The type that ops compute in: f32 for f16 and bf16, i64 for i16, u16, u32 and u64, and t itself otherwise.
/// is_computed: whether it is t itself.
constexpr bool is_computed(DType t) { return t < DType::f16; }
constexpr DType computed_in(DType t) { return is_computed(t) ? t : is_half(t) ? DType::f32 : DType::i64; }
/// real_of: the type of the parts of c64 and c128. complex_of: the complex type with such parts, c64
/// for f16 and bf16. Other types map to themselves.
constexpr DType real_of(DType t) { return t == DType::c64 ? DType::f32 : t == DType::c128 ? DType::f64 : t; }
constexpr DType complex_of(DType t) {
  return t == DType::f32 || is_half(t) ? DType::c64 : t == DType::f64 ? DType::c128 : t;
}

/// "f32", "bool", …, as used in messages.
constexpr std::string_view name_of(DType t) {
  constexpr std::string_view names[kDTypes] = {"f32",  "f64", "i8",   "i32", "i64", "u8",  "bool", "c64",
                                               "c128", "f16", "bf16", "i16", "u16", "u32", "u64"};
  return names[detail::row_of(t)];
}
/// Prints name_of(t).
TAPEDECK_EXPORT std::ostream& operator<<(std::ostream& out, DType t);

/// The result type of two operands, by NumPy's rules: the smallest type that holds the values of both. Thus
/// i32 and f32 are promoted to f64, f16 and bf16 to f32, and i8 and u8 to i16.
constexpr DType promote(DType a, DType b) {
  using enum DType;
  constexpr DType bit = boolean;
  constexpr DType table[kDTypes][kDTypes] = {
      //          f32   f64   i8    i32   i64   u8    bool  c64   c128  f16   bf16  i16   u16   u32   u64
      /* f32  */ {f32, f64, f32, f64, f64, f32, f32, c64, c128, f32, f32, f32, f32, f64, f64},
      /* f64  */ {f64, f64, f64, f64, f64, f64, f64, c128, c128, f64, f64, f64, f64, f64, f64},
      /* i8   */ {f32, f64, i8, i32, i64, i16, i8, c64, c128, f16, bf16, i16, i32, i64, f64},
      /* i32  */ {f64, f64, i32, i32, i64, i32, i32, c128, c128, f64, f64, i32, i32, i64, f64},
      /* i64  */ {f64, f64, i64, i64, i64, i64, i64, c128, c128, f64, f64, i64, i64, i64, f64},
      /* u8   */ {f32, f64, i16, i32, i64, u8, u8, c64, c128, f16, bf16, i16, u16, u32, u64},
      /* bool */ {f32, f64, i8, i32, i64, u8, bit, c64, c128, f16, bf16, i16, u16, u32, u64},
      /* c64  */ {c64, c128, c64, c128, c128, c64, c64, c64, c128, c64, c64, c64, c64, c128, c128},
      /* c128 */ {c128, c128, c128, c128, c128, c128, c128, c128, c128, c128, c128, c128, c128, c128, c128},
      /* f16  */ {f32, f64, f16, f64, f64, f16, f16, c64, c128, f16, f32, f32, f32, f64, f64},
      /* bf16 */ {f32, f64, bf16, f64, f64, bf16, bf16, c64, c128, f32, bf16, f32, f32, f64, f64},
      /* i16  */ {f32, f64, i16, i32, i64, i16, i16, c64, c128, f32, f32, i16, i32, i64, f64},
      /* u16  */ {f32, f64, i32, i32, i64, u16, u16, c64, c128, f32, f32, i32, u16, u32, u64},
      /* u32  */ {f64, f64, i64, i64, i64, u32, u32, c128, c128, f64, f64, i64, u32, u32, u64},
      /* u64  */ {f64, f64, f64, f64, f64, u64, u64, c128, c128, f64, f64, f64, u64, u64, u64},
  };
  return table[detail::row_of(a)][detail::row_of(b)];
}

/// The dtype of floating-point numbers and new tensors for which none is given: of tensor(2.5), zeros(shape),
/// random numbers and the variables of layers, and of 0.5 in x + 0.5 if x has integers or bools. It is f32
/// unless the program has set another one.
TAPEDECK_EXPORT DType default_dtype() noexcept;
/// Sets the default dtype for all threads, preferably at the start of the program. Existing tensors keep
/// their dtypes. Throws DTypeError unless t is f32 or f64.
TAPEDECK_EXPORT void set_default_dtype(DType t);

/// Matches `std::complex<float>` and `std::complex<double>` without including `<complex>`.
template <class T>
concept ComplexNumber = requires(const T& z) {
  typename T::value_type;
  { z.real() } -> std::same_as<typename T::value_type>;
  { z.imag() } -> std::same_as<typename T::value_type>;
}
&&(std::same_as<typename T::value_type, float> || std::same_as<typename T::value_type, double>)&&sizeof(T) ==
    2 * sizeof(typename T::value_type);

/// The DType of a C++ type: dtype_of<float> is DType::f32. Does not compile for other types.
template <class T> inline constexpr DType dtype_of = [] {
  static_assert(sizeof(T) == 0,
                "tensors hold float, double, float16, bfloat16, integers of 8 to 64 bits by their names in "
                "<cstdint>, bool, and std::complex of float and double");
  return DType::f32;
}();
template <> inline constexpr DType dtype_of<float> = DType::f32;
template <> inline constexpr DType dtype_of<double> = DType::f64;
template <> inline constexpr DType dtype_of<std::int8_t> = DType::i8;
template <> inline constexpr DType dtype_of<std::int32_t> = DType::i32;
template <> inline constexpr DType dtype_of<std::int64_t> = DType::i64;
template <> inline constexpr DType dtype_of<std::uint8_t> = DType::u8;
template <> inline constexpr DType dtype_of<bool> = DType::boolean;
template <> inline constexpr DType dtype_of<float16> = DType::f16;
template <> inline constexpr DType dtype_of<bfloat16> = DType::bf16;
template <> inline constexpr DType dtype_of<std::int16_t> = DType::i16;
template <> inline constexpr DType dtype_of<std::uint16_t> = DType::u16;
template <> inline constexpr DType dtype_of<std::uint32_t> = DType::u32;
template <> inline constexpr DType dtype_of<std::uint64_t> = DType::u64;
template <ComplexNumber T> inline constexpr DType dtype_of<T> = complex_of(dtype_of<typename T::value_type>);

}   // namespace tapedeck
