// Drops axes of extent 1, and merges adjacent axes along which the same operands move.
#include "kernels/elementwise/broadcast.h"

#include <utility>

namespace tapedeck::kernels {

Rows rows_of(const Shape& y, std::span<const Shape* const> x) {
  const int n = static_cast<int>(x.size());
  Rows rows;
  rows.operands = n;
  Offsets stride;   // of each operand, for the current axis
  stride.fill(1);
  std::array<bool, kMaxBroadcast> moves{};
  std::int64_t dim = 1;
  bool inner_done = false;
  const auto close = [&] {
    if (std::exchange(inner_done, true)) {
      rows.dims[rows.outer++] = dim;
      rows.count *= dim;
    } else {
      rows.inner = dim;
      rows.moves = moves;
    }
  };
  for (int axis = y.ndim() - 1; axis >= 0; --axis) {
    if (y[axis] == 1) continue;
    std::array<bool, kMaxBroadcast> here{};
    for (std::size_t i = 0; i < x.size(); ++i) {
      const int a = axis - (y.ndim() - x[i]->ndim());
      here[i] = a >= 0 && (*x[i])[a] != 1;
    }
    if (dim != 1 && here == moves) {
      dim *= y[axis];
    } else {
      if (dim != 1) close();
      dim = y[axis];
      moves = here;
      if (inner_done)
        for (std::size_t i = 0; i < x.size(); ++i)
          rows.strides[rows.outer][i] = here[i] ? stride[i] : 0;
    }
    for (std::size_t i = 0; i < x.size(); ++i)
      if (here[i]) stride[i] *= y[axis];
  }
  close();
  return rows;
}

}   // namespace tapedeck::kernels
