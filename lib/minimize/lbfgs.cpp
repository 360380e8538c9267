// L-BFGS by libLBFGS, through whose C code no exception may pass.
#include <cmath>
#include <exception>
#include <limits>
#include <memory>

#include "core/format.h"
#include "minimize/objective.h"
#ifdef TAPEDECK_LBFGS
#include <lbfgs.h>
#endif

namespace tapedeck {

#ifdef TAPEDECK_LBFGS
namespace {

struct Run {
  Objective& objective;
  const LbfgsOptions& options;
  Minimum m;
  std::exception_ptr thrown;
};

std::span<const double> values(const double* x, int n) { return {x, static_cast<std::size_t>(n)}; }

// After an exception it gives NaN, and the library gives up.
double evaluate(void* instance, const double* x, double* g, int n, double) noexcept {
  Run& run = *static_cast<Run*>(instance);
  const std::span<double> gradient(g, static_cast<std::size_t>(n));
  if (!run.thrown) try {
      return run.objective.value_and_gradient(values(x, n), gradient);
    } catch (...) {
      run.thrown = std::current_exception();
    }
  std::ranges::fill(gradient, 0.0);
  return std::numeric_limits<double>::quiet_NaN();
}

int progress(void* instance, const double* x, const double* g, double value, double, double, double, int n,
             int k, int) noexcept {
  Run& run = *static_cast<Run*>(instance);
  try {
    run.objective.note(run.m, values(x, n), value, values(g, n));
    run.m.iterations = k;
    return run.options.progress && !run.options.progress(run.m) ? LBFGS_STOP : 0;
  } catch (...) {
    run.thrown = std::current_exception();
    return LBFGS_STOP;
  }
}

std::string reason_of(int status) {
  switch (status) {
    case LBFGS_SUCCESS:
    case LBFGS_ALREADY_MINIMIZED:
      return "the gradient is small";
    case LBFGS_STOP:
      return "stopped by progress";
    case LBFGSERR_MAXIMUMITERATION:
      return "max_iterations";
    case LBFGSERR_OUTOFMEMORY:
      throw std::bad_alloc();
    default:
      return "no step lowers the value: rounding allows no better one, or the gradient is not that of the "
             "value";
  }
}

}   // namespace

Minimum minimize_lbfgs(const ValueAndGrad& f, const std::vector<Tensor>& x, const LbfgsOptions& options) {
  Objective objective("minimize_lbfgs", f, x, options);
  if (options.history < 1)
    throw_error<ArgumentError>("minimize_lbfgs: history is {}; use 1 or more", options.history);
  const std::size_t n = objective.size();
  if (n > static_cast<std::size_t>(std::numeric_limits<int>::max() - 16))
    throw_error<ArgumentError>("minimize_lbfgs: x has {} elements; libLBFGS takes up to 2³¹ - 17", n);

  Run run{objective, options, {}, {}};
  std::vector<double> g(n);
  objective.note(run.m, objective.start(), objective.begin(g), g);
  if (run.m.converged || options.max_iterations == 0) {
    run.m.reason = run.m.converged ? "the gradient is small" : "max_iterations";
    return run.m;
  }

  const std::unique_ptr<double, void (*)(double*)> own(lbfgs_malloc(static_cast<int>(n)), lbfgs_free);
  if (!own) throw std::bad_alloc();
  std::ranges::copy(objective.start(), own.get());
  lbfgs_parameter_t parameters;
  lbfgs_parameter_init(&parameters);
  parameters.m = options.history;
  parameters.epsilon = options.tolerance;
  parameters.max_iterations = options.max_iterations;
  const int status = lbfgs(static_cast<int>(n), own.get(), nullptr, evaluate, progress, &run, &parameters);
  if (run.thrown) std::rethrow_exception(run.thrown);
  run.m.evaluations = objective.evaluations();
  run.m.reason = reason_of(status);
  return std::move(run.m);
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
