// Creates tensors from given values.
#include "tapedeck/creation.h"

#include <algorithm>
#include <cmath>

#include "core/bytes.h"
#include "core/cast.h"
#include "core/convert.h"
#include "core/format.h"
#include "core/storage.h"
#include "core/trace.h"
#include "core/visit.h"

namespace tapedeck {
namespace {

template <class F> Tensor filled(const Spec& spec, F value_at) {
  if (!is_computed(spec.dtype))
    return shown(cast(filled({dtype_of<decltype(value_at(0))>, spec.shape}, value_at), spec.dtype));
  Tensor y = allocate(spec);
  visit_any(spec.dtype, [&](auto t) {
    using T = decltype(t);
    T* out = elements<T>(y);
    for (std::int64_t i = 0; i < y.size(); ++i)
      out[i] = convert<T>(value_at(i));
  });
  return shown(y);
}

}   // namespace

Tensor full(const Shape& shape, double value, DType dtype) {
  Tensor y = allocate({dtype, shape});
  fill(y, value);
  return shown(y);
}

Tensor zeros(const Shape& shape, DType dtype) { return full(shape, 0, dtype); }
Tensor ones(const Shape& shape, DType dtype) { return full(shape, 1, dtype); }
Tensor full_like(const Tensor& x, double value) { return full(x.shape(), value, x.dtype()); }

Tensor arange(double start, double stop, double step, DType dtype) {
  const double count = std::ceil((stop - start) / step);
  if (step == 0 || !std::isfinite(count) || !std::isfinite(start))
    throw_error<ArgumentError>("arange: no steps of {} lead from {} to {}", step, start, stop);
  if (count > 1e15) throw_error<ShapeError>("arange: too many elements: {} to {} by {}", start, stop, step);
  return filled({dtype, {static_cast<std::int64_t>(std::max(0.0, count))}},
                [&](std::int64_t i) { return start + static_cast<double>(i) * step; });
}

Tensor arange(double start, double stop, DType dtype) { return arange(start, stop, 1, dtype); }

Tensor arange(std::int64_t n, DType dtype) {
  return filled({dtype, {n}}, [](std::int64_t i) { return i; });
}

Tensor linspace(double start, double stop, std::int64_t count, DType dtype) {
  if (count < 0) throw_error<ArgumentError>("linspace: {} elements; use 0 or more", count);
  const double step = count > 1 ? (stop - start) / static_cast<double>(count - 1) : 0;
  return filled({dtype, {count}}, [&](std::int64_t i) {
    return i && i == count - 1 ? stop : start + static_cast<double>(i) * step;
  });
}

Tensor eye(std::int64_t n, DType dtype) { return eye(n, n, dtype); }
Tensor eye(std::int64_t n, std::int64_t m, DType dtype) {
  Tensor y = zeros({n, m}, dtype);
  visit_stored(dtype, [&](auto t) {
    using T = decltype(t);
    for (std::int64_t i = 0; i < std::min(n, m); ++i)
      elements<T>(y)[i * (m + 1)] = convert<T>(1.0);
  });
  return y;
}

}   // namespace tapedeck
