// Whether the library may use oneDNN, and which version.
#pragma once
#include <string>

namespace tapedeck {

/// oneDNN's version. Empty if the library is built without it, or if the environment had TAPEDECK_ONEDNN=off
/// at the first call.
const std::string& onednn_version();

/// A call of oneDNN. Its kernels are statics, which exit() destroys, also while other threads compute or
/// before destructors that still do. So the first of these calls that were made since then finds the door
/// closed, and exit() waits for those that are under way.
class OnednnCall {
 public:
  OnednnCall() noexcept;
  ~OnednnCall();
  OnednnCall(const OnednnCall&) = delete;
  OnednnCall& operator=(const OnednnCall&) = delete;

  /// Whether oneDNN may be called.
  explicit operator bool() const { return may_; }
  /// After a call by which oneDNN may have made statics: exit() closes the door before it destroys them.
  static void has_made_statics() noexcept;

 private:
  bool may_;
};

}   // namespace tapedeck
