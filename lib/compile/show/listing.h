// Plans to look at: tables, graphs and pages.
#pragma once
#include <string>

#include "compile/plan/plan.h"
#include "op/observer.h"

namespace tapedeck {
class EventLog;
}

namespace tapedeck::compiled {

/// Where a value lies, in words.
std::string_view memory_of(const Plan& plan, ValueId v);
/// What is read of a value: " f32[3]", or of a part "[4:7] f32[3]", with the elements that it is.
std::string range_of(const Plan& plan, const Access& a);

/// A line for each node, in the order in which they run.
std::string table_of(const Plan& plan);

/// The steps of the plan as observers see them. Their names begin with that of the function: "f: group
/// mul+tanh", "f: matmul". Steps of one name are one line of a profile.
std::vector<ReplayedStep> steps_of(const Plan& plan, std::string_view function);

/// A graph for Graphviz.
std::string graph_of(const Plan& plan, std::string_view label);

/// What each of the steps has taken in a replay, on average; 0 where there was none.
std::vector<double> seconds_of(const EventLog& log, const ReplayedStep& replay, std::size_t steps);
/// The data of a page of HTML; `seconds` are those of the steps, or none.
std::string page_of(const Plan& plan, std::string_view title, std::span<const double> seconds);

}   // namespace tapedeck::compiled
