// DType: the element type of a tensor, and the rules of type promotion.
#pragma once
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tapedeck/error.h"

namespace tapedeck {

/// bool is stored as one byte, 0 or 1; c64 and c128 as two f32 or f64 numbers, the real part first.
enum class DType : std::uint8_t { f32, f64, i8, i32, i64, u8, boolean, c64, c128 };

inline constexpr int kDTypes = 9;

namespace detail {

[[noreturn]] TAPEDECK_EXPORT void throw_no_dtype(int number);
/// The row of t in a table of dtypes. Throws DTypeError for a number that is none of the enumerators.
constexpr int row_of(DType t) {
  const int row = static_cast<int>(t);
  if (row >= kDTypes) [[unlikely]]
    throw_no_dtype(row);
  return row;
}

}   // namespace detail

/// Bytes of one element. This and the functions below that look t up throw DTypeError if it is no enumerator.
constexpr std::int64_t size_of(DType t) {
  constexpr std::int64_t sizes[kDTypes] = {4, 8, 1, 4, 8, 1, 1, 8, 16};
  return sizes[detail::row_of(t)];
}
/// is_floating: f32 and f64. is_complex: c64 and c128.
constexpr bool is_floating(DType t) { return t == DType::f32 || t == DType::f64; }
constexpr bool is_complex(DType t) { return t == DType::c64 || t == DType::c128; }
/// Whether values of this type have derivatives: floating-point and complex types.
constexpr bool is_trainable(DType t) { return is_floating(t) || is_complex(t); }
/// real_of: the type of the parts of c64 and c128. complex_of: the complex type with such parts. Other types
/// map to themselves.
constexpr DType real_of(DType t) { return t == DType::c64 ? DType::f32 : t == DType::c128 ? DType::f64 : t; }
constexpr DType complex_of(DType t) {
  return t == DType::f32 ? DType::c64 : t == DType::f64 ? DType::c128 : t;
}

/// "f32", "bool", …, as used in messages.
constexpr std::string_view name_of(DType t) {
  constexpr std::string_view names[kDTypes] = {"f32", "f64", "i8", "i32", "i64", "u8", "bool", "c64", "c128"};
  return names[detail::row_of(t)];
}

/// The result type of two operands, by NumPy's rules: the smallest type that holds the values of both. Thus
/// i32 with f32 gives f64, and i8 with u8 gives i32, since there is no i16.
constexpr DType promote(DType a, DType b) {
  using enum DType;
  constexpr DType table[kDTypes][kDTypes] = {
      //          f32   f64   i8    i32   i64   u8    bool     c64   c128
      /* f32  */ {f32, f64, f32, f64, f64, f32, f32, c64, c128},
      /* f64  */ {f64, f64, f64, f64, f64, f64, f64, c128, c128},
      /* i8   */ {f32, f64, i8, i32, i64, i32, i8, c64, c128},
      /* i32  */ {f64, f64, i32, i32, i64, i32, i32, c128, c128},
      /* i64  */ {f64, f64, i64, i64, i64, i64, i64, c128, c128},
      /* u8   */ {f32, f64, i32, i32, i64, u8, u8, c64, c128},
      /* bool */ {f32, f64, i8, i32, i64, u8, boolean, c64, c128},
      /* c64  */ {c64, c128, c64, c128, c128, c64, c64, c64, c128},
      /* c128 */ {c128, c128, c128, c128, c128, c128, c128, c128, c128},
  };
  return table[detail::row_of(a)][detail::row_of(b)];
}

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
                "tensors hold float, double, std::int8_t, std::int32_t, std::int64_t, std::uint8_t, bool and "
                "std::complex of float and double");
  return DType::f32;
}();
template <> inline constexpr DType dtype_of<float> = DType::f32;
template <> inline constexpr DType dtype_of<double> = DType::f64;
template <> inline constexpr DType dtype_of<std::int8_t> = DType::i8;
template <> inline constexpr DType dtype_of<std::int32_t> = DType::i32;
template <> inline constexpr DType dtype_of<std::int64_t> = DType::i64;
template <> inline constexpr DType dtype_of<std::uint8_t> = DType::u8;
template <> inline constexpr DType dtype_of<bool> = DType::boolean;
template <ComplexNumber T> inline constexpr DType dtype_of<T> = complex_of(dtype_of<typename T::value_type>);

}   // namespace tapedeck
