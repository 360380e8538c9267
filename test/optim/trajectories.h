// Trajectories of all update rules, which scripts/trajectories computes with NumPy.
#pragma once
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "data_folder.h"
#include "tapedeck/optimizer.h"

namespace tapedeck::test {

using Json = nlohmann::json;

inline const std::vector<Json>& trajectories() {
  static const std::vector<Json> all = [] {
    std::ifstream file(data_folder() / "trajectories.json");
    return Json::parse(file).get<std::vector<Json>>();
  }();
  return all;
}

/// The rule of a trajectory, with its hyperparameters.
inline Optimizer optimizer_of(const Json& trajectory) {
  const auto settings = trajectory.at("hyperparameters").get<std::map<std::string, double>>();
  std::vector<Hyperparameter> all;
  for (const auto& [name, value] : settings)
    all.push_back({name, value});
  return Optimizer(trajectory.at("rule").get<std::string>(), all);
}

}   // namespace tapedeck::test
