// Helpers of ops on matrices: checks, shapes and parts.
#include "ops/linalg/matrices.h"

#include <limits>

#include "core/format.h"
#include "ops/axes.h"
#include "tapedeck/ops.h"

namespace tapedeck {

namespace {

void require_dtype(const Call& c, int i, Take take) {
  (take == Take::reals ? require_floating : require_trainable)(c, i);
}

}   // namespace

void require_two(const Call& c, Take take) {
  require_dtype(c, 0, take);
  require_dtype(c, 1, take);
  require_one_dtype(c);
}
void require_countable(const Call& c, std::int64_t extent) {
  if (extent > std::numeric_limits<std::int32_t>::max())
    c.throw_shape_error("extents of 2^31 and more are too large");
}
void require_matrices(const Call& c, int i, Take take) {
  require_dtype(c, i, take);
  if (c.x[i].ndim() < 2) c.throw_shape_error("takes tensors of rank 2 or more");
  require_countable(c, std::max(extent(c.x[i], 1), extent(c.x[i], 2)));
}
void require_square(const Call& c, int i, Take take) {
  require_matrices(c, i, take);
  if (extent(c.x[i], 1) != extent(c.x[i], 2)) c.throw_shape_error("takes square matrices");
}

Shape joined_batches(const Call& c) {
  const Tensor &a = c.x[0], &b = c.x[1];
  Shape y;
  for (int back = std::max(a.ndim(), b.ndim()); back > 2; --back) {
    const std::int64_t p = extent(a, back), q = extent(b, back);
    if (p != q && p != 1 && q != 1) c.throw_shape_error("batch axes do not broadcast");
    y.push_back(p == 1 ? q : p);
  }
  return y;
}

Spec joined_second(const Call& c) {
  Shape y = joined_batches(c);
  y.push_back(extent(c.x[1], 2));
  y.push_back(extent(c.x[1], 1));
  return {c.x[0].dtype(), y};
}

void throw_singular(const Call& c, const kernels::Failure& f) {
  throw_error<ArgumentError>("{}: matrix {} is singular: pivot {} is 0: {} is {}", c.op.name, f.matrix,
                             f.at - 1, c.op.args[0], c.x[0].spec());
}

void require_iterable(const Call& c) {
  constexpr std::int64_t kMost = 20'000;   // LAPACK counts about 4 n² numbers in 32 bits
  if (std::min(extent(c.x[0], 1), extent(c.x[0], 2)) > kMost)
    c.throw_shape_error("extents above 20000 are too large");
}
void require_convergence(const Call& c, const kernels::Failure& f) {
  if (f)
    throw_error<ArgumentError>("{}: LAPACK's iteration for matrix {} did not converge: {} is {}", c.op.name,
                               f.matrix, c.op.args[0], c.x[0].spec());
}

Spec with_last(const Tensor& x, int back, std::initializer_list<std::int64_t> extents) {
  return {x.dtype(), behind_extra(x, back, Shape(extents))};
}

Tensor adjoint(const Tensor& x) {
  std::vector<int> perm;
  for (int d = 0; d < x.ndim(); ++d)
    perm.push_back(d);
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return transpose(x, perm);
}

Tensor lower_half(const Tensor& x) { return 0.5 * (tril(x) + tril(x, -1)); }

Tensor sum_repeated(const Call& c, const Tensor& dx, int i) {
  const Tensor &x = c.x[i], &y = c.y[0];
  std::vector<int> axes;
  for (int back = 3; back <= y.ndim(); ++back)
    if (extent(x, back) == 1 && extent(y, back) != 1) axes.push_back(-back);
  const Tensor summed = axes.empty() ? dx : sum(dx, axes, {.keepdims = true});
  const Shape shape = behind_extra(dx, y.ndim(), x.shape());
  return summed.shape() == shape ? summed : reshape(summed, shape);
}

Tensor reciprocal_differences(const Tensor& x) {
  const Tensor difference = as_row(x) - expand_dims(x, -1), same = equal(difference, 0.0);
  return where(same, 0.0, reciprocal(where(same, 1.0, difference)));
}

Tensor as_row(const Tensor& x) { return expand_dims(x, -2); }
Tensor as_matrix(const Tensor& x) { return expand_dims(expand_dims(x, -1), -1); }

}   // namespace tapedeck
