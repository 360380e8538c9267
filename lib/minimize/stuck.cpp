#include "minimize/stuck.h"

#include <algorithm>
#include <cmath>

#include "core/format.h"

namespace tapedeck {
namespace {

// The change of the value over a step from p of `length` times the gradient, by a central difference, which
// the curvature does not change; NaN where a value is not finite.
double change(Objective& objective, const Point& p, double length) {
  std::vector<double> x(p.x.size()), g(p.x.size());
  const auto value = [&](double by) {
    for (std::size_t i = 0; i < x.size(); ++i)
      x[i] = p.x[i] + by * p.g[i];
    const double there = objective.value_and_gradient(x, g);
    return is_finite(there, g) ? there : std::nan("");
  };
  return (value(length) - value(-length)) / 2;
}

bool are_near(double a, double b) { return std::abs(a - b) <= 0.1 * std::max(1.0, std::abs(a)); }

std::string rounding_unless_lower(const Objective& objective, const Point& p) {
  return is_lower(objective.best().value, p.value) ? ""
                                                   : "rounding: no step along the gradient lowers the value";
}

}   // namespace

// The change over a short step is lost in rounding, that over a long one is not the slope's. So the gradient
// is right where one of three steps agrees with it, and not where two agree with each other alone; near a
// minimum the slope can be too small for either.
std::string why_stuck(Objective& objective, const Point& p) {
  const double size = norm(p.g);
  bool some_finite = false;
  double last = std::nan("");   // the change over the step before, for 1 by the gradient
  for (const double above_rounding : {1e3, 1e5, 1e7}) {
    const double promised = above_rounding * objective.rounding(p);
    const double ratio = change(objective, p, promised / size / size) / promised;
    if (are_near(1, ratio)) return rounding_unless_lower(objective, p);
    if (are_near(last, ratio))
      return fmt::format(
          "no step lowers the value, which does not follow the gradient (it has a kink at x, or the gradient "
          "is wrong): over a short step it changes by {:.3g}, by the gradient {:.3g}",
          ratio * promised, promised);
    some_finite = some_finite || !std::isnan(ratio);
    last = ratio;
  }
  return some_finite ? rounding_unless_lower(objective, p)
                     : "no step lowers the value: beside x the value or the gradient is not finite";
}

}   // namespace tapedeck
