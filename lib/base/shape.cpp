// Shapes in messages, and how they broadcast.
#include <algorithm>

#include "tapedeck/shape.h"

namespace tapedeck {

std::string to_string(const Shape& shape) {
  std::string out = "[";
  for (int i = 0; i < shape.ndim(); ++i) out += (i ? "," : "") + std::to_string(shape[i]);
  return out + "]";
}

void Shape::throw_bad_size() const {
  const bool negative = std::any_of(begin(), end(), [](std::int64_t d) { return d < 0; });
  throw ShapeError("shape: " + std::string(negative ? "a negative extent: " : "too many elements: ") + to_string(*this));
}

Shape broadcast_shapes(const Shape& a, const Shape& b) {
  const int ndim = std::max(a.ndim(), b.ndim());
  Shape y;
  for (int d = ndim; d > 0; --d) {
    const std::int64_t m = d > a.ndim() ? 1 : a[a.ndim() - d], n = d > b.ndim() ? 1 : b[b.ndim() - d];
    if (m != n && m != 1 && n != 1) throw ShapeError("broadcast_shapes: shapes do not broadcast: " + to_string(a) + ", " + to_string(b));
    y.push_back(m == 1 ? n : m);
  }
  return y;
}

}  // namespace tapedeck
