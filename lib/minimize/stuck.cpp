#include "minimize/stuck.h"

#include <algorithm>
#include <cmath>

#include "core/format.h"

namespace tapedeck {
namespace {

struct Change {
  double slope;   // half the difference of the values at both ends, on which curvature has no effect
  double rise;    // mean of the values at both ends, minus the value between them
};

// The change over steps of ± `length` times the gradient from p; NaN if a value is not finite.
Change change(Objective& objective, const Point& p, double length) {
  std::vector<double> x(p.x.size()), g(p.x.size());
  const auto value = [&](double by) {
    for (std::size_t i = 0; i < x.size(); ++i)
      x[i] = p.x[i] + by * p.g[i];
    const double there = objective.value_and_gradient(x, g);
    return is_finite(there, g) ? there - p.value : std::nan("");
  };
  const double up = value(length), down = value(-length);
  return {(up - down) / 2, (up + down) / 2};
}

// Whether the value has a minimum at p along the gradient, as far as rounding permits to decide. Over a step
// just long enough for its change to exceed rounding, it must rise on both sides like a parabola, not like a
// kink: over a quarter of the step by a sixteenth, not by a quarter. The minimum of the parabola is lower
// than the value at p by slope² / (4 rise), for the larger of the measured slope and that of the gradient.
bool is_minimum(Objective& objective, const Point& p) {
  const double rounding = objective.rounding(p), size = norm(p.g);
  double length = 1e3 * rounding / size / size;
  const auto is_seen = [&](const Change& c) { return c.rise >= 100 * rounding && c.rise <= 1e4 * rounding; };
  Change whole = change(objective, p, length);
  for (int k = 0; k < 20 && !is_seen(whole); ++k)
    whole = change(objective, p, length *= whole.rise < 100 * rounding ? 4 : 0.25);
  const double slope = std::max(std::abs(whole.slope), length * size * size);
  return is_seen(whole) && slope / whole.rise * slope / 4 <= 10 * rounding &&
         change(objective, p, length / 4).rise <= whole.rise / 8;
}

bool are_near(double a, double b) { return std::abs(a - b) <= 0.1 * std::max(1.0, std::abs(a)); }

std::string rounding_unless_lower(const Objective& objective, const Point& p) {
  return is_lower(objective.best().value, p.value) ? ""
                                                   : "rounding: no step along the gradient lowers the value";
}

}   // namespace

// The change over a short step is lost in rounding, and the change over a long step is not determined by the
// slope. So the gradient is considered right if one of three steps agrees with it, and wrong if only two
// steps agree with each other. Near a minimum the slope can be too small for either, or the steps so long
// that two agree by chance.
std::string why_stuck(Objective& objective, const Point& p) {
  if (is_minimum(objective, p)) return rounding_unless_lower(objective, p);
  const double size = norm(p.g);
  bool some_finite = false;
  double last = std::nan("");   // the change over the previous step, relative to the gradient's prediction
  for (const double above_rounding : {1e3, 1e5, 1e7}) {
    const double promised = above_rounding * objective.rounding(p);
    const double ratio = change(objective, p, promised / size / size).slope / promised;
    if (are_near(1, ratio)) return rounding_unless_lower(objective, p);
    if (are_near(last, ratio))
      return fmt::format(
          "no step lowers the value, which does not follow the gradient (it has a kink at x, or the gradient "
          "is wrong): over a short step it changes by {:.3g}, where the gradient predicts {:.3g}",
          ratio * promised, promised);
    some_finite = some_finite || !std::isnan(ratio);
    last = ratio;
  }
  return some_finite ? rounding_unless_lower(objective, p)
                     : "no step lowers the value: near x the value or the gradient is not finite";
}

}   // namespace tapedeck
