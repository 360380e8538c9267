// Schedules: hyperparameters that change from step to step. In the formulas of namespace schedule, t is the
// step over `steps`. All throw ArgumentError if steps is not positive (in warm_up: if it is negative), and
// for numbers that are not finite.
#pragma once
#include <concepts>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "tapedeck/error.h"

namespace tapedeck {

/// A number for each step as a function of the number of steps taken before it, which is 0 for the first. An
/// optimizer and other functions that accept a schedule throw ArgumentError for an empty one.
using Schedule = std::function<double(std::int64_t step)>;

/// A number, a schedule, or a function without arguments that is called once per step, and once more when the
/// optimizer is constructed.
class Scheduled {
 public:
  Scheduled(double value) : value_(value) {}
  template <class F>
  requires std::is_invocable_r_v<double, const F&, std::int64_t> Scheduled(F f) : schedule_(std::move(f)) {
    check();
  }
  template <class F>
  requires std::is_invocable_r_v<double, const F&> Scheduled(F f) : schedule_(tied(std::move(f))) { check(); }

  /// The value after `step` steps.
  double at(std::int64_t step) const { return schedule_ ? schedule_(step) : value_; }
  /// Whether it is a schedule or function.
  bool varies() const { return static_cast<bool>(schedule_); }

 private:
  TAPEDECK_EXPORT void check() const;   // throws if the function is empty
  static Schedule tied(std::function<double()> f) {
    if (!f) return {};
    return [f = std::move(f)](std::int64_t) { return f(); };
  }

  double value_ = 0;
  Schedule schedule_;
};

namespace schedule {

/// The value of an omitted option that has no default; it throws ArgumentError.
inline constexpr double kUnset = std::numeric_limits<double>::quiet_NaN();

/// `value` in every step.
TAPEDECK_EXPORT Schedule constant(double value);

/// The options of exponential, inverse_time and natural_exponential. t is the step over `steps`.
struct Decay {
  double initial = kUnset;
  std::int64_t steps = 0;   // number of steps in which t increases by 1
  double rate = kUnset;
  bool staircase = false;   // t is rounded down
};
/// initial · rateᵗ. Throws ArgumentError for a rate below 0.
TAPEDECK_EXPORT Schedule exponential(Decay d);
/// initial / (1 + rate · t). Throws ArgumentError for a rate below 0.
TAPEDECK_EXPORT Schedule inverse_time(Decay d);
/// initial · exp(-rate · t)
TAPEDECK_EXPORT Schedule natural_exponential(Decay d);

/// The options of polynomial.
struct Polynomial {
  double initial = kUnset;
  std::int64_t steps = 0;
  double end = 1e-4, power = 1;
  bool cycle = false;   // beyond `steps`, t is the step over the next multiple of `steps`; otherwise
                        // the value stays
};
/// (initial - end) · (1 - t)^power + end, where t is the step over `steps`, at most 1. Throws ArgumentError
/// for a power below 0.
TAPEDECK_EXPORT Schedule polynomial(Polynomial p);

/// The options of cosine.
struct Cosine {
  double initial = kUnset;
  std::int64_t steps = 0;   // after these the value is constant
  double end = 0;           // the final value, as a fraction of initial
};
/// initial · ((1 - end) · (1 + cos πt)/2 + end). Loshchilov and Hutter, "SGDR", 2017, equation 5.
TAPEDECK_EXPORT Schedule cosine(Cosine c);

/// The options of cosine_restarts.
struct CosineRestarts {
  double initial = kUnset;
  std::int64_t steps = 0;   // length of the first period
  double longer = 2;        // ratio of the lengths of successive periods, 1 or more
  double lower = 1;         // ratio of the heights of successive periods
  double end = 0;
};
/// The cosine with restarts: in the n-th period, counting from 0, initial · ((1 - end) · lowerⁿ · (1 + cos
/// πt)/2 + end). Loshchilov and Hutter 2017.
TAPEDECK_EXPORT Schedule cosine_restarts(CosineRestarts c);

/// values[i] from the step after boundaries[i - 1] to boundaries[i] inclusive. Throws ArgumentError unless
/// boundaries ascend and there is one more value than boundaries.
TAPEDECK_EXPORT Schedule piecewise(std::vector<std::int64_t> boundaries, std::vector<double> values);

/// Increases linearly from `from` to the first value of `then` over `steps` steps; afterwards follows `then`,
/// whose steps count from there.
TAPEDECK_EXPORT Schedule warm_up(std::int64_t steps, Scheduled then, double from = 0);

}   // namespace schedule

}   // namespace tapedeck
