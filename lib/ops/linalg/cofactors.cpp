// Cofactors, from the inverse if it exists and is accurate, else in the bases of the singular vectors.
#include "ops/linalg/cofactors.h"

#include <algorithm>
#include <map>
#include <span>

#include "op/stacked_shapes.h"
#include "ops/linalg/matrices.h"
#include "ops/reduce/prod_of_others.h"
#include "tapedeck/gradient_tape.h"
#include "tapedeck/ops.h"

namespace tapedeck {
namespace {

bool none_is_zero(const Tensor& y) { return all(not_equal(y, 0.0)).item() != 0; }

struct Adjugate {
  Tensor matrix, det;
};
// The algorithm of Faddeev & Le Verrier, which divides by constants only. Errors are relative to a power of
// the size of m.
Adjugate adjugate_of_small(const Tensor& m) {
  const std::int64_t n = extent(m, 1);
  const Tensor unit = eye(n, m.dtype());
  Tensor y = broadcast_to(unit, m.shape());
  for (std::int64_t k = 1; k < n; ++k) {
    const Tensor product = matmul(m, y);
    y = as_matrix(trace(product) / static_cast<double>(k)) * unit - product;
  }
  return {y, trace(matmul(m, y)) / static_cast<double>(n)};
}
// For an m whose value is the identity. The adjugate of a 1 × 1 matrix is constant; det · inv is constant
// only up to rounding errors.
Adjugate adjugate_of_unit(const Tensor& m) {
  const Tensor d = det(m);
  if (extent(m, 1) == 1) return {ones_like(m), d};
  return {as_matrix(d) * inv(m), d};
}

// For an m whose value is diag(s): by the Schur complement of its first block, whose rows are divided by
// their elements of s. These are of similar size within a block; those after the last block are small or 0.
Adjugate adjugate(const Tensor& m, const Tensor& s, std::span<const std::int64_t> blocks) {
  if (blocks.empty()) return adjugate_of_small(m);
  const std::int64_t r = blocks[0], k = extent(m, 1) - r;
  const std::vector<Tensor> sizes = split(s, {r, k}, -1), rows = split(m, {r, k}, -2),
                            top = split(rows[0] / expand_dims(sizes[0], -1), {r, k}, -1),
                            bottom = split(rows[1], {r, k}, -1);
  const Tensor size = prod(sizes[0], {-1});
  const Adjugate first = adjugate_of_unit(top[0]);
  const Tensor others = as_row(prod_of_others(sizes[0]));
  if (k == 0) return {first.matrix * others, first.det * size};
  const Tensor inverse = inv(top[0]), right = matmul(inverse, top[1]), below = matmul(bottom[0], inverse);
  const Adjugate rest = adjugate(bottom[1] - matmul(bottom[0], right), sizes[1], blocks.subspan(1));
  const Tensor by_rest = matmul(right, rest.matrix), scale = as_matrix(size);
  const Tensor corner = as_matrix(rest.det) * inverse + matmul(by_rest, below);
  return {
      as_matrix(first.det) * concat({concat({corner * others, -scale * by_rest}, -1),
                                     concat({-matmul(rest.matrix, below) * others, scale * rest.matrix}, -1)},
                                    -2),
      first.det * size * rest.det};
}

// For x = u m vh the cofactors are det(u) det(vh) conj(u cof(m) vh). u and vh are constants, so the value of
// m is diagonal, but its derivative is not.
Tensor cofactors_in_blocks(const Tensor& x, const Svd& f, std::span<const std::int64_t> blocks) {
  const Tensor s = astype(f.s, x.dtype()),
               moved =
                   matmul(matmul(conjugate_transpose(f.u), x - stop_gradient(x)), conjugate_transpose(f.vh));
  const Tensor of_m = adjoint(adjugate(matrix_diag(s) + moved, s, blocks).matrix);
  return as_matrix(det(f.u) * det(f.vh)) * matmul(matmul(conj(f.u), of_m), conj(f.vh));
}

// The sizes of blocks of the descending singular values s: each block spans at most a factor of 100. Values
// so small that dividing by them would leave less than half of the digits belong to no block.
std::vector<std::int64_t> blocks_of(std::span<const double> s, DType t) {
  std::vector<std::int64_t> blocks;
  const double least =
      t == DType::f32 ? std::max(s[0] * 0x1p-12, 0x1p-106) : std::max(s[0] * 0x1p-26, 0x1p-1002);
  for (std::size_t i = 0; i < s.size() && s[i] > least;) {
    const std::size_t begin = i;
    while (i < s.size() && s[i] > std::max(0.01 * s[begin], least))
      ++i;
    blocks.push_back(static_cast<std::int64_t>(i - begin));
  }
  return blocks;
}

// The cofactors, computed by ops whose derivatives are correct for any rank. Matrices with the same block
// sizes are processed together.
Tensor cofactors_by_ops(const Tensor& x) {
  const std::int64_t n = extent(x, 1), count = x.size() / (n * n);
  const Tensor matrices = reshape(x, {count, n, n});
  const Svd f = svd(stop_gradient(matrices));
  const std::vector<double> s = f.s.to_vector();
  std::map<std::vector<std::int64_t>, std::vector<std::int64_t>> groups;
  for (std::int64_t i = 0; i < count; ++i)
    groups[blocks_of(std::span(s).subspan(static_cast<std::size_t>(i * n), static_cast<std::size_t>(n)),
                     f.s.dtype())]
        .push_back(i);
  std::vector<Tensor> parts;
  std::vector<std::int64_t> position(static_cast<std::size_t>(count));
  std::int64_t next = 0;
  for (const auto& [blocks, members] : groups) {
    for (const std::int64_t i : members)
      position[static_cast<std::size_t>(i)] = next++;
    const Tensor at = tensor(members, {static_cast<std::int64_t>(members.size())});
    parts.push_back(cofactors_in_blocks(gather(matrices, at),
                                        {gather(f.u, at), gather(f.s, at), gather(f.vh, at)}, blocks));
  }
  return reshape(gather(concat(parts, 0), tensor(position, {count})), x.shape());
}

// The formula with the inverse v loses twice as many digits as the condition number has. Up to four are
// accepted.
bool well_conditioned(const Tensor& x, const Tensor& v) {
  const double n = static_cast<double>(extent(x, 1));
  return all(less(max(abs(x), {-2, -1}) * max(abs(v), {-2, -1}), 100 / n)).item() != 0;
}

}   // namespace

Tensor cofactors_of(const Tensor& x, const Tensor& y) {
  if (none_is_zero(y)) return as_matrix(y) * adjoint(inv(x));
  const Svd f = svd(x);
  const Tensor without_values = astype(prod_of_others(f.s), x.dtype());
  return as_matrix(det(f.u) * det(f.vh)) * conj(matmul(f.u * as_row(without_values), f.vh));
}

Tensor change_of_cofactors(const Tensor& x, const Tensor& y, const Tensor& e) {
  if (x.size() == 0 || extent(x, 1) == 1) return zeros_like(e);   // the cofactor of a 1 × 1 matrix is 1
  if (none_is_zero(y)) {
    const Tensor v = inv(x);
    if (well_conditioned(stop_gradient(x), stop_gradient(v))) {
      const Tensor moved = matmul(v, e);
      return as_matrix(det(x)) * adjoint(as_matrix(trace(moved)) * v - matmul(moved, v));
    }
  }
  const Tensor z = conj(x);   // the tape conjugates it again
  GradientTape tape({.persistent = true});
  tape.watch(z);
  const Tensor cofactors = cofactors_by_ops(z);
  tape.stop();   // this tape does not record the gradients; an outer one does
  const auto along = [&](const Tensor& direction) {
    const GradientOptions options = {.output_gradients = {direction},
                                     .unconnected = UnconnectedGradients::zero};
    return tape.gradient(cofactors, z, options).dense();
  };
  if (e.ndim() == x.ndim()) return along(e);
  std::vector<Tensor> changes;
  for (const Tensor& direction : unstack(reshape(e, behind({e.size() / x.size()}, x.shape()))))
    changes.push_back(along(direction));
  return changes.empty() ? e : reshape(stack(changes), e.shape());
}

}   // namespace tapedeck
