// In: scopes as they begin and end, and the calls on the stack. Out: their names.
#include "debug/origin.h"

#include <cxxabi.h>
#include <execinfo.h>

#include "core/format.h"
#include "tapedeck/debug.h"

namespace tapedeck {
namespace {

constinit thread_local const Scope* innermost_scope __attribute__((tls_model("initial-exec"))) = nullptr;

}   // namespace

Scope::Scope(std::string name) : name_(std::move(name)), outer_(std::exchange(innermost_scope, this)) {}
Scope::~Scope() { innermost_scope = outer_; }

std::string scopes() {
  std::string path;
  for (const Scope* s = innermost_scope; s; s = s->outer())
    path.insert(0, path.empty() ? s->name() : s->name() + "/");
  return path;
}

std::shared_ptr<const Origin> origin_here(std::uint64_t id) {
  void* calls[64];
  const int n = backtrace(calls, 64);
  return std::make_shared<const Origin>(Origin{id, scopes(), std::vector<void*>(calls, calls + n)});
}

namespace {

// "program(_ZN3net5layerEv+0x1c) [0x55…]": returns the function if the symbol is known, else the whole text.
std::string readable(const std::string& line) {
  const std::size_t open = line.find('('), plus = line.find('+', open);
  if (plus == std::string::npos || plus == open + 1) return line;
  const std::string symbol = line.substr(open + 1, plus - open - 1);
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(
      abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), std::free);
  return name ? name.get() : symbol;
}

}   // namespace

std::vector<std::string> callers(const Origin& origin) {
  constexpr std::size_t kMost = 8;
  std::vector<std::string> found;
  const std::unique_ptr<char*, decltype(&std::free)> lines(
      backtrace_symbols(origin.calls.data(), static_cast<int>(origin.calls.size())), std::free);
  for (std::size_t i = 0; lines && i < origin.calls.size() && found.size() < kMost; ++i) {
    const std::string line = lines.get()[i];
    if (line.find("libtapedeck") == std::string::npos && line.find("libc.so") == std::string::npos &&
        line.find("_start") == std::string::npos)
      found.push_back(readable(line));
  }
  return found;
}

std::string describe(const Origin& origin) {
  std::string text = origin.scopes.empty() ? "" : fmt::format("\n  in scope \"{}\"", origin.scopes);
  std::string_view how = "recorded by";
  for (const std::string& caller : callers(origin))
    text += fmt::format("\n  {} {}", std::exchange(how, "by"), caller);
  return text;
}

}   // namespace tapedeck
