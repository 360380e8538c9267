// What ops and rules on matrices share. A matrix is the last two axes of a tensor, whatever stands in front.
#pragma once
#include "kernels/linalg/matrices.h"
#include "ops/infer.h"
#include "tapedeck/ops/matmul.h"

namespace tapedeck {

/// The extent of x's axis -back; 1 in front of the first.
inline std::int64_t extent(const Tensor& x, int back) {
  return back <= x.ndim() ? x.shape()[x.ndim() - back] : 1;
}

/// Whether f32 and f64 alone are taken, or c64 and c128, too.
enum class Take { reals, complexes };
/// Each throws, naming the op and its inputs: unless both inputs are of one dtype that is taken; where an
/// extent is too large for BLAS; unless input i is of such a dtype and rank 2 or more; unless its matrices
/// are square.
void require_two(const Call& c, Take take);
void require_countable(const Call& c, std::int64_t extent);
void require_matrices(const Call& c, int i, Take take = Take::reals);
void require_square(const Call& c, int i, Take take = Take::reals);
/// The spec of the first input, square matrices.
template <Take take> Spec infer_square(const Call& c) {
  require_square(c, 0, take);
  return c.x[0].spec();
}
/// The axes before the last two of both inputs, broadcast; the second input's spec with these.
Shape joined_batches(const Call& c);
Spec joined_second(const Call& c);
/// "solve: matrix 3 is singular: pivot 1 is 0: a is f64[5,2,2]"
[[noreturn]] void throw_singular(const Call& c, const kernels::Failure& f);
/// Throw ShapeError where LAPACK cannot count the work space of an iteration on the first input; and
/// ArgumentError where the iteration has not ended.
void require_iterable(const Call& c);
void require_convergence(const Call& c, const kernels::Failure& f);
/// x's spec with its last `back` axes replaced.
Spec with_last(const Tensor& x, int back, std::initializer_list<std::int64_t> extents);

/// The last two axes exchanged; to be conjugated for complex dtypes.
Tensor adjoint(const Tensor& x);
/// The triangle below the diagonal, and half of the diagonal.
Tensor lower_half(const Tensor& x);
/// dx summed over the axes before the last two in which the matrices of input i were repeated. It has as many
/// axes as the output, and perhaps more in front.
Tensor sum_repeated(const Call& c, const Tensor& dx, int i);
/// 1 / (x[j] - x[i]) at [i, j], and 0 where both are equal.
Tensor reciprocal_differences(const Tensor& x);
/// x[..., i] times the columns of matrices, and a number for each matrix times that.
Tensor as_row(const Tensor& x);
Tensor as_matrix(const Tensor& x);

}   // namespace tapedeck
