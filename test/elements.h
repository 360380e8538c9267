// Tensors with distinct elements, and checks of the positions to which an op has moved them, element by
// element and without ops.
#pragma once
#include "tapedeck/tapedeck.h"

namespace tapedeck::test {

using Index = std::vector<std::int64_t>;

/// Small enough for u8, and different from its neighbours along every axis.
inline Tensor counted(const Shape& shape, DType dtype) {
  std::vector<std::int64_t> v(static_cast<std::size_t>(shape.size()));
  for (std::size_t i = 0; i < v.size(); ++i)
    v[i] = static_cast<std::int64_t>(i * 7 % 251);
  return astype(tensor(v, shape), dtype);
}

/// Calls f(index) for every position of a shape in row-major order.
template <class F> void for_each_index(const Shape& shape, F f) {
  for (std::int64_t i = 0; i < shape.size(); ++i) {
    Index index(static_cast<std::size_t>(shape.ndim()));
    std::int64_t rest = i;
    for (int d = shape.ndim(); d-- > 0; rest /= shape[d])
      index[static_cast<std::size_t>(d)] = rest % shape[d];
    f(index);
  }
}

/// Access to the elements of a tensor by index.
class Elements {
 public:
  explicit Elements(const Tensor& x) : shape_(x.shape()), values_(x.to_vector<std::int64_t>()) {}
  std::int64_t operator[](const Index& index) const {
    std::int64_t offset = 0;
    for (int d = 0; d < shape_.ndim(); ++d)
      offset = offset * shape_[d] + index[static_cast<std::size_t>(d)];
    return values_.at(static_cast<std::size_t>(offset));
  }

 private:
  Shape shape_;
  std::vector<std::int64_t> values_;
};

/// Whether y[index] = x[position(index)] everywhere.
template <class F> bool maps(const Tensor& y, const Tensor& x, F position) {
  const Elements of_x(x), of_y(y);
  bool same = y.dtype() == x.dtype();
  for_each_index(y.shape(), [&](const Index& index) { same &= of_y[index] == of_x[position(index)]; });
  return same;
}

inline constexpr DType kAll[] = {DType::f32, DType::f64, DType::i8,     DType::i32,
                                 DType::i64, DType::u8,  DType::boolean};

/// A tensor without elements whose other extents multiply to more than 2^64.
inline Tensor huge_and_empty(DType dtype = DType::f32) {
  return zeros({std::int64_t{1} << 40, 0, std::int64_t{1} << 40}, dtype);
}

}   // namespace tapedeck::test
