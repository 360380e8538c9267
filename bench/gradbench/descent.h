// The suite's gradient descent, of particle and saddle: steps that grow after ten that went down, and shrink
// after one that did not.
#pragma once
#include <array>
#include <cmath>

namespace gradbench {

// What it asks of a point; here of numbers.
inline double norm(double x) { return std::abs(x); }
inline double minus(double x, double by, double y) { return x - by * y; }
inline double norm(const std::array<double, 2>& x) { return std::sqrt(x[0] * x[0] + x[1] * x[1]); }
inline std::array<double, 2> minus(const std::array<double, 2>& x, double by,
                                   const std::array<double, 2>& y) {
  return {x[0] - by * y[0], x[1] - by * y[1]};
}
inline double number(double x) { return x; }

template <class X, class F, class G> X argmin(const F& objective, const G& gradient, X x) {
  constexpr double enough = 1e-5;
  double eta = 1e-5, value = number(objective(x));
  X slope = gradient(x);
  for (int good = 0; norm(slope) > enough;) {
    if (good == 10) {
      eta *= 2;
      good = 0;
      continue;
    }
    const X next = minus(x, eta, slope);
    if (norm(minus(x, 1, next)) <= enough) break;
    const double next_value = number(objective(next));
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
