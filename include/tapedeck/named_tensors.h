// NamedTensors: the contents of files, tensors by name.
#pragma once
#include <map>
#include <string>

#include "tapedeck/tensor.h"

namespace tapedeck {

/// Tensors by name, in the order of the names.
using NamedTensors = std::map<std::string, Tensor, std::less<>>;

}   // namespace tapedeck
