// Plans as text: tables and graphs.
#pragma once
#include <string>

#include "compile/plan/plan.h"
#include "op/observer.h"

namespace tapedeck::compiled {

/// A line for each node, in the order in which they run.
std::string table_of(const Plan& plan);

/// The steps of the plan as observers see them. Their names begin with that of the function: "f: group
/// mul+tanh", "f: matmul". Steps of one name are one line of a profile.
std::vector<ReplayedStep> steps_of(const Plan& plan, std::string_view function);

/// A graph for Graphviz.
std::string graph_of(const Plan& plan, std::string_view label);

}   // namespace tapedeck::compiled
