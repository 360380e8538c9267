// The evals' inputs and outputs in GradBench's messages.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "suite.h"

namespace gradbench {

/// What an evaluate message asks.
struct Question {
  Forms forms;
  std::function<nlohmann::json(std::size_t function, const Values& result)> output;
};

/// Throws nlohmann::json::exception where the input lacks something, std::invalid_argument for another eval's
/// name, or sizes that do not fit together.
Question read(const std::string& eval, const nlohmann::json& input);

}   // namespace gradbench
