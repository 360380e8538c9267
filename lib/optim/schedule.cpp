// Schedules in closed form.
#include "tapedeck/schedule.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <memory>
#include <numbers>

#include "core/format.h"

namespace tapedeck {

void Scheduled::check() const {
  if (!schedule_) throw ArgumentError("schedule: the function is empty");
}

namespace schedule {
namespace {

struct Option {
  std::string_view name;
  double value;
};
void check_finite(std::string_view name, std::initializer_list<Option> options) {
  for (const Option& o : options) {
    if (std::isnan(o.value))
      throw_error<ArgumentError>("{}: {} is NaN or was left out; set it", name, o.name);
    if (std::isinf(o.value))
      throw_error<ArgumentError>("{}: {} is {}; use a finite number", name, o.name, o.value);
  }
}
void check_steps(std::string_view name, std::int64_t steps) {
  if (steps <= 0) throw_error<ArgumentError>("{}: steps is {}; use a number above 0", name, steps);
}

double over(std::int64_t step, std::int64_t steps) {
  return static_cast<double>(step) / static_cast<double>(steps);
}

// The schedule f(d, t), where t is step / d.steps, rounded down if d.staircase is set.
template <class F> Schedule decay(std::string_view name, const Decay& d, F f) {
  check_steps(name, d.steps);
  check_finite(name, {{"initial", d.initial}, {"rate", d.rate}});
  return [d, f](std::int64_t step) {
    const double t = over(step, d.steps);
    return f(d, d.staircase ? std::floor(t) : t);
  };
}

double half_wave(double t, double end) {
  return (1 - end) * 0.5 * (1 + std::cos(std::numbers::pi * t)) + end;
}

// For consecutive periods of the lengths 1, q, q², …: the index of the period that contains t, and the
// fraction of it that has passed.
struct Period {
  double number, t;
};
Period period_of(double t, double q_minus_1) {
  if (q_minus_1 == 0) return {std::floor(t), t - std::floor(t)};
  constexpr double kRounding = 1e-12;   // tolerates rounding at the beginning of a period
  const double log_q = std::log1p(q_minus_1), n = std::log1p(t * q_minus_1) / log_q,
               number = std::floor(n + kRounding * (1 + n)), begin = std::expm1(number * log_q) / q_minus_1;
  return {number, std::clamp((t - begin) / std::exp(number * log_q), 0.0, 1.0)};
}

}   // namespace

Schedule constant(double value) {
  check_finite("schedule::constant", {{"value", value}});
  return [value](std::int64_t) { return value; };
}

Schedule exponential(Decay d) {
  if (d.rate < 0) throw_error<ArgumentError>("schedule::exponential: rate is {}; use 0 or more", d.rate);
  return decay("schedule::exponential", d,
               [](const Decay& o, double t) { return o.initial * std::pow(o.rate, t); });
}
Schedule inverse_time(Decay d) {
  if (d.rate < 0) throw_error<ArgumentError>("schedule::inverse_time: rate is {}; use 0 or more", d.rate);
  return decay("schedule::inverse_time", d,
               [](const Decay& o, double t) { return o.initial / (1 + o.rate * t); });
}
Schedule natural_exponential(Decay d) {
  return decay("schedule::natural_exponential", d,
               [](const Decay& o, double t) { return o.initial * std::exp(-o.rate * t); });
}

Schedule polynomial(Polynomial p) {
  check_steps("schedule::polynomial", p.steps);
  check_finite("schedule::polynomial", {{"initial", p.initial}, {"end", p.end}, {"power", p.power}});
  if (p.power < 0) throw_error<ArgumentError>("schedule::polynomial: power is {}; use 0 or more", p.power);
  return [p](std::int64_t step) {
    const double t = over(step, p.steps), length = p.cycle ? std::max(1.0, std::ceil(t)) : 1;
    return (p.initial - p.end) * std::pow(1 - std::min(1.0, t / length), p.power) + p.end;
  };
}

Schedule cosine(Cosine c) {
  check_steps("schedule::cosine", c.steps);
  check_finite("schedule::cosine", {{"initial", c.initial}, {"end", c.end}});
  return [c](std::int64_t step) { return c.initial * half_wave(std::min(1.0, over(step, c.steps)), c.end); };
}

Schedule cosine_restarts(CosineRestarts c) {
  check_steps("schedule::cosine_restarts", c.steps);
  check_finite("schedule::cosine_restarts",
               {{"initial", c.initial}, {"longer", c.longer}, {"lower", c.lower}, {"end", c.end}});
  if (c.longer < 1)
    throw_error<ArgumentError>("schedule::cosine_restarts: longer is {}; use 1 or more", c.longer);
  return [c](std::int64_t step) {
    const Period p = period_of(over(step, c.steps), c.longer - 1);
    return c.initial * (std::pow(c.lower, p.number) * half_wave(p.t, 0) * (1 - c.end) + c.end);
  };
}

Schedule piecewise(std::vector<std::int64_t> boundaries, std::vector<double> values) {
  if (values.size() != boundaries.size() + 1)
    throw_error<ArgumentError>(
        "schedule::piecewise: {} boundaries, but {} values; there must be one more value than boundaries",
        boundaries.size(), values.size());
  if (std::adjacent_find(boundaries.begin(), boundaries.end(), std::greater_equal<>()) != boundaries.end())
    throw ArgumentError("schedule::piecewise: the boundaries must be ascending");
  for (const double v : values)
    check_finite("schedule::piecewise", {{"a value", v}});
  return [boundaries = std::move(boundaries), values = std::move(values)](std::int64_t step) {
    return values[static_cast<std::size_t>(std::lower_bound(boundaries.begin(), boundaries.end(), step) -
                                           boundaries.begin())];
  };
}

Schedule warm_up(std::int64_t steps, Scheduled then, double from) {
  if (steps < 0) throw_error<ArgumentError>("schedule::warm_up: steps is {}; use 0 or more", steps);
  check_finite("schedule::warm_up", {{"from", from}});
  return [steps, then = std::move(then), from](std::int64_t step) {
    return step < steps ? from + (then.at(0) - from) * over(step, steps) : then.at(step - steps);
  };
}

}   // namespace schedule

}   // namespace tapedeck
