// L-BFGS by libLBFGS; no exception may propagate through its C code.
#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <memory>
#include <utility>

#include "core/format.h"
#include "minimize/stuck.h"
#ifdef TAPEDECK_LBFGS
#include <lbfgs.h>
#endif

namespace tapedeck {

#ifdef TAPEDECK_LBFGS
namespace {

std::span<const double> values(const double* x, int n) { return {x, static_cast<std::size_t>(n)}; }

// Repeated runs of the library. Each begins at the best point evaluated in the previous run, with a step
// along the negative gradient.
class Lbfgs {
 public:
  Lbfgs(Objective& objective, const LbfgsOptions& options) : objective_(objective), x_(nullptr, lbfgs_free) {
    lbfgs_parameter_init(&parameters_);
    parameters_.m = options.history;
    parameters_.epsilon = 0;   // arrive() ends the run
  }

  Minimum run() {
    at_ = objective_.begin();
    objective_.arrive(m_, at_);
    while (m_.reason.empty())
      go_on();
    return std::move(m_);
  }

 private:
  // One run of the library. Sets the reason if nothing more can be done.
  void go_on() {
    const int before = m_.iterations;
    const Point from = at_ = lowest();
    const int status = call_library();
    if (thrown_) std::rethrow_exception(thrown_);
    objective_.note(m_, at_);
    switch (status) {
      case LBFGSERR_OUTOFMEMORY:
        throw std::bad_alloc();
      case LBFGSERR_MAXIMUMSTEP:
        m_.converged = false;   // any gradient is small relative to so large an x
        m_.reason =
            "the longest step, of 1e20 times the direction, still lowers the value: it may have no minimum";
        break;
      default:
        if (m_.iterations == before) search_failed_at(from);
    }
  }

  // Called if a run has failed, even with its first step along the negative gradient. If its search has
  // evaluated a lower value, this still counts as a step.
  void search_failed_at(const Point& from) {
    if (!is_lower(m_.value, from.value)) m_.reason = why_stuck(objective_, from);
    if (!m_.reason.empty()) return objective_.note(m_, from);
    ++m_.iterations;
    objective_.arrive(m_, from);
  }

  int call_library() {
    const int n = static_cast<int>(objective_.size());
    if (!x_) x_.reset(lbfgs_malloc(n));
    if (!x_) throw std::bad_alloc();
    std::ranges::copy(at_.x, x_.get());
    is_start_ = true;
    done_before_ = m_.iterations;
    unit_ = unit_of(norm(at_.g));
    return lbfgs(n, x_.get(), nullptr, &Lbfgs::evaluate, &Lbfgs::progress, this, &parameters_);
  }

  const Point& lowest() const {
    return is_lower(objective_.best().value, at_.value) ? objective_.best() : at_;
  }

  // After an exception it returns NaN, which ends the run.
  static double evaluate(void* instance, const double* x, double* g, int n, double) noexcept {
    Lbfgs& run = *static_cast<Lbfgs*>(instance);
    const std::span<double> gradient(g, static_cast<std::size_t>(n));
    if (!run.thrown_) try {
        return run.evaluate(values(x, n), gradient);
      } catch (...) {
        run.thrown_ = std::current_exception();
      }
    std::ranges::fill(gradient, 0.0);
    return std::numeric_limits<double>::quiet_NaN();
  }

  double evaluate(std::span<const double> x, std::span<double> g) {
    if (std::exchange(is_start_, false)) {
      next_ = at_;
    } else {
      next_.x.assign(x.begin(), x.end());
      next_.value = objective_.value_and_gradient(x, next_.g);
    }
    for (std::size_t i = 0; i < g.size(); ++i)
      g[i] = next_.g[i] / unit_;
    const double value = next_.value / unit_;
    return is_finite(value, g) && std::isfinite(dot(g, g)) ? value : barrier(x, g);
  }

  // The library's search computes with every value that it gets. If the value, the gradient or its squared
  // norm is not finite, evaluate() returns instead a value that has risen by as much as the slope predicts it
  // to fall, so that the search tries a shorter step.
  double barrier(std::span<const double> x, std::span<double> g) const {
    double promised = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      g[i] = -at_.g[i] / unit_;
      promised -= g[i] * (x[i] - at_.x[i]);
    }
    return at_.value / unit_ + (std::isfinite(promised) ? std::abs(promised) : 1.0);
  }

  static int progress(void* instance, const double*, const double*, double, double, double, double, int,
                      int k, int) noexcept {
    Lbfgs& run = *static_cast<Lbfgs*>(instance);
    try {
      run.progress(k);
    } catch (...) {
      run.thrown_ = std::current_exception();
    }
    return run.thrown_ || !run.m_.reason.empty() ? LBFGS_STOP : 0;
  }

  // A line search ends at the point evaluated last.
  void progress(int k) {
    at_ = next_;
    m_.iterations = done_before_ + k;
    objective_.arrive(m_, at_);
  }

  Objective& objective_;
  lbfgs_parameter_t parameters_;
  std::unique_ptr<double, void (*)(double*)> x_;
  Point at_, next_;   // start of the current line search; the point evaluated last
  double unit_ = 1;   // divides values and gradients, which the library squares
  bool is_start_ = false;
  int done_before_ = 0;   // iterations of earlier runs
  Minimum m_;
  std::exception_ptr thrown_;
};

}   // namespace

Minimum minimize_lbfgs(const ValueAndGrad& f, const std::vector<Tensor>& x, const LbfgsOptions& options) {
  Objective objective("minimize_lbfgs", f, x, options);
  if (options.history < 1)
    throw_error<ArgumentError>("minimize_lbfgs: history is {}; use 1 or more", options.history);
  const std::size_t n = objective.size();
  if (n > static_cast<std::size_t>(std::numeric_limits<int>::max() - 16))
    throw_error<ArgumentError>("minimize_lbfgs: x has {} elements; libLBFGS takes up to 2³¹ - 17", n);
  return Lbfgs(objective, options).run();
}

bool has_lbfgs() { return true; }
#else
Minimum minimize_lbfgs(const ValueAndGrad&, const std::vector<Tensor>&, const LbfgsOptions&) {
  throw ArgumentError(
      "minimize_lbfgs: the library was built without libLBFGS; install liblbfgs-dev and build with "
      "-Dlbfgs=enabled, or use minimize_newton");
}

bool has_lbfgs() { return false; }
#endif

}   // namespace tapedeck
