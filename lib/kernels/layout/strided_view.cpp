// Builds strided views from shapes.
#include "kernels/layout/strided_view.h"

#include <array>

namespace tapedeck::kernels {
namespace {

// Row-major strides of a shape.
class Strides {
 public:
  explicit Strides(const Shape& shape) {
    std::int64_t step = 1;
    for (int d = shape.ndim(); d-- > 0; step = wrapping_mul(step, shape[d]))
      steps_[static_cast<std::size_t>(d)] = step;
  }
  std::int64_t operator[](int axis) const { return steps_[static_cast<std::size_t>(axis)]; }

 private:
  std::array<std::int64_t, Shape::kMaxRank> steps_;
};

template <class F> StridedView sliced_by(const Shape& x, const Shape& begin, const Shape& size, F stride) {
  const Strides strides(x);
  std::int64_t offset = 0;
  for (int d = 0; d < x.ndim(); ++d)
    offset = wrapping_add(offset, wrapping_mul(begin[d], strides[d]));
  StridedView view(offset);
  for (int d = 0; d < x.ndim(); ++d)
    view.append(size[d], wrapping_mul(stride(d), strides[d]));
  return view;
}

}   // namespace

StridedView permuted(const Shape& x, std::span<const std::int8_t> perm) {
  const Strides strides(x);
  StridedView view;
  for (const int axis : perm)
    view.append(x[axis], strides[axis]);
  return view;
}

StridedView broadcast(const Shape& x, const Shape& y) {
  const Strides strides(x);
  const int extra = y.ndim() - x.ndim();
  StridedView view;
  for (int d = 0; d < y.ndim(); ++d)
    view.append(y[d], d < extra || x[d - extra] == 1 ? 0 : strides[d - extra]);
  return view;
}

StridedView tiled(const Shape& x, const Shape& reps) {
  const Strides strides(x);
  StridedView view;
  for (int d = 0; d < x.ndim(); ++d) {
    view.append(reps[d], 0);
    view.append(x[d], strides[d]);
  }
  return view;
}

StridedView sliced(const Shape& x, const Shape& begin, const Shape& size, const Shape& stride) {
  return sliced_by(x, begin, size, [&](int d) { return stride[d]; });
}
StridedView sliced(const Shape& x, const Shape& begin, const Shape& size) {
  return sliced_by(x, begin, size, [](int) { return std::int64_t{1}; });
}

}   // namespace tapedeck::kernels
