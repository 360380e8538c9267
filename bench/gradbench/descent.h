// The suite's gradient descent, for particle and saddle. The step size grows after ten steps downhill, and
// shrinks after a step that is not.
#pragma once
#include <array>
#include <cmath>

namespace gradbench {

/// The operations on points that the descent needs: norm(x) and minus(x, by, y) = x - by · y; and
/// number(value) for values.
template <class X> struct Space;

template <> struct Space<double> {
  static double norm(double x) { return std::abs(x); }
  static double minus(double x, double by, double y) { return x - by * y; }
  static double number(double x) { return x; }
};
template <> struct Space<std::array<double, 2>> {
  using Point = std::array<double, 2>;
  static double norm(const Point& x) { return std::sqrt(x[0] * x[0] + x[1] * x[1]); }
  static Point minus(const Point& x, double by, const Point& y) {
    return {x[0] - by * y[0], x[1] - by * y[1]};
  }
  static double number(double x) { return x; }
};

template <class X, class F, class G> X argmin(const F& objective, const G& gradient, X x) {
  using S = Space<X>;
  constexpr double enough = 1e-5;
  double eta = 1e-5, value = S::number(objective(x));
  X slope = gradient(x);
  for (int good = 0; S::norm(slope) > enough;) {
    if (good == 10) {
      eta *= 2;
      good = 0;
      continue;
    }
    const X next = S::minus(x, eta, slope);
    if (S::norm(S::minus(x, 1, next)) <= enough) break;
    const double next_value = S::number(objective(next));
    if (next_value < value) {
      x = next;
      value = next_value;
      slope = gradient(x);
      ++good;
    } else {
      eta /= 2;
      good = 0;
    }
  }
  return x;
}

}   // namespace gradbench
