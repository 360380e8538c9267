// Multi-dimensional positions along the first axes of a tensor.
#include "ops/layout/positions.h"

#include <fmt/format.h>

#include "core/format.h"
#include "core/host_view.h"
#include "core/storage.h"
#include "kernels/layout/index_check.h"

namespace tapedeck {

Shape replaced(const Shape& shape, int axis, int count, const Shape& others) {
  Shape result(shape.dims().first(static_cast<std::size_t>(axis)));
  for (const std::int64_t d : others)
    result.push_back(d);
  for (int d = axis + count; d < shape.ndim(); ++d)
    result.push_back(shape[d]);
  return result;
}

void require_nd_indices(const Call& c, int axes) {
  require_indices(c, 1);
  const Shape& indices = c.x[1].shape();
  if (indices.ndim() == 0) c.throw_shape_error("indices need an axis of coordinates");
  if (const std::int64_t depth = indices[indices.ndim() - 1]; depth > axes)
    c.throw_shape_error(fmt::format("{} coordinates for {} axes", depth, axes));
}

Tensor flat_indices(const Call& c, const Shape& indexed, std::string_view name, const Spec& spec) {
  const Tensor& indices = c.x[1];
  const int depth = depth_of(c);
  const Shape extents(indexed.dims().first(static_cast<std::size_t>(depth)));
  Tensor flat = allocate({DType::i64, {entries_of(c).size()}});
  if (const auto k = kernels::flatten_positions(indices, extents, flat)) {
    const Tensor wide = to_i64(indices);
    const std::int64_t* first = HostView<std::int64_t>(wide, c.op.name).data() + *k * depth;
    throw_error<ShapeError>("{}: index [{}] at position {} is out of range for {}, {}", c.op.name,
                            fmt::join(first, first + depth, ","), *k, name, spec);
  }
  return flat;
}

void require_in_range(const Call& c, const Tensor& indexed, std::string_view name, int axis) {
  if (const auto o = kernels::first_outside(c.x[1], indexed.shape()[axis]))
    throw_error<ShapeError>("{}: index {} at position {} is out of range for axis {} of {}, {}", c.op.name,
                            o->index, o->position, axis, name, indexed.spec());
}

}   // namespace tapedeck
