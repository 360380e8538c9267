// Broadcasting, reduced to rows: where each row of each operand starts, and whether the operand moves along the inner axis.
#pragma once
#include <array>

#include "tapedeck/shape.h"

namespace tapedeck::kernels {

inline constexpr int kMaxOperands = 9;   // a fused jvp of four inputs reads four, the output and four tangents
using Offsets = std::array<std::int64_t, kMaxOperands>;

/// The loops of an elementwise pass over operands that broadcast to one shape, with adjacent axes merged.
struct Rows {
  int operands = 0;
  std::int64_t count = 1, inner = 1;
  std::array<bool, kMaxOperands> moves{};          // along the inner axis: else one element serves the whole row
  int outer = 0;                                   // axes outside the inner one
  std::int64_t dims[Shape::kMaxRank] = {};         // innermost of them first
  Offsets strides[Shape::kMaxRank] = {};

  /// Calls f(row, offsets) for every row in order; offsets are in elements.
  template <class F> void each(F f) const {
    Offsets offset{};
    std::int64_t index[Shape::kMaxRank] = {};
    for (std::int64_t r = 0;; ) {
      f(r, offset);
      if (++r == count) return;
      for (int d = 0; d < outer; ++d) {
        for (std::size_t i = 0; i < static_cast<std::size_t>(operands); ++i) offset[i] += strides[d][i];
        if (++index[d] < dims[d]) break;
        index[d] = 0;
        for (std::size_t i = 0; i < static_cast<std::size_t>(operands); ++i) offset[i] -= strides[d][i] * dims[d];
      }
    }
  }
};

Rows rows_of(const Shape& y, std::span<const Shape* const> x);

}  // namespace tapedeck::kernels
