// Multi-dimensional positions along the first axes of a tensor.
#include "ops/layout/positions.h"

#include <algorithm>
#include <limits>

#include "core/format.h"
#include "core/storage.h"

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
  if (indices.ndim() == 0) throw_shape_error(c, "indices need an axis of coordinates");
  if (const std::int64_t depth = indices[indices.ndim() - 1]; depth > axes)
    throw_shape_error(c, fmt::format("{} coordinates for {} axes", depth, axes));
}

Tensor flat_indices(const Call& c, const Shape& indexed, std::string_view name, const Spec& spec) {
  const Tensor& indices = c.x[1];
  const std::int64_t count = entries_of(c).size();
  const int depth = depth_of(c);
  Tensor flat = allocate({DType::i64, {count}});
  visit_indices(indices, [&](const auto list) {
    const auto* index = list.data();
    for (std::int64_t k = 0; k < count; ++k, index += depth) {
      std::uint64_t position = 0;   // wraps around only where the entries have no elements
      for (int d = 0; d < depth; ++d) {
        if (index[d] < 0 || index[d] >= indexed[d])
          throw_error<ShapeError>("{}: index [{}] at position {} is out of range for {}, {}", c.op.name,
                                  fmt::join(index, index + depth, ","), k, name, spec);
        position = position * static_cast<std::uint64_t>(indexed[d]) + static_cast<std::uint64_t>(index[d]);
      }
      elements<std::int64_t>(flat)[k] = static_cast<std::int64_t>(position);
    }
  });
  return flat;
}

std::optional<Outside> first_outside(const Tensor& indices, std::int64_t extent,
                                     bool negative_means_something) {
  const std::int64_t least = negative_means_something ? std::numeric_limits<std::int64_t>::min() : 0;
  const auto is_outside = [=](std::int64_t index) { return (index < least) | (index >= extent); };
  return visit_indices(indices, [&](const auto list) -> std::optional<Outside> {
    bool any = false;
    for (const std::int64_t index : list)
      any |= is_outside(index);   // no early exit, so that the loop is vectorized
    if (!any) return {};
    const auto at = std::find_if(list.begin(), list.end(), is_outside);
    return Outside{*at, at - list.begin()};
  });
}

void require_in_range(const Call& c, const Tensor& indexed, std::string_view name, int axis) {
  if (const auto o = first_outside(c.x[1], indexed.shape()[axis]))
    throw_error<ShapeError>("{}: index {} at position {} is out of range for axis {} of {}, {}", c.op.name,
                            o->index, o->position, axis, name, indexed.spec());
}

}   // namespace tapedeck
