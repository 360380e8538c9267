// Conversion from and to xtensor arrays. Opt-in: the only header of the library that includes xtensor.
#pragma once
#include <memory>

#include <xtensor/xadapt.hpp>
#include <xtensor/xnoalias.hpp>

#include "tapedeck/op.h"

namespace tapedeck {

/// A tensor with the values of an array, a view or a lazy expression, of any layout; the expression's value
/// type determines the dtype.
template <class E> Tensor from_xtensor(const xt::xexpression<E>& expression) {
  using T = typename E::value_type;
  const E& values = expression.derived_cast();
  const std::vector<std::size_t> extents(values.shape().begin(), values.shape().end());
  Shape shape;
  for (const std::size_t n : extents)
    shape.push_back(static_cast<std::int64_t>(n));
  Tensor result = zeros(shape, dtype_of<T>);
  const std::span<T> out = writable<T>(result);
  xt::noalias(xt::adapt(out.data(), out.size(), xt::no_ownership(), extents)) = values;
  return result;
}

/// The elements of x as a constant xtensor array, without a copy; the array keeps them alive. Throws
/// DTypeError if T is not the element type of x.
template <class T> auto as_xtensor(Tensor x) {
  const std::span<const T> values = x.data<T>();
  std::vector<std::size_t> extents;
  for (const std::int64_t n : x.shape())
    extents.push_back(static_cast<std::size_t>(n));
  return xt::adapt_smart_ptr(
      values.data(), extents,
      std::make_shared<const Tensor>(std::move(x)));   // xtensor takes owners as smart pointers
}

}   // namespace tapedeck
