// The Runge–Kutta method of order 4 in s steps from 0 to 2 for y_0' = x_0, y_i' = x_i y_(i-1), y(0) = 0; and
// the gradient of the last y.
#pragma once
#include "suite.h"

namespace gradbench::ode {

struct Input {
  Values x;
  int s;
};
Forms forms(const std::shared_ptr<const Input>& in);
Eval eval();

/// The derivative k of y for the system above.
template <class T> static void slope(std::size_t n, const T* x, const T* y, T* k) {
  k[0] = x[0];
  for (std::size_t i = 1; i < n; ++i)
    k[i] = x[i] * y[i - 1];
}
template <class T> static void solve(const Input& in, const T* x, T* y) {
  const std::size_t n = in.x.size();
  const double h = 2.0 / in.s;
  std::vector<T> k1(n), k2(n), k3(n), k4(n), at(n);
  const auto step = [&](double by, const std::vector<T>& k) {
    for (std::size_t i = 0; i < n; ++i)
      at[i] = y[i] + by * k[i];
  };
  for (std::size_t i = 0; i < n; ++i)
    y[i] = 0;
  for (int t = 0; t < in.s; ++t) {
    slope(n, x, y, k1.data());
    step(h / 2, k1);
    slope(n, x, at.data(), k2.data());
    step(h / 2, k2);
    slope(n, x, at.data(), k3.data());
    step(h, k3);
    slope(n, x, at.data(), k4.data());
    for (std::size_t i = 0; i < n; ++i)
      y[i] += h / 6 * (k1[i] + 2 * k2[i] + 2 * k3[i] + k4[i]);
  }
}

}   // namespace gradbench::ode
