// Broadcasting as loops over rows: where each row of each operand starts, and whether the operand moves along
// it or is one element.
#pragma once
#include <algorithm>
#include <array>

#include "core/parallel.h"
#include "tapedeck/shape.h"

namespace tapedeck::kernels {

/// Inputs of an elementwise op with a fused derivative, at most. Its jvp reads these, the output and as many
/// tangents.
inline constexpr int kFusedInputs = 4, kMaxOperands = 2 * kFusedInputs + 1;
/// Operands that broadcast in one pass, at most: the inputs of a user's map.
inline constexpr int kMaxBroadcast = 16;
using Offsets = std::array<std::int64_t, kMaxBroadcast>;

/// The loops of an elementwise pass over operands that broadcast to one shape, with adjacent axes merged.
struct Rows {
  int operands = 0;
  std::int64_t count = 1, inner = 1;         // of rows, and of elements in each
  std::array<bool, kMaxBroadcast> moves{};   // along a row; else one element stands for the whole row
  // The axes outside the rows, the innermost of them first.
  int outer = 0;
  std::int64_t dims[Shape::kMaxRank] = {};
  Offsets strides[Shape::kMaxRank];   // of these axes and operands alone

  /// Whether an operand has one row for all of the innermost axis outside.
  bool share_row() const { return any_operand(true, false); }
  /// Whether an operand has one element for each row along that axis.
  bool repeat_elements() const { return any_operand(false, true); }
  bool any_operand(bool along, bool across) const {
    if (outer == 0) return false;
    for (std::size_t i = 0; i < static_cast<std::size_t>(operands); ++i)
      if (moves[i] == along && (strides[0][i] != 0) == across) return true;
    return false;
  }
  /// Calls f(row, offsets) for rows [begin, end) in order; offsets are where the row starts in each operand,
  /// in elements.
  template <class F> void each(std::int64_t begin, std::int64_t end, F f) const {
    Offsets offset{};
    std::int64_t index[Shape::kMaxRank] = {};
    for (std::int64_t d = 0, rest = begin; rest > 0; rest /= dims[d++]) {
      index[d] = rest % dims[d];
      for (std::size_t i = 0; i < static_cast<std::size_t>(operands); ++i)
        offset[i] += strides[d][i] * index[d];
    }
    for (std::int64_t r = begin; r < end;) {
      f(r, offset);
      if (++r == end) return;
      for (int d = 0; d < outer; ++d) {
        for (std::size_t i = 0; i < static_cast<std::size_t>(operands); ++i)
          offset[i] += strides[d][i];
        if (++index[d] < dims[d]) break;
        index[d] = 0;
        for (std::size_t i = 0; i < static_cast<std::size_t>(operands); ++i)
          offset[i] -= strides[d][i] * dims[d];
      }
    }
  }
};

/// Calls f(row, offsets, begin, end) for the elements [begin, end) of rows, until all are done: whole rows,
/// or pieces of long ones. On several threads if there is much to do. Where rows share one of an operand, the
/// pieces are so short that they stay in the L1 cache, and go through all rows before the next ones.
template <class F> void each_part(const Rows& rows, const Cut& cut, const F& f) {
  constexpr std::int64_t near = 2048;   // elements
  const std::int64_t part = rows.inner > near && rows.share_row() ? near : cut.piece_of(rows.inner),
                     parts = (rows.inner + part - 1) / part;
  parallel_for(parts * rows.count, cut_of(cut, part), [&](std::int64_t first, std::int64_t last) {
    while (first < last) {
      const std::int64_t begin = first / rows.count * part, end = std::min(begin + part, rows.inner),
                         row = first % rows.count, stop = std::min(row + last - first, rows.count);
      rows.each(row, stop, [&](std::int64_t r, const Offsets& offset) { f(r, offset, begin, end); });
      first += stop - row;
    }
  });
}

/// The rows of operands of shapes x, which broadcast to y.
Rows rows_of(const Shape& y, std::span<const Shape* const> x);

}   // namespace tapedeck::kernels
