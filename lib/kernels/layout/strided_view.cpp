// Where elements lie, by their tensor's shape.
#include "kernels/layout/strided_view.h"

#include <array>

namespace tapedeck::kernels {
namespace {

// How far a step along each axis goes in row-major order.
class Strides {
 public:
  explicit Strides(const Shape& shape) {
    std::int64_t step = 1;
    for (int d = shape.ndim(); d-- > 0; step = times(step, shape[d]))
      steps_[static_cast<std::size_t>(d)] = step;
  }
  std::int64_t operator[](int axis) const { return steps_[static_cast<std::size_t>(axis)]; }

 private:
  std::array<std::int64_t, Shape::kMaxRank> steps_;
};

template <class F> Places part_by(const Shape& x, const Shape& begin, const Shape& size, F stride) {
  const Strides strides(x);
  std::int64_t first = 0;
  for (int d = 0; d < x.ndim(); ++d)
    first = plus(first, times(begin[d], strides[d]));
  Places places(first);
  for (int d = 0; d < x.ndim(); ++d)
    places.append(size[d], times(stride(d), strides[d]));
  return places;
}

}   // namespace

Places permuted(const Shape& x, std::span<const std::int8_t> perm) {
  const Strides strides(x);
  Places places;
  for (const int axis : perm)
    places.append(x[axis], strides[axis]);
  return places;
}

Places broadcast(const Shape& x, const Shape& y) {
  const Strides strides(x);
  const int extra = y.ndim() - x.ndim();
  Places places;
  for (int d = 0; d < y.ndim(); ++d)
    places.append(y[d], d < extra || x[d - extra] == 1 ? 0 : strides[d - extra]);
  return places;
}

Places tiled(const Shape& x, const Shape& reps) {
  const Strides strides(x);
  Places places;
  for (int d = 0; d < x.ndim(); ++d) {
    places.append(reps[d], 0);
    places.append(x[d], strides[d]);
  }
  return places;
}

Places part(const Shape& x, const Shape& begin, const Shape& size, const Shape& stride) {
  return part_by(x, begin, size, [&](int d) { return stride[d]; });
}
Places part(const Shape& x, const Shape& begin, const Shape& size) {
  return part_by(x, begin, size, [](int) { return std::int64_t{1}; });
}

}   // namespace tapedeck::kernels
