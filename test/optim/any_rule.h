// Optimizers of any rule, for tests that apply to all of them.
#pragma once
#include <string_view>
#include <vector>

#include "tapedeck/optimizer.h"

namespace tapedeck::test {

/// An optimizer with values for the hyperparameters that have no default.
inline Optimizer optimizer_of(std::string_view rule, const Scheduled& learning_rate = 0.1,
                              double momentum = 0.9) {
  std::vector<Hyperparameter> given = {{"learning_rate", learning_rate}};
  if (rule == "momentum") given.push_back({"momentum", momentum});
  return Optimizer(rule, given);
}

}   // namespace tapedeck::test
