// Dispatch from a DType to a C++ type.
#pragma once
#include <complex>
#include <cstdint>

#include "tapedeck/dtype.h"

namespace tapedeck {

/// Throws DTypeError: the op accepts this dtype but the kernel does not support it.
[[noreturn]] void throw_not_taken(DType t);

/// Calls f(T{}) with the C++ type of t, one that ops compute in, which must not be complex.
template <class F> decltype(auto) visit(DType t, F&& f) {
  switch (t) {
    case DType::f32:
      return f(float{});
    case DType::f64:
      return f(double{});
    case DType::i8:
      return f(std::int8_t{});
    case DType::i32:
      return f(std::int32_t{});
    case DType::i64:
      return f(std::int64_t{});
    case DType::u8:
      return f(std::uint8_t{});
    case DType::boolean:
      return f(bool{});
    default:
      throw_not_taken(t);
  }
}
/// As visit, for f32 and f64 only.
template <class F> decltype(auto) visit_floating(DType t, F&& f) {
  if (t == DType::f32) return f(float{});
  if (t == DType::f64) return f(double{});
  throw_not_taken(t);
}
/// As visit: for c64 and c128; for these, f32 and f64; for all dtypes that ops compute in.
template <class F> decltype(auto) visit_complex(DType t, F&& f) {
  if (t == DType::c64) return f(std::complex<float>{});
  return f(std::complex<double>{});
}
template <class F> decltype(auto) visit_trainable(DType t, F&& f) {
  return is_complex(t) ? visit_complex(t, f) : visit_floating(t, f);
}
template <class F> decltype(auto) visit_any(DType t, F&& f) {
  return is_complex(t) ? visit_complex(t, f) : visit(t, f);
}
/// As visit, for all dtypes.
template <class F> decltype(auto) visit_stored(DType t, F&& f) {
  switch (t) {
    case DType::f16:
      return f(float16{});
    case DType::bf16:
      return f(bfloat16{});
    case DType::i16:
      return f(std::int16_t{});
    case DType::u16:
      return f(std::uint16_t{});
    case DType::u32:
      return f(std::uint32_t{});
    case DType::u64:
      return f(std::uint64_t{});
    default:
      return visit_any(t, f);
  }
}

/// An unsigned type of the same size, for kernels that only move elements.
__extension__ using Uint128 = unsigned __int128;
template <class F> decltype(auto) visit_size(DType t, F&& f) {
  switch (size_of(t)) {
    case 1:
      return f(std::uint8_t{});
    case 2:
      return f(std::uint16_t{});
    case 4:
      return f(std::uint32_t{});
    case 8:
      return f(std::uint64_t{});
    default:
      return f(Uint128{});
  }
}

}   // namespace tapedeck
