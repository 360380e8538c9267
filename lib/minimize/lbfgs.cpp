// L-BFGS by libLBFGS, through whose C code no exception may pass.
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

// Runs of the library, each of which begins with a step along the negative gradient, from the best point that
// the one before has seen.
class Lbfgs {
 public:
  Lbfgs(Objective& objective, const LbfgsOptions& options)
      : objective_(objective), options_(options), x_(nullptr, lbfgs_free) {
    lbfgs_parameter_init(&parameters_);
    parameters_.m = options.history;
    parameters_.epsilon = options.tolerance;
  }

  Minimum run() {
    at_ = objective_.begin();
    objective_.note(m_, at_);
    while (m_.reason.empty())
      if (m_.converged)
        m_.reason = "the gradient is small";
      else if (m_.iterations == options_.max_iterations)
        m_.reason = "max_iterations";
      else
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
      case LBFGS_STOP:
        m_.reason = "stopped by progress";
        break;
      case LBFGS_ALREADY_MINIMIZED:   // by a norm of x that is rounded otherwise
        m_.converged = true;
        break;
      case LBFGS_SUCCESS:
      case LBFGSERR_MAXIMUMITERATION:
        break;
      case LBFGSERR_OUTOFMEMORY:
        throw std::bad_alloc();
      case LBFGSERR_MAXIMUMSTEP:
        m_.converged = false;   // though beside so large an x any gradient is small
        m_.reason =
            "the longest step, of 1e20 times the direction, still lowers the value: it may have no minimum";
        break;
      default:
        if (m_.iterations == before) search_failed_at(from);
    }
  }

  // Along the negative gradient, too. That the search has seen a lower value makes it a step all the same.
  void search_failed_at(const Point& from) {
    if (!is_lower(m_.value, from.value)) m_.reason = why_stuck(objective_, from);
    objective_.note(m_, from);
    if (!m_.reason.empty()) return;
    ++m_.iterations;
    if (options_.progress && !options_.progress(m_)) m_.reason = "stopped by progress";
  }

  int call_library() {
    const int n = static_cast<int>(objective_.size());
    if (!x_) x_.reset(lbfgs_malloc(n));
    if (!x_) throw std::bad_alloc();
    std::ranges::copy(at_.x, x_.get());
    is_start_ = true;
    done_before_ = m_.iterations;
    parameters_.max_iterations = options_.max_iterations - m_.iterations;
    // The first step is of length 1, and later ones are of 1 times their direction.
    const double first = 1 / std::sqrt(dot(at_.g, at_.g));
    parameters_.min_step = 1e-20 * std::min(1.0, first);
    parameters_.max_step = 1e20 * std::max(1.0, first);
    return lbfgs(n, x_.get(), nullptr, &Lbfgs::evaluate, &Lbfgs::progress, this, &parameters_);
  }

  const Point& lowest() const {
    return is_lower(objective_.best().value, at_.value) ? objective_.best() : at_;
  }

  // After an exception it gives NaN, and the library gives up.
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
      std::ranges::copy(at_.g, g.begin());
      return at_.value;
    }
    const double value = objective_.value_and_gradient(x, g);
    return is_finite(value, g) ? value : barrier(x, g);
  }

  // The library's search computes with all values that it is given. Where they are not finite it is told that
  // the value has risen by as much as the slope promised it would fall, and it tries a shorter step.
  double barrier(std::span<const double> x, std::span<double> g) const {
    double promised = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      promised += at_.g[i] * (x[i] - at_.x[i]);
      g[i] = -at_.g[i];
    }
    return at_.value + (std::isfinite(promised) ? std::abs(promised) : 1.0);
  }

  static int progress(void* instance, const double* x, const double* g, double value, double, double, double,
                      int n, int k, int) noexcept {
    Lbfgs& run = *static_cast<Lbfgs*>(instance);
    try {
      return run.progress({{x, x + n}, {g, g + n}, value}, k) ? 0 : LBFGS_STOP;
    } catch (...) {
      run.thrown_ = std::current_exception();
      return LBFGS_STOP;
    }
  }

  bool progress(Point next, int k) {
    at_ = std::move(next);
    objective_.note(m_, at_);
    m_.iterations = done_before_ + k;
    return !options_.progress || options_.progress(m_);
  }

  Objective& objective_;
  const LbfgsOptions& options_;
  lbfgs_parameter_t parameters_;
  std::unique_ptr<double, void (*)(double*)> x_;
  Point at_;   // where the search that is under way begins
  bool is_start_ = false;
  int done_before_ = 0;   // iterations of the runs before
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
