// Newton's method by conjugate gradients.
#include <algorithm>
#include <cmath>

#include "core/format.h"
#include "minimize/stuck.h"

namespace tapedeck {
namespace {

using Vector = std::vector<double>;

constexpr double kSufficient = 1e-4;   // of the decrease that the slope predicts
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
        options_(options) {
    if (options.max_products < 0)
      throw_error<ArgumentError>("minimize_newton: max_products is {}; use 0 or more", options.max_products);
    if (options_.max_products == 0)
      options_.max_products = static_cast<int>(std::min<std::size_t>(2 * objective_.size(), 200));
  }

  Minimum run() {
    at_ = objective_.begin();
    objective_.arrive(m_, at_);
    while (m_.reason.empty()) {
      if (!search(direction()) && !search(downhill()) && is_stuck()) break;
      ++m_.iterations;
      objective_.arrive(m_, at_);
    }
    return std::move(m_);
  }

 private:
  // If it is not stuck, continues from the lower point that why_stuck has found.
  bool is_stuck() {
    m_.reason = why_stuck(objective_, at_);
    if (m_.reason.empty()) at_ = objective_.best();
    objective_.note(m_, at_);
    return !m_.reason.empty();
  }

  Vector product(const Vector& v) {
    Vector h(v.size());
    const std::vector<Tensor> parts =
        detail::hessian_vector_product(f_, m_.x, objective_.unpack(v), JacobianMode::automatic);
    objective_.pack(parts, h);
    ++m_.products;
    return h;
  }

  // The step p with H p = -g, solved accurately enough to keep the fast convergence of Newton's method near
  // the minimum. r and d are in units of the gradient, so that their squares neither overflow nor underflow.
  Vector direction() {
    const double unit = unit_of(m_.gradient_norm);
    const double enough = std::min(0.5, std::sqrt(m_.gradient_norm)) * (m_.gradient_norm / unit);
    Vector p(at_.g.size()), r(at_.g.size()), d(at_.g.size());
    add(1 / unit, at_.g, r);
    add(-1, r, d);
    double rr = dot(r, r);
    for (int k = 0; k < options_.max_products; ++k) {
      const Vector h = product(d);
      const double curvature = dot(d, h);
      if (!(curvature > 0)) {
        if (k == 0) add(unit * std::abs(rr / curvature), d, p);
        break;
      }
      const double a = rr / curvature;
      add(a * unit, d, p);
      add(a, h, r);
      const double next = dot(r, r);
      if (std::sqrt(next) <= enough) break;
      for (std::size_t i = 0; i < d.size(); ++i)
        d[i] = next / rr * d[i] - r[i];
      rr = next;
    }
    return p;
  }

  // The negative gradient, of a length of at most 1.
  Vector downhill() {
    Vector p(at_.g.size());
    add(-1 / std::max(1.0, m_.gradient_norm), at_.g, p);
    return p;
  }

  // Continues from the best point evaluated. Mostly this is the first of the steps p, p/2, p/4, … that lowers
  // the value enough, but a longer step may have found a lower one. Returns false if there is no lower point
  // and halve() fails.
  bool search(const Vector& p) {
    const bool found = halve(p);
    if (!is_lower(objective_.best().value, at_.value)) return found;
    at_ = objective_.best();
    return true;
  }

  bool halve(const Vector& p) {
    const double slope = dot(at_.g, p);
    if (!(slope < 0)) return false;
    Point next = at_;
    double length = 1;
    for (int k = 0; k < kMaxHalvings; ++k, length /= 2) {
      next.x = at_.x;
      add(length, p, next.x);
      next.value = objective_.value_and_gradient(next.x, next.g);
      if (!is_finite(next.value, next.g)) continue;
      if (next.value <= at_.value + kSufficient * length * slope || is_flat(next, p, slope)) {
        std::swap(at_, next);
        return true;
      }
    }
    return false;
  }

  // If the decrease is lost in the rounding of the value, the slope must have decreased. Comparing with the
  // best value ensures that such steps never add up to an increase.
  bool is_flat(const Point& next, const Vector& p, double slope) {
    const double best = objective_.best().value;
    return std::abs(next.value - best) <= 1e-15 * std::abs(best) &&
           std::abs(dot(next.g, p)) <= 0.9 * std::abs(slope);   // else the search may alternate
  }

  const detail::Traced& f_;
  Objective objective_;
  NewtonOptions options_;
  Point at_;
  Minimum m_;
};

}   // namespace

Minimum detail::minimize_newton(const Traced& f, const std::vector<Tensor>& x, const NewtonOptions& options) {
  return Newton(f, x, options).run();
}

}   // namespace tapedeck
