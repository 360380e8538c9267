// From a DType to a C++ type.
#pragma once
#include <cstdint>

#include "tapedeck/dtype.h"

namespace tapedeck {

/// Calls f(T{}) with the C++ type of t.
template <class F> decltype(auto) visit(DType t, F&& f) {
  switch (t) {
    case DType::f32: return f(float{});
    case DType::f64: return f(double{});
    case DType::i32: return f(std::int32_t{});
    case DType::i64: return f(std::int64_t{});
    case DType::u8: return f(std::uint8_t{});
    default: return f(bool{});
  }
}
/// The same for f32 and f64 only.
template <class F> decltype(auto) visit_floating(DType t, F&& f) {
  if (t == DType::f32) return f(float{});
  return f(double{});
}
/// An unsigned type of the same size, for kernels that only move elements.
template <class F> decltype(auto) visit_size(DType t, F&& f) {
  switch (size_of(t)) {
    case 1: return f(std::uint8_t{});
    case 4: return f(std::uint32_t{});
    default: return f(std::uint64_t{});
  }
}

}  // namespace tapedeck
