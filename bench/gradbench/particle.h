// A charged particle between two charges; w is the position of one of them. Gradient descent finds the w for
// which the particle reaches the origin. The force is itself a gradient, of the potential. In the names of
// the functions, the first letter is the mode of the descent's gradient, the second the mode of the force: r
// for reverse, f for forward mode.
#pragma once
#include "suite.h"

namespace gradbench::particle {

struct Input {
  double w;
};
Forms forms(const std::shared_ptr<const Input>& in);
Eval eval();

}   // namespace gradbench::particle
