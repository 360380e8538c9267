// Where elements lie. In: shapes, and how an op goes along their axes. Out: a place in one tensor for each
// element of another.
#pragma once
#include <span>

#include "tapedeck/shape.h"

namespace tapedeck::kernels {

// Steps and offsets wrap around where a tensor is empty although its extents are huge; nothing is read there.
constexpr std::int64_t times(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}
constexpr std::int64_t plus(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

/// Places in a tensor's memory, in the order of another tensor's elements: the first, and along each axis how
/// many there are and how far one step goes. Axes of one entry are left out, and axes that continue each
/// other are one.
class Places {
 public:
  struct Axis {
    std::int64_t extent, step;
  };

  explicit Places(std::int64_t first = 0) : first_(first) {}
  /// Another axis, inside those before it.
  void append(std::int64_t extent, std::int64_t step) {
    if (extent == 1) return;
    if (ndim_ && axes_[ndim_ - 1].step == times(step, extent))
      axes_[ndim_ - 1] = {times(axes_[ndim_ - 1].extent, extent), step};
    else
      axes_[ndim_++] = {extent, step};
  }

  std::int64_t first() const { return first_; }
  std::size_t ndim() const { return ndim_; }
  const Axis& operator[](std::size_t d) const { return axes_[d]; }
  /// Whether they follow each other, so that the part of memory that they are need not be copied.
  bool contiguous() const { return ndim_ == 0 || (ndim_ == 1 && axes_[0].step == 1); }

 private:
  std::int64_t first_;
  std::size_t ndim_ = 0;
  Axis axes_[2 * Shape::kMaxRank];   // with repetition there are two for each of a tensor's
};

/// A tensor seen around an axis, or around several as if they were one: the elements before, along and after
/// it.
struct AroundAxis {
  std::int64_t before = 1, extent = 1, after = 1;
  AroundAxis(const Shape& shape, int axis, int axes = 1) {
    for (int d = 0; d < shape.ndim(); ++d) {
      std::int64_t& n = d < axis ? before : d < axis + axes ? extent : after;
      n = times(n, shape[d]);
    }
  }
};

/// The elements of x with its axes in another order: axis d is axis perm[d] of x.
Places permuted(const Shape& x, std::span<const std::int8_t> perm);
/// The elements of x, repeated along the axes of y that x does not have or where its extent is 1.
Places broadcast(const Shape& x, const Shape& y);
/// reps[d] times the elements along axis d of x, one after the other.
Places tiled(const Shape& x, const Shape& reps);
/// Of axis d of x: size[d] elements from begin[d] on, stride[d] apart.
Places part(const Shape& x, const Shape& begin, const Shape& size, const Shape& stride);
/// The same with strides of 1.
Places part(const Shape& x, const Shape& begin, const Shape& size);

}   // namespace tapedeck::kernels
