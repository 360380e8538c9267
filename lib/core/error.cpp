// Warnings: each distinct text is passed at most five times to the handler or to standard error.
#include <cstdio>
#include <map>
#include <mutex>
#include <utility>

#include "core/fork.h"
#include "core/format.h"

namespace tapedeck {
namespace {

struct Warnings {   // guarded by warnings_lock
  std::function<void(std::string_view)> handler;
  std::map<std::string, int, std::less<>> counts;   // by text
};

// Never destroyed: warnings may be issued during process exit.
Warnings& warnings() {
  static Warnings& w = *new Warnings;
  return w;
}

// Whether this thread runs the handler, and has the lock: a handler may cause warnings itself.
thread_local bool telling = false;
std::unique_lock<std::mutex> lock_warnings() {
  return telling ? std::unique_lock<std::mutex>() : std::unique_lock(warnings_lock);
}

}   // namespace

void set_warning_handler(std::function<void(std::string_view)> handler) {
  const auto lock = lock_warnings();
  warnings().handler = std::move(handler);
}

void warn(std::string_view text) {
  Warnings& w = warnings();
  const auto lock = lock_warnings();
  const auto at = w.counts.find(text);
  int& count = at != w.counts.end() ? at->second : w.counts.emplace(text, 0).first->second;
  if (count == 5) return;
  ++count;
  if (const auto handler = w.handler) {   // which may replace itself
    struct Telling {
      const bool before = std::exchange(telling, true);
      ~Telling() { telling = before; }
    } const here;
    return handler(text);
  }
  const std::string line = fmt::format("tapedeck: warning: {}\n", text);
  std::fputs(line.c_str(), stderr);   // which does not throw if nobody can read it
}

}   // namespace tapedeck
