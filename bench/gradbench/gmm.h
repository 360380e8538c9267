// The logarithm of the posterior density of a Gaussian mixture with a Wishart prior. The inverse covariances
// are Qᵀ Q; the lower triangular Q has exp(q) on its diagonal and l below it, column by column.
#pragma once
#include <cmath>
#include <numbers>

#include "suite.h"

namespace gradbench::gmm {

struct Input {
  int d, k, n, m;
  double gamma;
  Values alpha, mu, q, l, x;   // [k], [k, d], [k, d], [k, d (d - 1) / 2], [n, d]

  int triangle() const { return d * (d - 1) / 2; }
};
Forms forms(const std::shared_ptr<const Input>& in);
Eval eval();

/// The terms that do not depend on the parameters.
inline double constant(const Input& in) {
  const double df = in.d + in.m + 1, d = in.d;
  double log_gamma = 0.25 * d * (d - 1) * std::log(std::numbers::pi);
  for (int j = 0; j < in.d; ++j)
    log_gamma += std::lgamma(0.5 * (df - j));
  const double wishart = df * d * (std::log(in.gamma) - 0.5 * std::numbers::ln2) - log_gamma;
  return in.k * wishart - 0.5 * in.n * d * std::log(2 * std::numbers::pi);
}

template <class T> static T log_sum_exp(const T* x, int n) {
  using std::exp, std::log;
  T most = x[0], sum = 0;
  for (int i = 1; i < n; ++i)
    if (most < x[i]) most = x[i];
  for (int i = 0; i < n; ++i)
    sum += exp(x[i] - most);
  return log(sum) + most;
}

/// ‖Q (x - μ)‖²
template <class T> static T distance(int d, const double* x, const T* mu, const T* diagonal, const T* l,
                                     T* centred, T* product) {
  for (int i = 0; i < d; ++i) {
    centred[i] = x[i] - mu[i];
    product[i] = diagonal[i] * centred[i];
  }
  for (int i = 0; i < d; ++i)
    for (int j = i + 1; j < d; ++j)
      product[j] += *l++ * centred[i];
  T sum = 0;
  for (int i = 0; i < d; ++i)
    sum += product[i] * product[i];
  return sum;
}

/// The parameters, from alpha on, are contiguous: alpha, mu, q, l.
template <class T> static T objective(const Input& in, const T* alpha) {
  using std::exp;
  const int d = in.d, k = in.k;
  const T *mu = alpha + k, *q = mu + k * d, *l = q + k * d;
  std::vector<T> diagonal(static_cast<std::size_t>(k * d)), centred(static_cast<std::size_t>(d)),
      product(centred), start(static_cast<std::size_t>(k)), main(start);
  T prior = 0, sum = 0;
  for (int c = 0; c < k; ++c) {
    T squares = 0, sum_q = 0;
    for (int i = c * d; i < (c + 1) * d; ++i) {
      diagonal[static_cast<std::size_t>(i)] = exp(q[i]);
      squares += diagonal[static_cast<std::size_t>(i)] * diagonal[static_cast<std::size_t>(i)];
      sum_q += q[i];
    }
    for (int i = c * in.triangle(); i < (c + 1) * in.triangle(); ++i)
      squares += l[i] * l[i];
    prior += in.m * sum_q - 0.5 * in.gamma * in.gamma * squares;
    start[static_cast<std::size_t>(c)] = alpha[c] + sum_q;
  }
  for (int p = 0; p < in.n; ++p) {
    for (int c = 0; c < k; ++c)
      main[static_cast<std::size_t>(c)] =
          start[static_cast<std::size_t>(c)] -
          0.5 * distance(d, &in.x[static_cast<std::size_t>(p * d)], mu + c * d,
                         &diagonal[static_cast<std::size_t>(c * d)], l + c * in.triangle(), centred.data(),
                         product.data());
    sum += log_sum_exp(main.data(), k);
  }
  return constant(in) + sum - in.n * log_sum_exp(alpha, k) + prior;
}

}   // namespace gradbench::gmm
