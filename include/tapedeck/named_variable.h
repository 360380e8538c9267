// NamedVariable: a variable with the name that networks, checkpoints and reports use for it.
#pragma once
#include <string>

#include "tapedeck/variable.h"

namespace tapedeck {

/// A variable and its name in this context, which may differ from its name().
struct NamedVariable {
  std::string name;
  Variable variable;
};

}   // namespace tapedeck
