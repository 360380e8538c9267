// Broadcasting over rows of few elements, [1000, 3] by [1000, 1] or by [3]: a pass takes as many rows at a
// time as make some whole groups. Operands that do not lie in memory as the result does are written out for
// it.
#pragma once
#include <algorithm>
#include <cstring>

#include "kernels/elementwise/row.h"
#include "kernels/simd/interleave.h"
#include "kernels/simd/short_copy.h"

namespace tapedeck::kernels {

/// Elements of a block at most, and of a short row. To repeat single elements takes longer than whole rows.
inline constexpr std::int64_t kShortBlock = 1024, kShortRow = kShortBlock / 4, kRepeatedRow = kShortRow / 2;

/// Whether enough rows of this many elements or fewer lie together.
inline bool are_within(const Rows& rows, std::int64_t longest) {
  constexpr std::int64_t fewest = 4;
  return rows.outer > 0 && rows.dims[0] >= fewest && rows.inner <= longest;
}
/// Whether rows are so short that blocks of them take less time than one after the other.
inline bool are_short(const Rows& rows) {
  return are_within(rows, rows.repeat_elements() ? kRepeatedRow : kShortRow);
}

/// Short rows of `most` operands, at most.
template <class T, int most> class ShortRows {
 public:
  explicit ShortRows(const Rows& rows) : rows_(rows) {}

  /// Calls f(row, first element of the result, elements) for all blocks of rows; operand(i) is where operand
  /// i begins, or null if the row need not have it. On several threads if there is much to do.
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
  /// The row of which there are copies, and how many.
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

  /// The operands of `count` rows from `first` on.
  template <class Operand> void fill(Row<T, most>& row, const Operand& operand, std::int64_t first,
                                     std::int64_t count, Memory& memory) const {
    rows_.each(first, first + 1, [&](std::int64_t, const Offsets& offset) {
      for (int i = 0; i < std::min(rows_.operands, Memory::kOperands); ++i) {   // as compilers do not know
        const T* const begin = operand(i);
        if (!begin) continue;
        const auto k = static_cast<std::size_t>(i);
        const T* const from = begin + offset[k];
        // An operand of two rows or more has them one after the other, or an element for each.
        const bool moves = rows_.moves[k], differs = rows_.strides[0][k] != 0;
        if (moves == differs) {
          row.set(i, from, moves);
          continue;
        }
        T* const to = memory.elements[i];
        if (differs)
          repeat_elements(from, count, to);
        else if (!memory.repeated[i].covers(from, count))
          repeat_run(from, to, count, rows_.inner), memory.repeated[i] = {from, count};
        row.set(i, to, true);
      }
    });
  }

  using Bits = std::conditional_t<
      sizeof(T) == 1, std::uint8_t,
      std::conditional_t<sizeof(T) == 2, std::uint16_t,
                         std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>>;

  /// An element for each row, as often as the row is long. Writes some elements behind the last row too.
  void repeat_elements(const T* from, std::int64_t count, T* to) const {
    if constexpr (std::is_arithmetic_v<T>) {
      if (rows_.inner == 2) return interleave<2>(from, 0, to, count);
      if (rows_.inner == 3) return interleave<3>(from, 0, to, count);
      if (rows_.inner == 4) return interleave<4>(from, 0, to, count);
    }
    // Vectors of copies, as integers, which move any bits unchanged.
    constexpr std::size_t words = sizeof(T) / sizeof(Bits);   // two of c128
    using Copies [[gnu::vector_size(32)]] = Bits;
    constexpr auto some = static_cast<std::int64_t>(sizeof(Copies) / sizeof(T));
    for (; count > 0; --count, ++from, to += rows_.inner) {
      Bits word[words];
      std::memcpy(word, from, sizeof word);
      Copies copies = Copies{} + word[0];
      if constexpr (words == 2) copies = Copies{word[0], word[1], word[0], word[1]};
      for (std::int64_t j = 0; j < rows_.inner; j += some)
        std::memcpy(static_cast<void*>(to + j), &copies, sizeof copies);
    }
  }

  const Rows& rows_;
};

}   // namespace tapedeck::kernels
