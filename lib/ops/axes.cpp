// Masks of axes, and axes moved to the end and back.
#include "ops/axes.h"

#include "core/format.h"
#include "tapedeck/ops/array.h"

namespace tapedeck {

unsigned mask_of(std::string_view op, std::string_view arg, const Axes& axes, int ndim) {
  if (axes.all) return (1u << ndim) - 1;
  unsigned mask = 0;
  for (const int axis : axes.list) {
    if (ndim == 0 && (axis == 0 || axis == -1)) continue;   // the only element
    const unsigned bit = 1u << (ndim - 1 - checked_axis(op, arg, axis, ndim));
    if (mask & bit)
      throw_error<ShapeError>("{}: axis {} is named twice for {} of rank {}", op, axis, arg, ndim);
    mask |= bit;
  }
  return mask;
}

int checked_position(std::string_view name, int axis, int ndim, const Tensor& x) {
  if (axis < -ndim || axis >= ndim)
    throw_error<ShapeError>("{}: axis {} is out of range for x, {}; use {}..{}", name, axis, x.spec(), -ndim,
                            ndim - 1);
  return axis < 0 ? axis + ndim : axis;
}

Tensor with_axis_last(const Tensor& x, int axis) {
  if (axis == x.ndim() - 1) return x;
  std::vector<int> perm;
  for (int d = 0; d < x.ndim(); ++d)
    if (d != axis) perm.push_back(d);
  perm.push_back(axis);
  return transpose(x, perm);
}

Tensor with_last_axis_at(const Tensor& x, int axis) {
  if (axis == x.ndim() - 1) return x;
  std::vector<int> perm;
  for (int d = 0; d < x.ndim(); ++d)
    perm.push_back(d < axis ? d : d == axis ? x.ndim() - 1 : d - 1);
  return transpose(x, perm);
}

Spec replaced_last(const Call& c, const Shape& from, const Shape& to) {
  const Tensor& x = c.x[0];
  if (x.ndim() < from.ndim() || behind_extra(x, from.ndim(), from) != x.shape())
    c.throw_shape_error(fmt::format("the last axes of x must be {}", from));
  return {x.dtype(), behind_extra(x, from.ndim(), to)};
}

}   // namespace tapedeck
