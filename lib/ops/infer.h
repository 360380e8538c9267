// Shape and dtype inference, and checks of inputs, for the op tables.
#pragma once
#include "tapedeck/op.h"

namespace tapedeck {

/// The shape that the inputs broadcast to. Throws ShapeError, which names the op and its inputs, if they do
/// not broadcast.
Shape broadcast_of(const Call& c);
/// Whether x can be broadcast to that shape.
bool broadcasts_to(const Shape& x, const Shape& shape);
/// The broadcast shape of the inputs, which must have one floating-point dtype.
Spec elementwise(const Call& c);
/// Like elementwise, but also accepts c64 and c128.
Spec complex_elementwise(const Call& c);
/// arithmetic: like elementwise, but also accepts integers. numeric: like arithmetic, but also accepts c64
/// and c128.
Spec arithmetic(const Call& c);
Spec numeric(const Call& c);
/// bool of the broadcast shape; the inputs must have one dtype.
Spec comparison(const Call& c);
/// The first input's spec, of any dtype.
Spec same_as_first(const Call& c);
/// The first input's spec, which must be of a floating-point dtype and of rank 1 or more.
Spec infer_rows(const Call& c);
/// Like infer_rows, but also accepts c64 and c128.
Spec infer_complex_rows(const Call& c);
/// The common spec of all inputs. Throws DTypeError or ShapeError if two differ.
Spec all_alike(const Call& c);
/// Throws ShapeError unless the first input has rank n or more, for attributes that refer to its last n axes.
void require_axes(const Call& c, int n);
/// Throws DTypeError, which names the op and its inputs, unless input i is of a floating-point dtype.
void require_floating(const Call& c, int i);
/// Like require_floating, but also accepts c64 and c128.
void require_trainable(const Call& c, int i);
/// require_complex throws DTypeError unless the first input is c64 or c128; require_real throws it if that
/// input is complex.
void require_complex(const Call& c);
void require_real(const Call& c);
/// Whether x is of an integer dtype.
bool holds_indices(const Tensor& x);
/// Throws DTypeError, which names the input, unless input i is of an integer dtype.
void require_indices(const Call& c, int i);
/// Throws DTypeError unless all inputs have one dtype.
void require_one_dtype(const Call& c);
/// Returns the axis of a tensor of rank `ndim` counted from 0. Throws ShapeError if it is out of range: "sum:
/// axis 3 is out of range for x of rank 2; use -2..1".
int checked_axis(std::string_view op, std::string_view arg, int axis, int ndim);
inline int checked_axis(const Op& op, int axis, int ndim) {
  return checked_axis(op.name, op.args[0], axis, ndim);
}

}   // namespace tapedeck
