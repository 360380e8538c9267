// How the specs of results are inferred, for the tables.
#pragma once
#include "tapedeck/op.h"

namespace tapedeck {

/// The shape that the inputs broadcast to. Throws ShapeError, naming the op and its inputs.
Shape broadcast_of(const Call& c);
/// Whether x may be repeated to that shape.
bool broadcasts_to(const Shape& x, const Shape& shape);
/// The broadcast shape of the inputs, which are all f32 or all f64.
Spec elementwise(const Call& c);
/// The same for c64 and c128, too.
Spec complex_elementwise(const Call& c);
/// The same for f32, f64 and all integers; for these, c64 and c128.
Spec arithmetic(const Call& c);
Spec numeric(const Call& c);
/// bool of the broadcast shape; inputs of one dtype.
Spec comparison(const Call& c);
/// The first input's spec, whatever its dtype.
Spec same_as_first(const Call& c);
/// The first input's spec: f32 or f64 of rank 1 or more.
Spec infer_rows(const Call& c);
/// The same for c64 and c128, too.
Spec infer_complex_rows(const Call& c);
/// The spec of all inputs, of which there may be any number. Throws DTypeError or ShapeError where two
/// differ.
Spec all_alike(const Call& c);
/// Throws ShapeError unless the first input has the axes that the attributes speak of: the last `n`.
void require_axes(const Call& c, int n);
/// Throws DTypeError, naming the op and its inputs, unless input i is f32 or f64.
void require_floating(const Call& c, int i);
/// The same for c64 and c128, too.
void require_trainable(const Call& c, int i);
/// Throw DTypeError unless the first input is c64 or c128; where it is complex.
void require_complex(const Call& c);
void require_real(const Call& c);
/// Whether x is i32 or i64.
bool holds_indices(const Tensor& x);
/// Throws DTypeError, with the input's name, unless input i is i32 or i64.
void require_indices(const Call& c, int i);
/// Throws DTypeError unless all inputs are of one dtype.
void require_one_dtype(const Call& c);
/// axis counted from 0, of a tensor of that rank. Throws ShapeError: "sum: axis 3 is out of range for x of
/// rank 2; use -2..1".
int checked_axis(std::string_view op, std::string_view arg, int axis, int ndim);
inline int checked_axis(const Op& op, int axis, int ndim) {
  return checked_axis(op.name, op.args[0], axis, ndim);
}

}   // namespace tapedeck
