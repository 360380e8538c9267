// Broadcasting over short rows, such as [1000, 3] with [1000, 1] or [3]: a pass processes blocks of rows that
// fill whole groups. Operands whose elements are not laid out like the result are expanded to a buffer first.
#pragma once
#include <algorithm>
#include <cstring>

#include "kernels/elementwise/limits.h"
#include "kernels/elementwise/row.h"
#include "kernels/simd/interleave.h"
#include "kernels/simd/short_copy.h"

namespace tapedeck::kernels {

/// Whether rows have at most `longest` elements, and enough of them are adjacent.
inline bool are_within(const Rows& rows, std::int64_t longest) {
  return rows.outer > 0 && rows.dims[0] >= kFewestShortRows && rows.inner <= longest;
}
/// Whether rows are so short that processing them in blocks is faster than one after the other.
inline bool are_short(const Rows& rows) {
  return are_within(rows, rows.repeat_elements() ? kRepeatedRow : kShortRow);
}

/// Writes each of `count` elements `inner` times. May write some elements beyond the last one. Not inline, so
/// that it is compiled once for passes of all kinds; what it calls is, since it passes constants.
template <class T> [[gnu::noinline, gnu::flatten]] void repeat_elements(const T* from, std::int64_t count,
                                                                        std::int64_t inner, T* to) {
  using Bits = std::conditional_t<
      sizeof(T) == 1, std::uint8_t,
      std::conditional_t<sizeof(T) == 2, std::uint16_t,
                         std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>>;
  if constexpr (std::is_arithmetic_v<T>) {
    if (inner == 2) return interleave<2>(from, 0, to, count);
    if (inner == 3) return interleave<3>(from, 0, to, count);
    if (inner == 4) return interleave<4>(from, 0, to, count);
  }
  // Vectors of copies. They are integers, so that all bits are copied unchanged.
  constexpr std::size_t words = sizeof(T) / sizeof(Bits);   // 2 for c128
  using Copies [[gnu::vector_size(32)]] = Bits;
  constexpr auto some = static_cast<std::int64_t>(sizeof(Copies) / sizeof(T));
  for (; count > 0; --count, ++from, to += inner) {
    Bits word[words];
    std::memcpy(word, from, sizeof word);
    Copies copies = Copies{} + word[0];
    if constexpr (words == 2) copies = Copies{word[0], word[1], word[0], word[1]};
    for (std::int64_t j = 0; j < inner; j += some)
      std::memcpy(static_cast<void*>(to + j), &copies, sizeof copies);
  }
}

/// A pass over short rows with at most `most` operands.
template <class T, int most> class ShortRows {
 public:
  explicit ShortRows(const Rows& rows) : rows_(rows) {}

  /// Calls f(row, first element of the result, number of elements) for all blocks of rows. operand(i) returns
  /// the address of operand i, or null if it is not needed. Uses several threads if there is enough work.
  template <class Operand, class F> void each(const Operand& operand, const F& f) const {
    const std::int64_t fit = kShortBlock / rows_.inner, height = whole<T>(fit) ? whole<T>(fit) : fit;
    const std::int64_t along = rows_.dims[0], blocks = (along + height - 1) / height;
    parallel_for(rows_.count / along * blocks, cut_of(kElementwise, height * rows_.inner),
                 [&](std::int64_t begin, std::int64_t end) {
                   Memory memory;
                   for (std::int64_t block = begin; block < end; ++block) {
                     const std::int64_t at = block % blocks * height, first = block / blocks * along + at,
                                        count = std::min(height, along - at);
                     Row<T, most> row;
                     fill(row, operand, first, count, memory);
                     f(row, first * rows_.inner, count * rows_.inner);
                   }
                 });
  }

 private:
  /// The row whose copies are in the buffer, and their number.
  struct Repeated {
    const T* row = nullptr;
    std::int64_t count = 0;
    bool covers(const T* other, std::int64_t n) const { return row == other && count >= n; }
  };
  struct Memory {
    static constexpr int kOperands = std::min(most, kMaxBroadcast);
    alignas(64) T elements[kOperands][kShortBlock + kGroup<T>];
    Repeated repeated[kOperands];
  };

  /// Sets the operands of `count` rows from `first` on.
  template <class Operand> void fill(Row<T, most>& row, const Operand& operand, std::int64_t first,
                                     std::int64_t count, Memory& memory) const {
    rows_.each(first, first + 1, [&](std::int64_t, const Offsets& offset) {
      // The second bound is unknown to compilers.
      for (int i = 0; i < std::min(rows_.operands, Memory::kOperands); ++i) {
        const T* const begin = operand(i);
        if (!begin) continue;
        const auto k = static_cast<std::size_t>(i);
        const T* const from = begin + offset[k];
        // The rows of an operand that differ are contiguous, or are single elements that are.
        const bool moves = rows_.moves[k], differs = rows_.strides[0][k] != 0;
        if (moves == differs) {
          row.set(i, from, moves);
          continue;
        }
        T* const to = memory.elements[i];
        if (differs)
          repeat_elements(from, count, rows_.inner, to);
        else if (!memory.repeated[i].covers(from, count))
          repeat_run(from, to, count, rows_.inner), memory.repeated[i] = {from, count};
        row.set(i, to, true);
      }
    });
  }

  const Rows& rows_;
};

}   // namespace tapedeck::kernels
