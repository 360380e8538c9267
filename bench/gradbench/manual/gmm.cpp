#include "../gmm.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "lanes.h"
#include "works.h"

namespace gradbench::GRADBENCH_KIND {
namespace {

using Index = std::ptrdiff_t;
constexpr Index kPoints = 64, kLanes = 16;   // points that stay in the cache, and in registers

/// With weights p of the components at each point, M = Σ p (x - μ)(x - μ)ᵀ and v = Σ p (x - μ): the
/// likelihood's gradient is -Q M for Q, Qᵀ Q v for μ.
class Gmm {
 public:
  explicit Gmm(const std::shared_ptr<const gmm::Input>& in)
      : in_(*in),
        keep_(in),
        d_(in->d),
        k_(in->k),
        n_(in->n),
        lower_(size(k_ * d_ * d_)),
        start_(size(k_)),
        moments_(size(k_ * d_ * d_)),
        means_(size(k_ * d_)),
        weights_(size(k_)),
        log_density_(size(k_ * kPoints)),
        centred_(size(d_ * kPoints)) {}

  void objective(Values& out) {
    prepare();
    double sum = 0;
    for (Index first = 0; first < n_; first += kPoints)
      sum += densities(first);
    const double alpha = gmm::log_sum_exp(in_.alpha.data(), in_.k);
    out.assign(1, gmm::constant(in_) + sum - in_.n * alpha + prior_);
  }

  /// alpha, mu, q, l.
  void gradient(Values& out) {
    prepare();
    std::fill(moments_.begin(), moments_.end(), 0);
    std::fill(means_.begin(), means_.end(), 0);
    std::fill(weights_.begin(), weights_.end(), 0);
    for (Index first = 0; first < n_; first += kPoints) {
      densities(first);
      for (Index c = 0; c < k_; ++c)
        add_moments(first, c);
    }
    out.assign(size(k_ + 2 * k_ * d_ + k_ * in_.triangle()), 0);
    alpha_gradient(out.data());
    for (Index c = 0; c < k_; ++c)
      component_gradient(c, out.data());
  }

 private:
  static std::size_t size(Index n) { return static_cast<std::size_t>(n); }

  /// Computes Q row by row, and the terms of a component's density other than the distance.
  void prepare() {
    prior_ = 0;
    const double* l = in_.l.data();
    for (Index c = 0; c < k_; ++c) {
      double* q = &lower_[size(c * d_ * d_)];
      double squares = 0, sum_q = 0;
      for (Index i = 0; i < d_; ++i) {
        const double log_entry = in_.q[size(c * d_ + i)];
        q[i * d_ + i] = std::exp(log_entry);
        squares += q[i * d_ + i] * q[i * d_ + i];
        sum_q += log_entry;
        for (Index j = i + 1; j < d_; ++j) {
          q[j * d_ + i] = *l++;
          squares += q[j * d_ + i] * q[j * d_ + i];
        }
      }
      prior_ += in_.m * sum_q - 0.5 * in_.gamma * in_.gamma * squares;
      start_[size(c)] = in_.alpha[size(c)] + sum_q;
    }
  }

  /// Computes x - μ, [d, points]; 0 beyond the last point.
  void centre(Index first, Index c) {
    const Index count = std::min(kPoints, n_ - first);
    const double* mu = &in_.mu[size(c * d_)];
    for (Index i = 0; i < d_; ++i) {
      for (Index p = 0; p < count; ++p)
        centred_[size(i * kPoints + p)] = in_.x[size((first + p) * d_ + i)] - mu[i];
      for (Index p = count; p < kPoints; ++p)
        centred_[size(i * kPoints + p)] = 0;
    }
  }

  /// Replaces the logarithms of the densities by the weights of the components. Returns the sum over points
  /// of the logarithms of the mixture's densities.
  double densities(Index first) {
    for (Index c = 0; c < k_; ++c) {
      centre(first, c);
      const double* q = &lower_[size(c * d_ * d_)];
      for (Index p = 0; p < kPoints; p += kLanes)
        distances(q, &centred_[size(p)], &log_density_[size(c * kPoints + p)], start_[size(c)]);
    }
    return normalise(std::min(kPoints, n_ - first));
  }
  void distances(const double* __restrict__ q, const double* __restrict__ x, double* __restrict__ out,
                 double start) const {
    Sixteen sum;
    for (Index j = 0; j < d_; ++j) {
      Sixteen product;
      for (Index i = 0; i <= j; ++i)
        product.add_product(q[j * d_ + i], x + i * kPoints);
      sum.add_square(product);
    }
    sum.store(out);
    for (Index p = 0; p < kLanes; ++p)
      out[p] = start - 0.5 * out[p];
  }
  double normalise(Index count) {
    double most[kPoints], sum[kPoints] = {};
    std::copy(&log_density_[0], &log_density_[0] + kPoints, most);
    for (Index c = 1; c < k_; ++c)
      for (Index p = 0; p < kPoints; ++p)
        most[p] = std::max(most[p], log_density_[size(c * kPoints + p)]);
    for (Index c = 0; c < k_; ++c)
      for (Index p = 0; p < kPoints; ++p) {
        double& weight = log_density_[size(c * kPoints + p)];
        weight = std::exp(weight - most[p]);
        sum[p] += weight;
      }
    double total = 0;
    for (Index p = 0; p < count; ++p)
      total += most[p] + std::log(sum[p]);
    for (Index p = 0; p < kPoints; ++p)
      sum[p] = p < count ? 1 / sum[p] : 0;
    for (Index c = 0; c < k_; ++c)
      for (Index p = 0; p < kPoints; ++p)
        log_density_[size(c * kPoints + p)] *= sum[p];
    return total;
  }

  void add_moments(Index first, Index c) {
    centre(first, c);
    const double* weight = &log_density_[size(c * kPoints)];
    double* m = &moments_[size(c * d_ * d_)];
    double total = 0;
    for (Index p = 0; p < kPoints; ++p)
      total += weight[p];
    weights_[size(c)] += total;
    for (Index j = 0; j < d_; ++j) {
      double weighted[kPoints], mean = 0;
      for (Index p = 0; p < kPoints; ++p) {
        weighted[p] = weight[p] * centred_[size(j * kPoints + p)];
        mean += weighted[p];
      }
      means_[size(c * d_ + j)] += mean;
      Index i = 0;
      for (; i + 4 <= j + 1; i += 4)
        add_dots(weighted, &centred_[size(i * kPoints)], m + j * d_ + i);
      for (; i <= j; ++i) {
        double dot = 0;
        for (Index p = 0; p < kPoints; ++p)
          dot += weighted[p] * centred_[size(i * kPoints + p)];
        m[j * d_ + i] += dot;
      }
    }
  }
  /// Four rows at once, so that `a` is read once for them.
  static void add_dots(const double* __restrict__ a, const double* __restrict__ rows,
                       double* __restrict__ out) {
    double s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    for (Index p = 0; p < kPoints; ++p) {
      s0 += a[p] * rows[p];
      s1 += a[p] * rows[kPoints + p];
      s2 += a[p] * rows[2 * kPoints + p];
      s3 += a[p] * rows[3 * kPoints + p];
    }
    out[0] += s0, out[1] += s1, out[2] += s2, out[3] += s3;
  }

  void alpha_gradient(double* out) const {
    double sum = 0;
    for (Index c = 0; c < k_; ++c)
      sum += std::exp(in_.alpha[size(c)]);
    for (Index c = 0; c < k_; ++c)
      out[c] = weights_[size(c)] - static_cast<double>(n_) * std::exp(in_.alpha[size(c)]) / sum;
  }

  void component_gradient(Index c, double* out) {
    const double *q = &lower_[size(c * d_ * d_)], *v = &means_[size(c * d_)], square = in_.gamma * in_.gamma;
    double* m = &moments_[size(c * d_ * d_)];
    for (Index i = 0; i < d_; ++i)
      for (Index j = i + 1; j < d_; ++j)
        m[i * d_ + j] = m[j * d_ + i];
    double *mu = out + k_ + c * d_, *dq = out + k_ + (k_ + c) * d_,
           *dl = out + k_ + 2 * k_ * d_ + c * in_.triangle();
    row_.resize(size(d_));
    for (Index j = 0; j < d_; ++j) {
      std::fill(row_.begin(), row_.end(), 0);
      double product = 0;   // (Q v)_j
      for (Index i = 0; i <= j; ++i) {
        product += q[j * d_ + i] * v[i];
        for (Index e = 0; e <= j; ++e)
          row_[size(e)] += q[j * d_ + i] * m[i * d_ + e];
      }
      for (Index i = 0; i <= j; ++i)
        mu[i] += q[j * d_ + i] * product;
      for (Index i = 0; i < j; ++i)   // column i of l follows the columns before it, and begins in row i + 1
        dl[i * d_ - i * (i + 1) / 2 + j - i - 1] = -row_[size(i)] - square * q[j * d_ + i];
      const double entry = q[j * d_ + j];
      dq[j] = weights_[size(c)] + in_.m + (-row_[size(j)] - square * entry) * entry;
    }
  }

  const gmm::Input& in_;
  std::shared_ptr<const gmm::Input> keep_;
  Index d_, k_, n_;
  double prior_ = 0;
  Values lower_, start_, moments_, means_, weights_, log_density_, centred_, row_;
};

/// The gradient, point by point and component by component.
void gradient_as_suite(const gmm::Input& in, Values& out) {
  const int d = in.d, k = in.k, triangle = in.triangle();
  const auto size = [](int n) { return static_cast<std::size_t>(n); };
  Values diagonal(size(k * d)), centred(size(k * d)), product(size(k * d)), weight(size(k)), start(size(k));
  out.assign(size(k + 2 * k * d + k * triangle), 0);
  double *d_alpha = out.data(), *d_mu = d_alpha + k, *dq = d_mu + k * d, *dl = dq + k * d;
  for (int c = 0; c < k; ++c) {
    start[size(c)] = in.alpha[size(c)];
    for (int i = c * d; i < (c + 1) * d; ++i) {
      diagonal[size(i)] = std::exp(in.q[size(i)]);
      start[size(c)] += in.q[size(i)];
      dq[i] = in.m - in.gamma * in.gamma * diagonal[size(i)] * diagonal[size(i)];
    }
  }
  for (int i = 0; i < k * triangle; ++i)
    dl[i] = -in.gamma * in.gamma * in.l[size(i)];
  const double all = gmm::log_sum_exp(in.alpha.data(), k);
  for (int c = 0; c < k; ++c)
    d_alpha[c] = -in.n * std::exp(in.alpha[size(c)] - all);
  for (int p = 0; p < in.n; ++p) {
    for (int c = 0; c < k; ++c)
      weight[size(c)] =
          start[size(c)] - 0.5 * gmm::distance(d, &in.x[size(p * d)], &in.mu[size(c * d)],
                                               &diagonal[size(c * d)], in.l.data() + c * triangle,
                                               &centred[size(c * d)], &product[size(c * d)]);
    const double norm = gmm::log_sum_exp(weight.data(), k);
    for (int c = 0; c < k; ++c) {
      const double w = std::exp(weight[size(c)] - norm);
      const double *x = &centred[size(c * d)], *y = &product[size(c * d)], *l = in.l.data() + c * triangle;
      double* d_l = dl + c * triangle;
      d_alpha[c] += w;
      for (int i = 0; i < d; ++i) {
        dq[c * d + i] += w * (1 - y[i] * x[i] * diagonal[size(c * d + i)]);
        double back = diagonal[size(c * d + i)] * y[i];
        for (int j = i + 1; j < d; ++j) {
          back += *l++ * y[j];
          *d_l++ -= w * y[j] * x[i];
        }
        d_mu[c * d + i] += w * back;
      }
    }
  }
}

}   // namespace

std::vector<Work> works(const std::shared_ptr<const gmm::Input>& in) {
  if (kSuite) {
    const auto x = std::make_shared<Values>();
    for (const Values* part : {&in->alpha, &in->mu, &in->q, &in->l})
      x->insert(x->end(), part->begin(), part->end());
    return {work([in, x](Values& out) { out.assign(1, gmm::objective(*in, x->data())); }),
            work([in](Values& out) { gradient_as_suite(*in, out); })};
  }
  const auto fast = std::make_shared<Gmm>(in);
  return {work([fast](Values& out) { fast->objective(out); }),
          work([fast](Values& out) { fast->gradient(out); })};
}

}   // namespace gradbench::GRADBENCH_KIND
