// The square of a number.
#pragma once
#include "suite.h"

namespace gradbench::hello {

struct Input {
  double x;
};
Forms forms(const std::shared_ptr<const Input>& in);
Eval eval();

template <class T> static T objective(const Input&, const T* x) { return x[0] * x[0]; }

}   // namespace gradbench::hello
