// Factories of tensors, and access to their elements.
#include "tapedeck/tensor.h"

#include <algorithm>
#include <cmath>
#include <complex>

#include "core/bytes.h"
#include "core/cast.h"
#include "core/convert.h"
#include "core/format.h"
#include "core/host_view.h"
#include "core/parallel.h"
#include "core/storage.h"
#include "core/trace.h"
#include "core/visit.h"

namespace tapedeck {
namespace {

// A tensor made of numbers on the host.
Tensor shown(const Tensor& y) {
  if (thread_state.trace) [[unlikely]]
    thread_state.trace->on_host_tensor(y);
  return y;
}

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

void require_data(const Tensor& x) {
  if (x.size() && !x.has_values()) throw InternalError("data: this tensor's data was not kept");
}

}   // namespace

std::span<const std::byte> look_at(const Tensor& x, std::optional<DType> dtype, std::string_view reader) {
  if (dtype && *dtype != x.dtype())
    throw_error<DTypeError>("{}: the tensor is {}, not {}; use astype", reader, x.spec(), *dtype);
  require_data(x);
  if (thread_state.trace) [[unlikely]]
    thread_state.trace->on_host_read(x, reader);
  return {x.raw(), static_cast<std::size_t>(x.nbytes())};
}

void detail::throw_undefined() {
  throw ArgumentError("tensor: undefined; it was default-constructed or moved from");
}

const void* Tensor::data_as(DType t) const {
  if (t != dtype()) throw_error<DTypeError>("data: the tensor is {}, not {}; use astype", spec(), t);
  require_data(*this);
  if (thread_state.trace) [[unlikely]]
    thread_state.trace->on_host_read(*this);
  return raw();
}

void Tensor::require_one() const {
  if (size() != 1)
    throw_error<ShapeError>("item: the tensor has {} elements: {}; use at or to_vector", size(), spec());
}

Tensor detail::tensor_from(const void* values, DType from, const Shape& shape, DType to) {
  Tensor y = allocate({to, shape});
  convert_elements(from, values, to, y.raw(), y.size());
  return shown(y);
}

// Integers beside floating-point and complex numbers do not count, so that an i32 does not make f64.
detail::Mixed::Mixed(std::initializer_list<Mixed> list) {
  Shape shape{static_cast<std::int64_t>(list.size())};
  if (list.size()) {
    dtype_ = list.begin()->dtype_;
    for (const std::int64_t n : list.begin()->values_.shape())
      shape.push_back(n);
  }
  for (const Mixed& entry : list) {
    if (entry.values_.shape() != list.begin()->values_.shape())
      throw ShapeError("tensor: the rows of the list differ in length");
    if (is_trainable(dtype_) == is_trainable(entry.dtype_))
      dtype_ = promote(dtype_, entry.dtype_);
    else if (is_trainable(entry.dtype_))
      dtype_ = entry.dtype_;
  }
  values_ = allocate({is_trainable(dtype_) ? DType::c128 : DType::i64, shape});
  std::byte* out = values_.raw();
  for (const Mixed& entry : list) {
    const std::int64_t n = entry.values_.size();
    convert_to(entry.values_, 0, n, values_.dtype(), out);
    out += n * size_of(values_.dtype());
  }
}

Tensor detail::Mixed::tensor(std::optional<DType> dtype) const {
  return tensor_from(values_.raw(), values_.dtype(), values_.shape(), dtype.value_or(dtype_));
}

void detail::convert_to(const Tensor& x, std::int64_t first, std::int64_t count, DType to, void* out) {
  require_data(x);
  if (thread_state.trace) [[unlikely]]
    thread_state.trace->on_host_read(x);
  if (is_complex(x.dtype()) && !is_complex(to))
    throw_error<DTypeError>("tensor: {} is not {}; ask for std::complex, or take real, imag or abs", x.spec(),
                            to);
  convert_elements(x.dtype(), x.raw() + first * size_of(x.dtype()), to, out, count);
}

std::int64_t detail::offset_of(const Tensor& x, std::span<const std::int64_t> index) {
  const Shape& shape = x.shape();
  if (static_cast<int>(index.size()) != shape.ndim())
    throw_error<ShapeError>("at: {} indices for {}", index.size(), x.spec());
  std::int64_t offset = 0;
  for (int axis = 0; axis < shape.ndim(); ++axis) {
    const std::int64_t n = shape[axis], i = index[static_cast<std::size_t>(axis)];
    if (i < -n || i >= n)
      throw_error<ShapeError>("at: index {} is out of range for axis {} of {}", i, axis, x.spec());
    offset = offset * n + (i < 0 ? i + n : i);
  }
  return offset;
}

Tensor full(const Shape& shape, double value, DType dtype) {
  Tensor y = allocate({dtype, shape});
  fill(y, value);
  return shown(y);
}

Tensor arange(double start, double stop, double step, DType dtype) {
  const double count = std::ceil((stop - start) / step);
  if (step == 0 || !std::isfinite(count) || !std::isfinite(start))
    throw_error<ArgumentError>("arange: no steps of {} lead from {} to {}", step, start, stop);
  if (count > 1e15) throw_error<ShapeError>("arange: too many elements: {} to {} by {}", start, stop, step);
  return filled({dtype, {static_cast<std::int64_t>(std::max(0.0, count))}},
                [&](std::int64_t i) { return start + static_cast<double>(i) * step; });
}

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

Tensor eye(std::int64_t n, std::optional<std::int64_t> m, DType dtype) {
  const std::int64_t columns = m.value_or(n);
  Tensor y = zeros({n, columns}, dtype);
  visit_stored(dtype, [&](auto t) {
    using T = decltype(t);
    for (std::int64_t i = 0; i < std::min(n, columns); ++i)
      elements<T>(y)[i * (columns + 1)] = convert<T>(1.0);
  });
  return y;
}

}   // namespace tapedeck
