// The evals' inputs and outputs in GradBench's messages.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "suite.h"

namespace gradbench {

/// The request of an evaluate message.
struct Question {
  Forms forms;
  std::function<nlohmann::json(std::size_t function, const Values& result)> output;
};

/// Throws nlohmann::json::exception if the input is incomplete, and std::invalid_argument for an unknown eval
/// or inconsistent sizes.
Question read(const std::string& eval, const nlohmann::json& input);

}   // namespace gradbench
