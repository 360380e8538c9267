// The attributes of pooling, made from windows or from bounds of regions.
#pragma once
#include <memory>
#include <vector>

#include "kernels/nn/pool.h"
#include "ops/nn/window.h"
#include "tapedeck/ops/array.h"

namespace tapedeck {

// Windows over rows (axes = 1) or images (axes = 2). through: the positions of maxima are counted across all
// images of the batch.
struct PoolAttrs {
  std::shared_ptr<const kernels::Pool> pool;
  int axes;
  bool through = false;

  Shape inputs() const {
    return axes == 1 ? Shape{pool->columns.extent} : Shape{pool->rows.extent, pool->columns.extent};
  }
  Shape outputs() const {
    return axes == 1 ? Shape{pool->columns.outputs()} : Shape{pool->rows.outputs(), pool->columns.outputs()};
  }
};
// Maxima and means are separable: a volume is pooled within its planes, and then across them, with the pixels
// of a plane treated as channels.
struct VolumeAttrs {
  PoolAttrs plane, across;

  Shape inputs() const {
    return {across.pool->rows.extent, plane.pool->rows.extent, plane.pool->columns.extent};
  }
  Shape outputs() const {
    return {across.pool->rows.outputs(), plane.pool->rows.outputs(), plane.pool->columns.outputs()};
  }
  /// Reshapes [..., planes, rows, columns, channels] to [..., planes, 1, rows · columns · channels]. unfolded
  /// is the inverse.
  Tensor folded(const Tensor& planes) const {
    const Shape& s = planes.shape();
    const int n = planes.ndim();
    return reshape(planes,
                   behind(tapedeck::front_of(planes, 4), {s[n - 4], 1}, s[n - 3] * s[n - 2] * s[n - 1]));
  }
  Tensor unfolded(const Tensor& y) const {
    const Shape out = outputs();
    return reshape(y, behind(tapedeck::front_of(y, 3), {y.shape()[y.ndim() - 3], out[1], out[2]},
                             channels_of(y) / (out[1] * out[2])));
  }
};

inline kernels::PoolAxis axis_of(const kernels::WindowAxis& w) {
  kernels::PoolAxis axis{w.extent, {}};
  for (std::int64_t o = 0; o < w.outputs; ++o)
    axis.cells.push_back(
        {std::max<std::int64_t>(w.position(o, 0), 0), std::min(w.position(o, 0) + w.size, w.extent)});
  return axis;
}
inline PoolAttrs pool_of(kernels::PoolAxis rows, kernels::PoolAxis columns) {
  return {std::make_shared<const kernels::Pool>(kernels::Pool{std::move(rows), std::move(columns)}), 2};
}
inline PoolAttrs pool_of(const WindowAttrs& a) {
  const Window2d& w = a.window.plane;
  if (a.axes == 1) return {std::make_shared<const kernels::Pool>(kernels::Pool{{}, axis_of(w.columns)}), 1};
  return pool_of(axis_of(w.rows), axis_of(w.columns));
}
inline VolumeAttrs volume_pool_of(const WindowAttrs& a) {
  return {pool_of(WindowAttrs{a.window, 2}), pool_of(axis_of(a.window.planes), {})};
}

// Regions between the bounds. If overlapping, each also includes the first cell of the next region.
inline kernels::PoolAxis axis_of(const std::vector<std::int64_t>& bounds, bool overlapping) {
  kernels::PoolAxis axis{bounds.back(), {}};
  for (std::size_t o = 0; o + 1 < bounds.size(); ++o)
    axis.cells.push_back({bounds[o], std::min(bounds[o + 1] + (overlapping ? 1 : 0), bounds.back())});
  return axis;
}
inline PoolAttrs pool_of(const std::vector<std::int64_t>& rows, const std::vector<std::int64_t>& columns,
                         bool overlapping) {
  return pool_of(axis_of(rows, overlapping), axis_of(columns, overlapping));
}

}   // namespace tapedeck
