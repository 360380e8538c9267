// Presentations of a plan: a table, a graph, and a page of HTML.
#pragma once
#include <string>

#include "compile/plan/plan.h"
#include "op/observer.h"

namespace tapedeck {
class EventLog;
}

namespace tapedeck::compiled {

/// The home of a value, in words.
std::string_view memory_of(const Plan& plan, ValueId v);
/// The elements and the spec of an access: " f32[3]" for a whole value, "[4:7] f32[3]" for a part.
std::string range_of(const Plan& plan, const Access& a);

/// A table with a line for each node, in the order in which they run.
std::string table_of(const Plan& plan);

/// The steps of the plan as observers see them. Their names begin with the name of the function: "f: group
/// mul+tanh", "f: matmul". Steps of the same name are one line of a profile.
std::vector<ReplayedStep> steps_of(const Plan& plan, std::string_view function);

/// A graph for Graphviz.
std::string graph_of(const Plan& plan, std::string_view label);

/// The average seconds of each step in a replay; 0 if there was no replay.
std::vector<double> seconds_of(const EventLog& log, const ReplayedStep& replay, std::size_t steps);
/// The data of a page of HTML. `seconds`: by step, or empty.
std::string page_of(const Plan& plan, std::string_view title, std::span<const double> seconds);

}   // namespace tapedeck::compiled
