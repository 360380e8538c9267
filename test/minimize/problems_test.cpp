// minimize_lbfgs and minimize_newton on published problems, a pendulum and random problems, and the
// properties of every result.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <set>

#include "core/sanitizers.h"
#include "minimize/problems.h"
#include "tapedeck/minimize.h"
#include "tapedeck/tapedeck.h"

namespace problems_test {

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

// The function, which also keeps count of its values.
struct Watched {
  const Problem& p;
  double* least;
  int* calls;

  Tensor operator()(const Tensor& x) const {
    const Tensor value = p.f(x);
    *least = std::fmin(*least, value.item<double>());
    ++*calls;
    return value;
  }
};

void check_reason(const Minimum& m, const MinimizeOptions& options) {
  CHECK(m.converged == (m.reason == "the gradient is small"));
  if (m.reason == "max_iterations") {
    CHECK(m.iterations == options.max_iterations);
  } else if (!m.converged) {
    CHECK(m.reason == "rounding: no step along the gradient lowers the value");   // the gradients are right
  }
}

/// By L-BFGS or by Newton's method; checks what holds of every result.
Minimum minimum_of(const Problem& p, bool by_lbfgs, const MinimizeOptions& options) {
  double least = std::numeric_limits<double>::infinity();
  int calls = 0;
  const Watched f{p, &least, &calls};
  const Tensor start = tensor(p.start);
  const Minimum m = by_lbfgs ? minimize_lbfgs(f, start, {options}) : minimize_newton(f, start, {options});
  INFO(p.name << (by_lbfgs ? " by L-BFGS: " : " by Newton's method: ") << m.value << ", " << m.reason);
  CHECK(p.f(m.x[0]).item<double>() == m.value);
  CHECK(m.value - least <= 1e-15 * std::abs(least));   // a value that is lower by rounding alone is no better
  if (by_lbfgs) CHECK(m.evaluations == calls);
  check_reason(m, options);
  return m;
}

}   // namespace

TEST_CASE("minimizers reach the published minima", "[minimizers]") {
  // These are nearly flat around their minima. Whether the value is the least by the time that the gradient
  // is small depends on rounding, and so on the processor's instructions.
  const std::set<std::string> flat = {"Powell badly scaled", "Watson 12"};
  for (const Problem& p : published_problems())
    for (int by_lbfgs = 0; by_lbfgs < 1 + has_lbfgs(); ++by_lbfgs) {
      if (p.name == "Meyer" && !by_lbfgs) continue;   // Newton's method takes tens of thousands of steps
      const Minimum m = minimum_of(p, by_lbfgs, {.tolerance = 1e-8, .max_iterations = 20000});
      CAPTURE(p.name, by_lbfgs, m.value, m.reason);
      CHECK((is_minimum(p, m.value) || (flat.contains(p.name) && m.value < 1e-5)));
    }
}

TEST_CASE("minimizers swing a pendulum up", "[minimizers]") {
  const Problem p = pendulum();
  if (has_lbfgs()) CHECK(minimum_of(p, true, {.tolerance = 1e-5}).value < 8);
  CHECK(minimum_of(p, false, {.tolerance = 1e-5, .max_iterations = 50}).value < 12);
}

TEST_CASE("minimizers end where the gradient is small on 200 random problems", "[minimizers]") {
  std::vector<Problem> problems = random_problems();
  if (kAddressSanitizer) problems.erase(problems.begin() + 50, problems.end());
  for (const Problem& p : problems)
    for (int by_lbfgs = 0; by_lbfgs < 1 + has_lbfgs(); ++by_lbfgs) {
      const Minimum m = minimum_of(p, by_lbfgs, {.tolerance = 1e-8, .max_iterations = 2000});
      CAPTURE(p.name, by_lbfgs, m.value, m.gradient_norm, m.reason);
      CHECK(m.gradient_norm <= 1e-5 * std::max(1.0, std::abs(m.value)));
    }
}

}   // namespace problems_test
