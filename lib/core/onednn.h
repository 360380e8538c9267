// Whether convolutions may use oneDNN, and which version.
#pragma once
#include <string>

namespace tapedeck {

/// oneDNN's version. Empty if the library is built without it, or if the environment had TAPEDECK_ONEDNN=off
/// at the first call.
const std::string& onednn_version();

}   // namespace tapedeck
