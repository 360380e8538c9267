// Whether convolutions may go to oneDNN.
#pragma once
#include <string>

namespace tapedeck {

/// Its version. Empty where the library is built without it, and where the environment said
/// TAPEDECK_ONEDNN=off when it was first asked.
const std::string& onednn_version();

}   // namespace tapedeck
