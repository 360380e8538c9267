// Shape and dtype inference, and checks of inputs, for the op tables.
#pragma once
#include "tapedeck/op.h"

namespace tapedeck {

/// The shape that the inputs broadcast to. Throws ShapeError, naming the op and its inputs.
Shape broadcast_of(const Call& c);
/// Whether x can be broadcast to that shape.
bool broadcasts_to(const Shape& x, const Shape& shape);
/// The broadcast shape of the inputs, which must all be f32 or all be f64.
Spec elementwise(const Call& c);
/// Like elementwise, and also for c64 and c128.
Spec complex_elementwise(const Call& c);
/// arithmetic: like elementwise, and also for all integers. numeric: like arithmetic, and also for c64 and
/// c128.
Spec arithmetic(const Call& c);
Spec numeric(const Call& c);
/// bool of the broadcast shape; the inputs must have one dtype.
Spec comparison(const Call& c);
/// The first input's spec, of any dtype.
Spec same_as_first(const Call& c);
/// The first input's spec, which must be f32 or f64 of rank 1 or more.
Spec infer_rows(const Call& c);
/// Like infer_rows, and also for c64 and c128.
Spec infer_complex_rows(const Call& c);
/// The spec that all inputs, of any number, must have. Throws DTypeError or ShapeError if two differ.
Spec all_alike(const Call& c);
/// Throws ShapeError unless the first input has rank n or more: attributes refer to its last n axes.
void require_axes(const Call& c, int n);
/// Throws DTypeError, naming the op and its inputs, unless input i is f32 or f64.
void require_floating(const Call& c, int i);
/// Like require_floating, but also accepts c64 and c128.
void require_trainable(const Call& c, int i);
/// require_complex throws DTypeError unless the first input is c64 or c128; require_real throws it if that
/// input is complex.
void require_complex(const Call& c);
void require_real(const Call& c);
/// Whether x is i32 or i64.
bool holds_indices(const Tensor& x);
/// Throws DTypeError, naming the input, unless input i is i32 or i64.
void require_indices(const Call& c, int i);
/// Throws DTypeError unless all inputs have one dtype.
void require_one_dtype(const Call& c);
/// The axis counted from 0, of a tensor of rank `ndim`. Throws ShapeError: "sum: axis 3 is out of range for x
/// of rank 2; use -2..1".
int checked_axis(std::string_view op, std::string_view arg, int axis, int ndim);
inline int checked_axis(const Op& op, int axis, int ndim) {
  return checked_axis(op.name, op.args[0], axis, ndim);
}

}   // namespace tapedeck
