// Shared by ops and rules on matrices. A matrix is the last two axes of a tensor; all axes before them are
// batch axes.
#pragma once
#include "kernels/linalg/matrices.h"
#include "ops/infer.h"
#include "tapedeck/ops/matmul.h"

namespace tapedeck {

/// The extent of x's axis -back; 1 if x has fewer axes.
inline std::int64_t extent(const Tensor& x, int back) {
  return back <= x.ndim() ? x.shape()[x.ndim() - back] : 1;
}

/// The dtypes that an op accepts: f32 and f64, or also c64 and c128.
enum class Take { reals, complexes };
/// Each throws an error that names the op and its inputs. require_two: unless both inputs have one accepted
/// dtype. require_countable: if an extent is too large for BLAS. require_matrices: unless input i has an
/// accepted dtype and rank 2 or more. require_square: unless its matrices are also square.
void require_two(const Call& c, Take take);
void require_countable(const Call& c, std::int64_t extent);
void require_matrices(const Call& c, int i, Take take = Take::reals);
void require_square(const Call& c, int i, Take take = Take::reals);
/// The spec of the first input, which must be square matrices.
template <Take take> Spec infer_square(const Call& c) {
  require_square(c, 0, take);
  return c.x[0].spec();
}
/// joined_batches: the batch axes of both inputs, broadcast. joined_second: the second input's spec with
/// these batch axes.
Shape joined_batches(const Call& c);
Spec joined_second(const Call& c);
/// Throws ArgumentError: "solve: matrix 3 is singular: pivot 1 is 0: a is f64[5,2,2]".
[[noreturn]] void throw_singular(const Call& c, const kernels::Failure& f);
/// require_iterable throws ShapeError if the first input needs more work space for an iteration than LAPACK
/// can count. require_convergence throws ArgumentError if the iteration did not converge.
void require_iterable(const Call& c);
void require_convergence(const Call& c, const kernels::Failure& f);
/// x's spec with its last `back` axes replaced.
Spec with_last(const Tensor& x, int back, std::initializer_list<std::int64_t> extents);

/// Swaps the last two axes; for complex dtypes the caller conjugates.
Tensor adjoint(const Tensor& x);
/// The strict lower triangle plus half of the diagonal.
Tensor lower_half(const Tensor& x);
/// dx summed over the batch axes along which input i was broadcast. dx has as many axes as the output, and
/// possibly leading stacking axes.
Tensor sum_repeated(const Call& c, const Tensor& dx, int i);
/// 1 / (x[j] - x[i]) at [i, j], and 0 where x[i] = x[j].
Tensor reciprocal_differences(const Tensor& x);
/// as_row: x[..., 1, n], which scales the columns of matrices. as_matrix: x[..., 1, 1], which scales each
/// matrix by one number.
Tensor as_row(const Tensor& x);
Tensor as_matrix(const Tensor& x);

}   // namespace tapedeck
