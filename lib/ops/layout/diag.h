// The attributes of the ops on diagonals and bands.
#pragma once
#include <algorithm>
#include <limits>

#include "kernels/layout/diag.h"
#include "tapedeck/ops/diag.h"

namespace tapedeck {

inline constexpr std::int64_t kAllDiagonals =
    std::numeric_limits<std::int64_t>::max() / 2;   // beyond any diagonal

// For matrices with these extents. A single diagonal is stored without an axis for the number of diagonals.
struct DiagonalAttrs {
  kernels::DiagonalRows d;
  double padding;
};
struct BandAttrs {
  std::int64_t low, high;
};
struct AxesAttrs {
  int axes;   // a diagonal is the last `axes` axes of x
};

inline kernels::DiagonalRows diagonals(Diagonals k, std::int64_t rows, std::int64_t columns,
                                       DiagonalAlign align) {
  kernels::DiagonalRows d{k.low,
                          k.high,
                          rows,
                          columns,
                          0,
                          align == DiagonalAlign::left_left || align == DiagonalAlign::left_right,
                          align == DiagonalAlign::left_left || align == DiagonalAlign::right_left};
  d.longest = k.low > k.high ? 0 : d.length(std::clamp(0, k.low, k.high));   // nearest to the main diagonal
  return d;
}

}   // namespace tapedeck
