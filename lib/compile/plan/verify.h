// Verifies a plan before it is used.
#pragma once
#include <optional>
#include <string>

#include "compile/plan/plan.h"

namespace tapedeck::compiled {

/// Returns the first broken rule, or nothing. The verifier simulates the steps on memory that is tagged with
/// the values stored there. Each read must find the value that its access names; each write must go to memory
/// that the program owns and that holds no value that is still needed; the results must be present at the
/// end; stores and actions must keep their order. The code of groups is verified against their nodes.
std::optional<std::string> verify(const Plan& plan);

/// Reports that the plan of a function has a fault and is not used: the function runs uncompiled. Tests make
/// this an error.
void report_fault(std::string_view function, std::string_view fault);

}   // namespace tapedeck::compiled
