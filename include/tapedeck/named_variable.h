// NamedVariable: variables by the names that networks, checkpoints and reports have for them.
#pragma once
#include <string>

#include "tapedeck/variable.h"

namespace tapedeck {

/// A variable and what it is called, which need not be its name().
struct NamedVariable {
  std::string name;
  Variable variable;
};

}   // namespace tapedeck
