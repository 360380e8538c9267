// Why a minimizer finds no lower value.
#pragma once
#include "minimize/objective.h"

namespace tapedeck {

/// The reason why no step from p along the negative gradient lowers the value; empty if it finds one that
/// does. It evaluates the function at a few points on both sides of p, since differences between these show
/// whether the gradient is right.
std::string why_stuck(Objective& objective, const Point& p);

}   // namespace tapedeck
