// Plans as text: tables and graphs.
#pragma once
#include <string>

#include "program/plan.h"

namespace tapedeck::program {

/// "mul", "gradient of mul", "read w"
std::string name_of(const Node& node);

/// A line for each node, in the order in which they run.
std::string table_of(const Plan& plan);

/// A graph for Graphviz.
std::string graph_of(const Plan& plan, std::string_view label);

}   // namespace tapedeck::program
