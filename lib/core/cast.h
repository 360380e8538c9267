// Conversion of elements between all dtypes.
#pragma once
#include <cstdint>

#include "tapedeck/tensor.h"

namespace tapedeck {

/// n elements of type `from` at x, converted to type `to`, at y. By the rules of convert; see convert.h.
void convert_elements(DType from, const void* x, DType to, void* y, std::int64_t n);
/// The same for all elements of x, on several threads. No op: nothing is recorded.
void cast(const Tensor& x, Tensor& y);
Tensor cast(const Tensor& x, DType to);

/// The bits of an f16 or bf16, for code that is compiled for both at once.
struct Half {
  std::uint16_t bits;
};
/// Elements of type t, one of these, to f32 and back, with the same bits on all instruction sets.
void widen(DType t, const Half* x, float* y, std::int64_t n);
void narrow(DType t, const float* x, Half* y, std::int64_t n);

/// Fills y with a number, converted to its dtype.
void fill(Tensor& y, double value);

/// x in the type that ops compute in (see computed_in). Throws ArgumentError for u64 that i64 does not hold.
Tensor to_computed(const Tensor& x);

}   // namespace tapedeck
