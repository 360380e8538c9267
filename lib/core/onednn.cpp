#include "core/onednn.h"

#include <cstdlib>
#include <string_view>

#ifdef TAPEDECK_ONEDNN
#include <oneapi/dnnl/dnnl.h>

#include "core/format.h"
#endif

namespace tapedeck {
namespace {

std::string version() {
#ifdef TAPEDECK_ONEDNN
  const char* asked = std::getenv("TAPEDECK_ONEDNN");
  if (asked && std::string_view(asked) == "off") return {};
  const dnnl_version_t& v = *dnnl_version();
  return fmt::format("{}.{}.{}", v.major, v.minor, v.patch);
#else
  return {};
#endif
}

}   // namespace

const std::string& onednn_version() {
  // Never destroyed: may be queried during process exit.
  [[gnu::used]] static const auto* const kept = new std::string(version());
  return *kept;
}

}   // namespace tapedeck
