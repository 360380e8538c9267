// The saddle point of |a|² - |b|², a, b in the plane: the minimum over a of the maximum over b, both found by
// gradient descent. In the names of the functions, the first letter is the mode of the outer gradient, the
// second the mode of the inner gradient.
#pragma once
#include <array>

#include "suite.h"

namespace gradbench::saddle {

struct Input {
  std::array<double, 2> start;
};
Forms forms(const std::shared_ptr<const Input>& in);
Eval eval();

}   // namespace gradbench::saddle
