// Newton's method by conjugate gradients.
#include <algorithm>
#include <cmath>

#include "core/format.h"
#include "minimize/objective.h"

namespace tapedeck {
namespace {

using Vector = std::vector<double>;

constexpr double kSufficient = 1e-4;   // of the fall that the slope promises
constexpr int kMaxHalvings = 40;

// y += a x
void add(double a, const Vector& x, Vector& y) {
  for (std::size_t i = 0; i < y.size(); ++i)
    y[i] += a * x[i];
}

class Newton {
 public:
  Newton(const detail::Traced& f, const std::vector<Tensor>& x, const NewtonOptions& options)
      : f_(f),
        objective_("minimize_newton", detail::value_and_grad_of("minimize_newton", f), x, options),
        options_(options),
        x_(objective_.start()),
        g_(x_.size()) {
    if (options.max_products < 0)
      throw_error<ArgumentError>("minimize_newton: max_products is {}; use 0 or more", options.max_products);
    if (options_.max_products == 0)
      options_.max_products = static_cast<int>(std::min<std::size_t>(2 * x_.size(), 200));
  }

  Minimum run() {
    value_ = objective_.begin(g_);
    objective_.note(m_, x_, value_, g_);
    while (!done()) {
      if (!search(direction())) {
        m_.reason =
            "no step lowers the value: rounding allows no better one, or the gradient is not that of the "
            "value";
        break;
      }
      ++m_.iterations;
      objective_.note(m_, x_, value_, g_);
      if (options_.progress && !options_.progress(m_)) {
        m_.reason = "stopped by progress";
        break;
      }
    }
    return std::move(m_);
  }

 private:
  bool done() {
    if (m_.converged)
      m_.reason = "the gradient is small";
    else if (m_.iterations == options_.max_iterations)
      m_.reason = "max_iterations";
    return m_.converged || m_.iterations == options_.max_iterations;
  }

  Vector product(const Vector& v) {
    Vector h(v.size());
    const std::vector<Tensor> parts =
        detail::hessian_vector_product(f_, m_.x, objective_.unpack(v), JacobianMode::automatic);
    objective_.pack(parts, h);
    ++m_.products;
    return h;
  }

  // The step p with H p = -g, so nearly that Newton's fast convergence near the minimum is kept.
  Vector direction() {
    const double enough = std::min(0.5, std::sqrt(m_.gradient_norm)) * m_.gradient_norm;
    Vector p(g_.size()), r = g_, d(g_.size());
    add(-1, r, d);
    double rr = dot(r, r);
    for (int k = 0; k < options_.max_products; ++k) {
      const Vector h = product(d);
      const double curvature = dot(d, h);
      if (!(curvature > 0)) return k == 0 ? d : p;
      const double a = rr / curvature;
      add(a, d, p);
      add(a, h, r);
      const double next = dot(r, r);
      if (std::sqrt(next) <= enough) break;
      for (std::size_t i = 0; i < d.size(); ++i)
        d[i] = next / rr * d[i] - r[i];
      rr = next;
    }
    return p;
  }

  // The first of p, p/2, p/4, … that lowers the value enough; then x, the value and the gradient are those
  // there.
  bool search(const Vector& p) {
    const double slope = dot(g_, p);
    if (!(slope < 0)) return false;
    Vector x(x_.size()), g(x_.size());
    double length = 1;
    for (int k = 0; k < kMaxHalvings; ++k, length /= 2) {
      x = x_;
      add(length, p, x);
      const double value = objective_.value_and_gradient(x, g);
      // Where the fall is lost in the value's rounding, the slope must have fallen.
      const bool is_flat =
          std::abs(value - value_) <= 1e-15 * std::abs(value_) && std::abs(dot(g, p)) <= std::abs(slope);
      if (std::isfinite(dot(g, g)) && (value <= value_ + kSufficient * length * slope || is_flat)) {
        x_.swap(x), g_.swap(g), value_ = value;
        return true;
      }
    }
    return false;
  }

  const detail::Traced& f_;
  Objective objective_;
  NewtonOptions options_;
  Vector x_, g_;
  double value_ = 0;
  Minimum m_;
};

}   // namespace

Minimum detail::minimize_newton(const Traced& f, const std::vector<Tensor>& x, const NewtonOptions& options) {
  return Newton(f, x, options).run();
}

}   // namespace tapedeck
