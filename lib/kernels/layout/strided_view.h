// Where elements lie. In: shapes, and how an op goes along their axes. Out: a place in one tensor for each
// element of another.
#pragma once
#include <span>

#include "tapedeck/shape.h"

namespace tapedeck::kernels {

// Steps and offsets wrap around where a tensor is empty although its extents are huge; nothing is read there.
constexpr std::int64_t wrapping_mul(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}
constexpr std::int64_t wrapping_add(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

/// Places in a tensor's memory, in the order of another tensor's elements: the first, and along each axis how
/// many there are and how far one step goes. Axes of one entry are left out, and axes that continue each
/// other are one.
class StridedView {
 public:
  struct Axis {
    std::int64_t extent, stride;
  };

  explicit StridedView(std::int64_t offset = 0) : offset_(offset) {}
  /// Another axis, inside those before it.
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
  /// Whether they follow each other, so that the part of memory that they are need not be copied.
  bool contiguous() const { return ndim_ == 0 || (ndim_ == 1 && axes_[0].stride == 1); }

 private:
  std::int64_t offset_;
  std::size_t ndim_ = 0;
  Axis axes_[2 * Shape::kMaxRank];   // with repetition there are two for each of a tensor's
};

/// A tensor seen around an axis, or around several as if they were one: the elements before, along and after
/// it.
struct AxisView {
  std::int64_t before = 1, extent = 1, after = 1;
  AxisView(const Shape& shape, int axis, int axes = 1) {
    for (int d = 0; d < shape.ndim(); ++d) {
      std::int64_t& n = d < axis ? before : d < axis + axes ? extent : after;
      n = wrapping_mul(n, shape[d]);
    }
  }
};

/// The elements of x with its axes in another order: axis d is axis perm[d] of x.
StridedView permuted(const Shape& x, std::span<const std::int8_t> perm);
/// The elements of x, repeated along the axes of y that x does not have or where its extent is 1.
StridedView broadcast(const Shape& x, const Shape& y);
/// reps[d] times the elements along axis d of x, one after the other.
StridedView tiled(const Shape& x, const Shape& reps);
/// Of axis d of x: size[d] elements from begin[d] on, stride[d] apart.
StridedView sliced(const Shape& x, const Shape& begin, const Shape& size, const Shape& stride);
/// The same with strides of 1.
StridedView sliced(const Shape& x, const Shape& begin, const Shape& size);

}   // namespace tapedeck::kernels
