// Whether the library may use oneDNN, and which version.
#pragma once
#include <string>

namespace tapedeck {

/// oneDNN's version. Empty if the library is built without it, or if the environment had TAPEDECK_ONEDNN=off
/// at the first call.
const std::string& onednn_version();

/// A scope that calls oneDNN. The kernels of oneDNN are statics, which exit() destroys, possibly while other
/// threads compute, or before destructors that still compute. So exit() first forbids further calls and waits
/// for those in progress.
class OnednnCall {
 public:
  OnednnCall() noexcept;
  ~OnednnCall();
  OnednnCall(const OnednnCall&) = delete;
  OnednnCall& operator=(const OnednnCall&) = delete;

  /// Whether oneDNN may be called.
  explicit operator bool() const { return may_; }
  /// Call this after a call that may have created statics of oneDNN: exit() forbids calls before it destroys
  /// them.
  static void has_made_statics() noexcept;

 private:
  bool may_;
};

}   // namespace tapedeck
