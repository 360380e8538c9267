// Eigenvalues and eigenvectors of general square matrices; both are complex. The op scales each vector so
// that its largest component is 1, which makes the outputs analytic functions of x; the public function
// divides by norms.
#include "kernels/linalg/eig.h"

#include "ops/axes.h"
#include "ops/linalg/matrices.h"
#include "tapedeck/ops.h"

namespace tapedeck {
namespace {

std::vector<Spec> infer_eig(const Call& c) {
  require_square(c, 0, Take::complexes);
  require_iterable(c);
  const DType z = complex_of(c.x[0].dtype());
  return {{z, with_last(c.x[0], 1, {}).shape}, {z, c.x[0].shape()}};
}

// m[j, i]: the component of vector i in the row of the largest component of vector j. m[j, j] = 1.
Tensor at_largest(const Tensor& v) {
  if (v.size() == 0) return v;
  return matmul(one_hot(argmax(abs(v), -2), extent(v, 2), real_of(v.dtype())), v);
}

Tensor as_of(const Tensor& x, const Tensor& gradient) {
  return is_complex(x.dtype()) ? gradient : real(gradient);
}

// With p = v⁻¹ dx v: dwⱼ = p[j, j], and dv = v s with s[i, j] = p[i, j] / (wⱼ - wᵢ) off the diagonal, and
// s[j, j] such that the largest component of vector j stays 1. Magnus 1985, "On differentiating eigenvalues
// and eigenvectors", section 5.
void eig_vjp(const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
  const Tensor &w = c.y[0], &v = c.y[1];
  Tensor middle;
  if (dy[1].defined()) {
    const Tensor s = matmul(v, std::move(dy[1]).dense(), {.transpose_a = true});
    middle = reciprocal_differences(w) * (s - adjoint(at_largest(v)) * as_row(diagonal(s)));
  }
  if (dy[0].defined()) {
    const Tensor of_values = matrix_diag(std::move(dy[0]).dense());
    middle = middle.defined() ? middle + of_values : of_values;
  }
  dx[0] = as_of(c.x[0], solve(v, matmul(middle, v, {.transpose_b = true}), {.transpose_a = true}));
}

void eig_jvp(const Call& c, Refs dx, std::span<Tensor> dy) {
  const Tensor &w = c.y[0], &v = c.y[1];
  const Tensor p = solve(v, matmul(dx[0], v)), s = p * reciprocal_differences(w);
  dy[0] = diagonal(p);
  dy[1] = matmul(v, s) - v * as_row(sum(adjoint(at_largest(v)) * s, -2));
}

constexpr Op kEig = {
    .name = "eig",
    .doc =
        "Eigenvalues and eigenvectors, both complex: x vectors = vectors diag(values), where the "
        "component of largest magnitude of each vector is 1; the function eig then scales vectors to norm 1. "
        "The gradient omits terms from pairs of equal eigenvalues.",
    .tensorflow = "Eig",
    .args = {"x"},
    .infer = infer_eig,
    .forward = [](const Call& c,
                  std::span<Tensor> y) { require_convergence(c, kernels::eig(c.x[0], y[0], y[1])); },
    .rule = Rule::custom({.y = true}, eig_vjp, eig_jvp).accepting_none(),
};

constexpr const Op* eig_table[] = {&kEig};

}   // namespace

Eig eig(const Tensor& x) {
  const std::vector<Tensor> y = kEig.run({&x, 1});
  return {y[0], y[1] / euclidean_norm(abs(y[1]), -2, {.keepdims = true})};
}
Tensor eigvals(const Tensor& x) { return kEig.run({&x, 1})[0]; }

std::span<const Op* const> eig_ops() { return eig_table; }

}   // namespace tapedeck
