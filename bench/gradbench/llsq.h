// Least squares: a polynomial with the coefficients x, fitted to the sign of t at n points t in [-1, 1].
#pragma once
#include "suite.h"

namespace gradbench::llsq {

struct Input {
  Values x;
  int n;
};
Forms forms(const std::shared_ptr<const Input>& in);
Eval eval();

inline double point(int i, int n) { return -1 + 2.0 * i / (n - 1); }
inline double sign(double t) { return (0 < t) - (t < 0); }

template <class T> static T objective(const Input& in, const T* x) {
  T sum = 0;
  for (int i = 0; i < in.n; ++i) {
    const double t = point(i, in.n);
    double power = 1;
    T rest = sign(t);
    for (std::size_t j = 0; j < in.x.size(); ++j) {
      rest -= x[j] * power;
      power *= t;
    }
    sum += rest * rest;
  }
  return sum / 2;
}

}   // namespace gradbench::llsq
