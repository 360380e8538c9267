// Shared by the tests that use samples: run an op, change its inputs, compare.
#pragma once
#include <algorithm>
#include <cmath>
#include <complex>
#include <iterator>

#include "ops/sample_inputs.h"
#include "ops/samples.h"
#include "tapedeck/gradcheck.h"
#include "tapedeck/op.h"
#include "tapedeck/tapedeck.h"

namespace tapedeck::test {

using Tensors = std::vector<Tensor>;

/// Pointers to the tensors of a vector, in the form that ops take.
class Held {
 public:
  explicit Held(const Tensors& x) {
    for (const Tensor& t : x)
      pointers_.push_back(&t);
  }
  Refs refs() const { return {pointers_.data(), static_cast<int>(pointers_.size())}; }

 private:
  std::vector<const Tensor*> pointers_;
};

inline Tensors run(const Op& op, const Tensors& x, const OwnedAttrs& attrs) {
  return op.run(x, attrs.view());
}

inline std::vector<Spec> inferred(const Op& op, const Tensors& x, const OwnedAttrs& attrs) {
  const Held held(x);
  const Call call{.op = op, .raw_attrs = attrs.view(), .x = held.refs()};
  return op.infer.many ? op.infer.many(call) : std::vector<Spec>{op.infer.one(call)};
}

inline std::vector<Spec> specs_of(const Tensors& x) {
  std::vector<Spec> specs;
  for (const Tensor& t : x)
    specs.push_back(t.spec());
  return specs;
}

inline bool has_derivative(const Op& op) {
  return op.rule.kind != RuleKind::none && op.rule.kind != RuleKind::undefined;
}
inline Tensors trainable(const Tensors& x) {
  Tensors some;
  std::copy_if(x.begin(), x.end(), std::back_inserter(some),
               [](const Tensor& t) { return is_trainable(t.dtype()); });
  return some;
}
inline bool any_complex(const Tensors& x) {
  return std::any_of(x.begin(), x.end(), [](const Tensor& t) { return is_complex(t.dtype()); });
}

/// The elements of a tensor of any dtype.
using Number = std::complex<double>;
using Numbers = std::vector<Number>;
inline Numbers numbers_of(const Tensor& x) { return x.to_vector<Number>(); }
inline bool is_nan(Number z) { return std::isnan(z.real()) || std::isnan(z.imag()); }

/// Equal within a tolerance relative to the largest element of b, since terms cancel in others; NaN equals
/// NaN.
inline bool close(const Tensor& a, const Tensor& b, double tolerance) {
  if (a.shape() != b.shape()) return false;
  const Numbers u = numbers_of(a), v = numbers_of(b);
  double largest = 0;
  for (const Number& q : v)
    if (std::isfinite(std::abs(q))) largest = std::max(largest, std::abs(q));
  return std::equal(u.begin(), u.end(), v.begin(), [=](Number p, Number q) {
    return p == q || (is_nan(p) && is_nan(q)) || std::abs(p - q) <= tolerance * largest;
  });
}

/// A tensor of x's dtype and another shape, whose values are chosen from x by a function of the position.
/// astype to the same dtype makes no copy.
template <class F> Tensor gathered(const Tensor& x, const Shape& shape, const F& position) {
  const Numbers from = numbers_of(x);
  Numbers to(static_cast<std::size_t>(shape.size()));
  for (std::size_t i = 0; i < to.size(); ++i)
    to[i] = from[static_cast<std::size_t>(position(static_cast<std::int64_t>(i)))];
  return astype(tensor(to, shape), x.dtype());
}
inline Tensor fresh(const Tensor& x) {
  return gathered(x, x.shape(), [](std::int64_t i) { return i; });
}
/// x's values, repeated.
inline Tensor tiled(const Tensor& x, const Shape& shape) {
  return gathered(x, shape, [n = x.size()](std::int64_t i) { return i % n; });
}
/// x with all values slightly larger, so that none equals another value by chance, as in the kink of a
/// maximum.
inline Tensor nudged(const Tensor& x, double by) {
  if (!is_trainable(x.dtype())) return x;
  Numbers v = numbers_of(x);
  for (Number& e : v)
    e += by;
  return astype(tensor(v, x.shape()), x.dtype());
}
inline Tensor rotated(const Tensor& x, std::int64_t by) {
  return gathered(x, x.shape(), [=, n = x.size()](std::int64_t i) { return (i + by) % n; });
}
/// x broadcast to shape, without an op.
inline Tensor repeated(const Tensor& x, const Shape& shape) {
  return gathered(x, shape, [&](std::int64_t i) {
    std::int64_t position = 0, stride = 1;
    for (int axis = 1; axis <= shape.ndim(); ++axis) {
      const std::int64_t n = shape[shape.ndim() - axis], at = i % n,
                         own = axis <= x.ndim() ? x.shape()[x.ndim() - axis] : 1;
      i /= n;
      if (own == 1) continue;
      position += at * stride;
      stride *= own;
    }
    return position;
  });
}
/// The same values as a slice of a larger buffer, at an offset of one element.
inline Tensor at_odd_offset(const Tensor& x) {
  if (x.size() == 0) return x;
  const Tensor longer =
      gathered(x, {x.size() + 1}, [](std::int64_t i) { return std::max<std::int64_t>(i - 1, 0); });
  return reshape(slice(longer, {1}, {x.size()}), x.shape());
}
inline Tensors in_f32(const Tensors& x) {
  Tensors y;
  for (const Tensor& t : x)
    y.push_back(t.dtype() == DType::f64    ? astype(t, DType::f32)
                : t.dtype() == DType::c128 ? astype(t, DType::c64)
                                           : t);
  return y;
}
/// x[i]
inline Tensor row(const Tensor& x, std::int64_t i) {
  Shape shape;
  for (int axis = 1; axis < x.ndim(); ++axis)
    shape.push_back(x.shape()[axis]);
  return gathered(x, shape, [=, n = shape.size()](std::int64_t k) { return i * n + k; });
}

}   // namespace tapedeck::test
