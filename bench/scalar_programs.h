// Two programs of scalars with nested derivatives, from GradBench, after Pearlmutter and Siskind: a saddle
// point, and a charged particle. Each is one template for all modes of differentiation.
#pragma once
#include <array>
#include <cmath>

#include "tapedeck/scalars.h"

namespace programs {

namespace scalars = tapedeck::scalars;
using scalars::Mode;
template <class S> using Point = std::array<S, 2>;

template <class S, std::size_t n> S distance(const std::array<S, n>& a, const std::array<S, n>& b) {
  S sum = 0;
  for (std::size_t i = 0; i < n; ++i)
    sum += (a[i] - b[i]) * (a[i] - b[i]);
  using std::sqrt;
  return sqrt(sum);
}

/// Gradient descent whose rate doubles after ten steps downhill and halves after a step that is not downhill.
/// Objective and gradient are functions of a std::array of S.
template <class S, std::size_t n, class Objective, class Gradient>
std::array<S, n> descend(const Objective& objective, const Gradient& gradient, std::array<S, n> x) {
  constexpr double kTolerance = 1e-5;
  S value = objective(x);
  std::array<S, n> slope = gradient(x), zero{};
  zero.fill(S(0));
  double rate = 1e-5;
  for (int downhill = 0; !(distance(slope, zero) <= kTolerance);) {
    if (downhill == 10) {
      rate *= 2;
      downhill = 0;
      continue;
    }
    std::array<S, n> next;
    for (std::size_t i = 0; i < n; ++i)
      next[i] = x[i] - rate * slope[i];
    if (distance(x, next) <= kTolerance) break;
    if (const S lower = objective(next); lower < value) {
      x = next;
      value = lower;
      slope = gradient(x);
      ++downhill;
    } else {
      rate /= 2;
      downhill = 0;
    }
  }
  return x;
}

/// x₁² + y₁² - x₂² - y₂².
template <class S, class T> auto saddle_function(const Point<S>& a, const Point<T>& b) {
  return (a[0] * a[0] + a[1] * a[1]) - (b[0] * b[0] + b[1] * b[1]);
}
/// The b that maximizes the function for a given a. S may be a number that the outer derivative tracks.
template <Mode inner, class S> Point<S> best_reply(const Point<S>& a, const Point<S>& start) {
  const auto negative = [&a](const auto& b) { return -saddle_function(a, b); };
  return descend(
      negative, [&](const Point<S>& b) { return scalars::gradient<inner>(negative, b); }, start);
}
/// min over a of max over b, by gradient descent for both: a, then b.
template <Mode outer, Mode inner> std::array<double, 4> saddle(const Point<double>& start) {
  const auto highest = [&start](const auto& a) {
    using S = std::remove_cvref_t<decltype(a[0])>;
    return saddle_function(a, best_reply<inner>(a, Point<S>{S(start[0]), S(start[1])}));
  };
  const auto a = descend(
      highest, [&](const Point<double>& at) { return scalars::gradient<outer>(highest, at); }, start);
  const auto b = best_reply<inner>(a, start);
  return {a[0], a[1], b[0], b[1]};
}

/// The square of the position at which a particle crosses the axis, by Euler's method, in the potential of
/// two charges. w moves one of them.
template <Mode inner, class S> S miss(const S& w) {
  const Point<S> charges[] = {{S(10), 10 - w}, {S(10), S(0)}};
  Point<S> x = {S(0), S(8)}, v = {S(0.75), S(0)};
  constexpr double kStep = 0.1;
  while (true) {
    const auto potential = [&](const auto& at) {
      using std::sqrt;
      const auto inverse = [&at](const Point<S>& c) {
        return 1 / sqrt((at[0] - c[0]) * (at[0] - c[0]) + (at[1] - c[1]) * (at[1] - c[1]));
      };
      return inverse(charges[0]) + inverse(charges[1]);
    };
    const auto slope = scalars::gradient<inner>(potential, x);
    for (std::size_t i = 0; i < 2; ++i)
      x[i] += kStep * v[i];
    if (x[1] <= 0) {
      const S end = x[0] - x[1] / v[1] * v[0];
      return end * end;
    }
    for (std::size_t i = 0; i < 2; ++i)
      v[i] -= kStep * slope[i];
  }
}
/// The w for which the particle passes through the origin.
template <Mode outer, Mode inner> double particle(double start) {
  const auto objective = [](const auto& w) { return miss<inner>(w[0]); };
  return descend(
      objective, [&](const std::array<double, 1>& w) { return scalars::gradient<outer>(objective, w); },
      std::array{start})[0];
}

}   // namespace programs
