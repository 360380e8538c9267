// Gradients against the variables they are for.
#include "base/format.h"
#include "optim/step.h"

namespace tapedeck {
namespace {

template <class E> [[noreturn]] void throw_misfit(const Variable& v, const Spec& gradient) {
  throw_error<E>("apply_gradients: the gradient does not fit variable \"{}\": gradient is {}, variable is {}", v.name(), gradient, Spec{v.dtype(), v.shape()});
}

void check_spec(DType dtype, const Shape& shape, const Variable& v) {
  const Tensor& x = v.cell().value;
  if (dtype != x.dtype()) throw_misfit<DTypeError>(v, {dtype, shape});
  if (shape != x.shape()) throw_misfit<ShapeError>(v, {dtype, shape});
}

}  // namespace

void check(const Gradient& g, const Variable& v) {
  const Tensor& x = v.cell().value;
  if (!is_floating(x.dtype())) throw_error<DTypeError>("apply_gradients: variable \"{}\" is {}; use f32 or f64", v.name(), x.spec());
  const IndexedSlices* slices = g.slices();
  if (!slices) return check_spec(g.tensor().dtype(), g.tensor().shape(), v);
  const Shape& shape = slices->dense_shape ? *slices->dense_shape : x.shape();
  validate({slices->values, slices->indices, shape}, "apply_gradients", v.name());
  check_spec(slices->values.dtype(), shape, v);
  if (v.constraint()) throw_error<ArgumentError>("apply_gradients: variable \"{}\" has a constraint, and its gradient is sparse; make it dense", v.name());
}

}  // namespace tapedeck
