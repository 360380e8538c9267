// StridedView: which elements of one tensor correspond to the elements of another, in row-major order. Built
// from shapes; copy.h moves elements through it.
#pragma once
#include <span>

#include "tapedeck/shape.h"

namespace tapedeck::kernels {

// Strides and offsets may overflow for empty tensors of huge extents. They then wrap around, but are never
// used for an access.
constexpr std::int64_t wrapping_mul(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}
constexpr std::int64_t wrapping_add(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

/// Elements of a tensor in the order of another tensor's elements: an offset, and an extent and a stride for
/// each axis. Axes of extent 1 are dropped; axes that are contiguous with each other are merged.
class StridedView {
 public:
  struct Axis {
    std::int64_t extent, stride;
  };

  explicit StridedView(std::int64_t offset = 0) : offset_(offset) {}
  /// Appends an axis inside the present ones.
  void append(std::int64_t extent, std::int64_t stride) {
    if (extent == 1) return;
    if (ndim_ && axes_[ndim_ - 1].stride == wrapping_mul(stride, extent))
      axes_[ndim_ - 1] = {wrapping_mul(axes_[ndim_ - 1].extent, extent), stride};
    else
      axes_[ndim_++] = {extent, stride};
  }

  std::int64_t offset() const { return offset_; }
  std::size_t ndim() const { return ndim_; }
  const Axis& operator[](std::size_t d) const { return axes_[d]; }
  /// Whether the elements are contiguous, so that memory can be shared instead of copied.
  bool contiguous() const { return ndim_ == 0 || (ndim_ == 1 && axes_[0].stride == 1); }

 private:
  std::int64_t offset_;
  std::size_t ndim_ = 0;
  Axis axes_[2 * Shape::kMaxRank];   // tiling needs two per axis of a tensor
};

/// A tensor seen as [before, extent, after] around one axis, or around several adjacent axes merged into one:
/// as `before` slabs of `extent` rows of `after` elements.
struct AxisView {
  std::int64_t before = 1, extent = 1, after = 1;
  AxisView(const Shape& shape, int axis, int axes = 1) {
    for (int d = 0; d < shape.ndim(); ++d) {
      std::int64_t& n = d < axis ? before : d < axis + axes ? extent : after;
      n = wrapping_mul(n, shape[d]);
    }
  }
};

/// x with permuted axes: axis d is axis perm[d] of x.
StridedView permuted(const Shape& x, std::span<const std::int8_t> perm);
/// x broadcast to shape y.
StridedView broadcast(const Shape& x, const Shape& y);
/// x tiled reps[d] times along axis d.
StridedView tiled(const Shape& x, const Shape& reps);
/// A slice: size[d] elements of axis d from begin[d] on, stride[d] apart.
StridedView sliced(const Shape& x, const Shape& begin, const Shape& size, const Shape& stride);
/// A slice with strides of 1.
StridedView sliced(const Shape& x, const Shape& begin, const Shape& size);

}   // namespace tapedeck::kernels
