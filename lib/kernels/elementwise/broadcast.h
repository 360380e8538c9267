// Broadcasting as loops over rows: for each operand, where each row starts, and whether the operand moves
// along the row or is a single element.
#pragma once
#include <algorithm>
#include <array>

#include "core/parallel.h"
#include "kernels/elementwise/limits.h"
#include "tapedeck/shape.h"

namespace tapedeck::kernels {

using Offsets = std::array<std::int64_t, kMaxBroadcast>;

/// The loops of an elementwise pass over operands that broadcast to one shape, with adjacent axes merged.
struct Rows {
  int operands = 0;
  std::int64_t count = 1, inner = 1;         // the number of rows, and of elements in each
  std::array<bool, kMaxBroadcast> moves{};   // along a row; if not, one element is used for the whole row
  // The axes outside the rows, innermost first.
  int outer = 0;
  std::int64_t dims[Shape::kMaxRank] = {};
  Offsets strides[Shape::kMaxRank];   // set for `outer` axes and `operands` operands only

  /// Whether an operand has the same row for all steps of the innermost outer axis.
  bool share_row() const { return any_operand(true, false); }
  /// Whether an operand has a single element per row, which differs along the innermost outer axis.
  bool repeat_elements() const { return any_operand(false, true); }
  bool any_operand(bool along, bool across) const {
    if (outer == 0) return false;
    for (std::size_t i = 0; i < static_cast<std::size_t>(operands); ++i)
      if (moves[i] == along && (strides[0][i] != 0) == across) return true;
    return false;
  }
  /// Calls f(row, offsets) for rows [begin, end) in order. offsets: the position of the row's first element
  /// in each operand.
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

/// Calls f(row, offsets, begin, end) for elements [begin, end) of rows, until all are done: for whole rows,
/// or for pieces of long ones. Uses several threads if there is enough work. If rows share a row of an
/// operand, pieces are short enough to stay in the L1 cache, and all rows are processed before the next
/// piece.
template <class F> void each_part(const Rows& rows, const Cut& cut, const F& f) {
  const std::int64_t part = rows.inner > kSharedPiece && rows.share_row() ? kSharedPiece
                                                                          : cut.piece_of(rows.inner),
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

/// The loops over operands of shapes x, which broadcast to y.
Rows rows_of(const Shape& y, std::span<const Shape* const> x);

}   // namespace tapedeck::kernels
