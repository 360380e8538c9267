// Conversion of elements between all dtypes.
#pragma once
#include <cstdint>

#include "tapedeck/tensor.h"

namespace tapedeck {

/// Converts n elements of type `from` at x to type `to` at y, by the rules of convert.h.
void convert_elements(DType from, const void* x, DType to, void* y, std::int64_t n);
/// Converts all elements of x, on several threads. Not an op: nothing is recorded.
void cast(const Tensor& x, Tensor& y);
Tensor cast(const Tensor& x, DType to);

/// The bits of an f16 or bf16, for code that is compiled once for both.
struct Half {
  std::uint16_t bits;
};
/// Converts elements of type t, f16 or bf16, to f32 and back, with the same bits on all instruction sets.
void widen(DType t, const Half* x, float* y, std::int64_t n);
void narrow(DType t, const float* x, Half* y, std::int64_t n);

/// Fills y with a number, converted to its dtype.
void fill(Tensor& y, double value);

/// x in the type that ops compute in (see computed_in). Throws ArgumentError for u64 values beyond the range
/// of i64.
Tensor to_computed(const Tensor& x);

}   // namespace tapedeck
