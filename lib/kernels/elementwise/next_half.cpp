#include "kernels/elementwise/next_half.h"

#include "core/bytes.h"
#include "kernels/elementwise/broadcast.h"

namespace tapedeck::kernels {
namespace {

template <HalfNumber T> T next(T a, T b) {
  const float from = a, to = b;
  if (from != from || to != to) return T(from + to);
  if (from == to) return b;
  T y;
  if (from == 0)   // the smallest subnormal number, with the sign of b
    y.bits = static_cast<std::uint16_t>((b.bits & 0x8000) | 1);
  else   // the bits of numbers of one sign grow with their magnitude
    y.bits = static_cast<std::uint16_t>(a.bits + ((from < to) == (from > 0) ? 1 : -1));
  return y;
}

template <HalfNumber T> void next_of(const Tensor& a, const Tensor& b, Tensor& y) {
  const Shape* const shapes[] = {&a.shape(), &b.shape()};
  const Rows rows = rows_of(y.shape(), shapes);
  const T *const from = elements<T>(a), *const to = elements<T>(b);
  T* out = elements<T>(y);
  rows.each(0, rows.count, [&](std::int64_t, const Offsets& offset) {
    for (std::int64_t i = 0; i < rows.inner; ++i)
      *out++ = next(from[offset[0] + (rows.moves[0] ? i : 0)], to[offset[1] + (rows.moves[1] ? i : 0)]);
  });
}

}   // namespace

void next_half(const Tensor& a, const Tensor& b, Tensor& y) {
  if (y.dtype() == DType::f16)
    next_of<float16>(a, b, y);
  else
    next_of<bfloat16>(a, b, y);
}

}   // namespace tapedeck::kernels
