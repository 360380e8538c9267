// Creates tensors from the caller's numbers, and accesses their elements.
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

// Integers in a list with floating-point or complex numbers do not affect the dtype, so that an i32 does not
// lead to f64.
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

}   // namespace tapedeck
