// Axes as masks.
#include "ops/axes.h"

#include "base/format.h"

namespace tapedeck {

unsigned mask_of(const Op& op, const Axes& axes, int ndim) {
  if (axes.all) return (1u << ndim) - 1;
  unsigned mask = 0;
  for (const int axis : axes.list) {
    const unsigned bit = 1u << (ndim - 1 - checked_axis(op, axis, ndim));
    if (mask & bit) throw_error<ShapeError>("{}: axis {} is named twice for {} of rank {}", op.name, axis, op.args[0], ndim);
    mask |= bit;
  }
  return mask;
}

int checked_position(std::string_view name, int axis, int ndim, const Tensor& x) {
  if (axis < -ndim || axis >= ndim) throw_error<ShapeError>("{}: axis {} is out of range for x, {}; use {}..{}", name, axis, x.spec(), -ndim, ndim - 1);
  return axis < 0 ? axis + ndim : axis;
}

}  // namespace tapedeck
