// Checks a plan before it is used.
#pragma once
#include <optional>
#include <string>

#include "compile/plan/plan.h"

namespace tapedeck::compiled {

/// What is wrong, or nothing. The steps are followed over memory that is tagged with the values that lie
/// there: each read must find the value that its access names, each write must go to memory that the program
/// owns and on which no value lies that is still needed, results must be there at the end, and stores and
/// actions keep their order. The code of groups is checked against their nodes.
std::optional<std::string> verify(const Plan& plan);

}   // namespace tapedeck::compiled
