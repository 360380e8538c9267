// Shapes, specs and dtypes as text; broadcasting.
#include <algorithm>
#include <ostream>

#include "tapedeck/shape.h"

namespace tapedeck {

std::string to_string(const Shape& shape) {
  std::string out = "[";
  for (int i = 0; i < shape.ndim(); ++i) {
    if (i) out += ',';
    out += std::to_string(shape[i]);
  }
  return out += ']';
}
std::ostream& operator<<(std::ostream& out, const Shape& shape) { return out << to_string(shape); }
std::ostream& operator<<(std::ostream& out, const Spec& spec) { return out << to_string(spec); }
std::ostream& operator<<(std::ostream& out, DType t) { return out << name_of(t); }

std::int64_t Shape::unusual_size() const {
  if (std::any_of(begin(), end(), [](std::int64_t d) { return d < 0; }))
    throw ShapeError("shape: a negative extent: " + to_string(*this));
  if (std::find(begin(), end(), 0) == end())
    throw ShapeError("shape: too many elements: " + to_string(*this));
  return 0;
}

Shape broadcast_shapes(const Shape& a, const Shape& b) {
  const int ndim = std::max(a.ndim(), b.ndim());
  Shape y;
  for (int d = ndim; d > 0; --d) {
    const std::int64_t m = d > a.ndim() ? 1 : a[a.ndim() - d], n = d > b.ndim() ? 1 : b[b.ndim() - d];
    if (m != n && m != 1 && n != 1)
      throw ShapeError("broadcast_shapes: shapes do not broadcast: " + to_string(a) + ", " + to_string(b));
    y.push_back(m == 1 ? n : m);
  }
  return y;
}

}   // namespace tapedeck
