// The logarithm of a sum of exponentials.
#pragma once
#include <algorithm>
#include <cmath>

#include "suite.h"

namespace gradbench::lse {

struct Input {
  Values x;
};
Forms forms(const std::shared_ptr<const Input>& in);
Eval eval();

template <class T> static T objective(const Input& in, const T* x) {
  using std::exp, std::log;
  const double most = *std::max_element(in.x.begin(), in.x.end());
  T sum = 0;
  for (std::size_t i = 0; i < in.x.size(); ++i)
    sum += exp(x[i] - most);
  return log(sum) + most;
}

}   // namespace gradbench::lse
