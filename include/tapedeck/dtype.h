// DType: the type of a tensor's elements, and how types combine.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tapedeck/error.h"

namespace tapedeck {

/// bool is stored as one byte, 0 or 1.
enum class DType : std::uint8_t { f32, f64, i32, i64, u8, boolean };

inline constexpr int kDTypes = 6;

/// Bytes of one element.
constexpr std::int64_t size_of(DType t) {
  constexpr std::int64_t sizes[kDTypes] = {4, 8, 4, 8, 1, 1};
  return sizes[static_cast<int>(t)];
}
/// Whether values of this type have derivatives.
constexpr bool is_trainable(DType t) { return t == DType::f32 || t == DType::f64; }

/// "f32", "bool", as in every message.
constexpr std::string_view name_of(DType t) {
  constexpr std::string_view names[kDTypes] = {"f32", "f64", "i32", "i64", "u8", "bool"};
  return names[static_cast<int>(t)];
}

/// The type of a result of two tensors, by NumPy's rules: the smallest that holds both, so i32 with f32 is f64.
constexpr DType promote(DType a, DType b) {
  using enum DType;
  constexpr DType table[kDTypes][kDTypes] = {
      //          f32  f64  i32  i64  u8   bool
      /* f32  */ {f32, f64, f64, f64, f32, f32},
      /* f64  */ {f64, f64, f64, f64, f64, f64},
      /* i32  */ {f64, f64, i32, i64, i32, i32},
      /* i64  */ {f64, f64, i64, i64, i64, i64},
      /* u8   */ {f32, f64, i32, i64, u8, u8},
      /* bool */ {f32, f64, i32, i64, u8, boolean},
  };
  return table[static_cast<int>(a)][static_cast<int>(b)];
}

/// The DType of a C++ type: dtype_of<float> is DType::f32. Other types do not compile.
template <class T> inline constexpr DType dtype_of = [] {
  static_assert(sizeof(T) == 0, "tensors hold float, double, std::int32_t, std::int64_t, std::uint8_t and bool");
  return DType::f32;
}();
template <> inline constexpr DType dtype_of<float> = DType::f32;
template <> inline constexpr DType dtype_of<double> = DType::f64;
template <> inline constexpr DType dtype_of<std::int32_t> = DType::i32;
template <> inline constexpr DType dtype_of<std::int64_t> = DType::i64;
template <> inline constexpr DType dtype_of<std::uint8_t> = DType::u8;
template <> inline constexpr DType dtype_of<bool> = DType::boolean;

}  // namespace tapedeck
