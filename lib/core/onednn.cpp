#include "core/onednn.h"

#include <atomic>
#include <cstdlib>
#include <string_view>
#include <thread>

#include "core/fork.h"

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

constinit std::atomic<int> under_way{0};
constinit std::atomic<bool> closed{false};

// In a forked child the count includes calls of its parent, which never end in the child.
void close() {
  closed = true;
  while (under_way != 0 && !forked())
    std::this_thread::yield();
}

}   // namespace

OnednnCall::OnednnCall() noexcept {
  ++under_way;
  may_ = !closed;
  if (!may_) --under_way;
}
OnednnCall::~OnednnCall() {
  if (may_) --under_way;
}

void OnednnCall::has_made_statics() noexcept {
  std::atexit(close);   // handlers registered later run earlier
}

const std::string& onednn_version() {
  // Never destroyed: may be queried during process exit.
  [[gnu::used]] static const auto* const kept = new std::string(version());
  return *kept;
}

}   // namespace tapedeck
