#include "gmm.h"

#include "random.h"
#include "tensors.h"

namespace gradbench::gmm {
namespace {

/// The positions of the entries of Q, row by row, in [exp(q), l, 0].
Tensor places(int d) {
  std::vector<std::int64_t> at(static_cast<std::size_t>(d * d), d + d * (d - 1) / 2);
  int next = d;
  for (int i = 0; i < d; ++i) {
    at[static_cast<std::size_t>(i * d + i)] = i;
    for (int j = i + 1; j < d; ++j)
      at[static_cast<std::size_t>(j * d + i)] = next++;
  }
  return td::tensor(at);
}

struct Constants {
  explicit Constants(const Input& in)
      : d(in.d),
        k(in.k),
        n(in.n),
        m(in.m),
        gamma(in.gamma),
        constant(gmm::constant(in)),
        places(gmm::places(in.d)),
        x(td::tensor(in.x, {n, d})) {}

  std::int64_t d, k, n;
  double m, gamma, constant;
  Tensor places, x;
};

/// The objective from exp(q) and the logarithms of the densities, [n, k].
Tensor posterior(const Constants& c, Inputs x, const Tensor& exp_q, const Tensor& log_densities) {
  const Tensor &alpha = x[0], &q = x[2], &l = x[3];
  const Tensor squares = td::sum(td::square(exp_q)) + td::sum(td::square(l));
  return c.constant + td::sum(td::logsumexp(log_densities, {1})) -
         static_cast<double>(c.n) * td::logsumexp(alpha) + c.m * td::sum(q) -
         0.5 * c.gamma * c.gamma * squares;
}
Tensor lower_triangle(const Constants& c, const Tensor& exp_q, const Tensor& l) {
  const Tensor entries = td::concat({exp_q, l, td::zeros({c.k, 1}, td::DType::f64)}, 1);
  return td::reshape(td::gather(entries, c.places, 1), {c.k, c.d, c.d});
}

auto natural(const Input& in) {
  return [c = Constants(in)](Inputs x) {
    const Tensor &alpha = x[0], &mu = x[1], &q = x[2], &l = x[3];
    const Tensor exp_q = td::exp(q), lower = lower_triangle(c, exp_q, l);
    const Tensor centred = td::expand_dims(c.x, 1) - mu;
    const Tensor product = td::einsum("kij,nkj->nki", {lower, centred});
    return posterior(c, x, exp_q, alpha + td::sum(q, {1}) - 0.5 * td::sum(td::square(product), {2}));
  };
}

/// ‖Q (x - μ)‖² = xᵀ S x - 2 xᵀ S μ + μᵀ S μ with S = Qᵀ Q is linear in the features x xᵀ (its upper half), x
/// and 1 of a point. Features are data, so all distances are one matrix product.
struct Features {
  explicit Features(const Input& in) {
    const auto n = static_cast<std::size_t>(in.n), d = static_cast<std::size_t>(in.d);
    Values f;
    std::vector<std::int64_t> at;
    for (std::size_t p = 0; p < n; ++p) {
      const double* x = &in.x[p * d];
      for (std::size_t i = 0; i < d; ++i)
        for (std::size_t j = i; j < d; ++j)
          f.push_back((i == j ? -0.5 : -1) * x[i] * x[j]);
      f.insert(f.end(), x, x + d);
      f.push_back(1);
    }
    for (std::size_t i = 0; i < d; ++i)
      for (std::size_t j = i; j < d; ++j)
        at.push_back(static_cast<std::int64_t>(i * d + j));
    upper = td::tensor(at);
    matrix = td::tensor(f, {in.n, in.triangle() + 2 * in.d + 1});
  }
  Tensor matrix, upper;
};

auto expert(const Input& in) {
  return [c = Constants(in), features = Features(in)](Inputs x) {
    const Tensor &alpha = x[0], &mu = x[1], &q = x[2], &l = x[3];
    const Tensor exp_q = td::exp(q), lower = lower_triangle(c, exp_q, l);
    const Tensor s = td::matmul(lower, lower, {.transpose_a = true});
    const Tensor s_mu = td::squeeze(td::matmul(s, td::expand_dims(mu, 2)), {2});
    const Tensor offset = alpha + td::sum(q, {1}) - 0.5 * td::sum(mu * s_mu, {1});
    const Tensor upper = td::gather(td::reshape(s, {c.k, c.d * c.d}), features.upper, 1);
    const Tensor weights = td::concat({upper, s_mu, td::expand_dims(offset, 1)}, 1);
    return posterior(c, x, exp_q, td::matmul(features.matrix, weights, {.transpose_b = true}));
  };
}

Size size(int d, int k, int n = 1000) {
  return {std::to_string(d) + "_" + std::to_string(k), [=] {
            Random random;
            const auto dims = static_cast<std::size_t>(d), count = static_cast<std::size_t>(k);
            Input in{
                .d = d, .k = k, .n = n, .m = 0, .gamma = 1, .alpha = {}, .mu = {}, .q = {}, .l = {}, .x = {}};
            in.x = random.normals(static_cast<std::size_t>(n) * dims);
            in.alpha = random.normals(count);
            in.mu = random.uniforms(count * dims);
            in.q = random.normals(count * dims);
            in.l = random.normals(count * static_cast<std::size_t>(in.triangle()));
            return forms(std::make_shared<Input>(std::move(in)));
          }};
}

}   // namespace

Forms forms(const std::shared_ptr<const Input>& in) {
  const Tensors x = {td::tensor(in->alpha), td::tensor(in->mu, {in->k, in->d}),
                     td::tensor(in->q, {in->k, in->d}), td::tensor(in->l, {in->k, in->triangle()})};
  const auto f = natural(*in);
  const auto g = expert(*in);
  return with_peers({eager("natural", x, f, gradients_of(f)), recorded("expert", x, g, gradients_of(g))}, in);
}

Eval eval() {
  return {"gmm",
          {"objective", "jacobian"},
          true,
          {size(2, 5), size(10, 50), size(64, 100)},
          {size(3, 4, 21), size(1, 2, 70)}};
}

}   // namespace gradbench::gmm
