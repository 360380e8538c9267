// How ops and rules are shown to a thread's observers, and the names of places in a program.
#include "op/observer.h"

#include <cmath>

#include <cxxabi.h>
#include <execinfo.h>

#include "core/format.h"
#include "core/storage.h"
#include "core/visit.h"
#include "tape/tape.h"
#include "tapedeck/debug.h"

namespace tapedeck {
namespace {

constinit thread_local const Scope* innermost_scope __attribute__((tls_model("initial-exec"))) = nullptr;

template <class F> void each_observer(const F& f) {
  for (Observer* o = thread_state.observer; o; o = o->outer())
    f(*o);
}

// Observers are told that an event begins, and those that were told so that it ends.
class Shown {
 public:
  explicit Shown(const Event& e) : event_(e) {
    try {
      each_observer([&](Observer& o) { o.begins(e), ++told_; });
    } catch (...) {
      end();
      throw;
    }
  }
  ~Shown() { end(); }
  Shown(const Shown&) = delete;

 private:
  void end() noexcept {
    each_observer([&](Observer& o) {
      if (told_-- > 0) o.ends(event_);
    });
  }

  const Event& event_;
  int told_ = 0;
};

}   // namespace

Observer::~Observer() {
  Observer** at = &thread_state.observer;
  while (*at && *at != this)
    at = &(*at)->outer_;
  if (*at) *at = outer_;
}

void compute_observed(const Call& c, std::span<Tensor> y, void (*compute)(const Call&, std::span<Tensor>)) {
  const Event e{c.op.name, c, false, nullptr};
  const Shown shown(e);
  compute(c, y);
  each_observer([&](Observer& o) { o.computed(e, y); });
}

void show_computed(const Call& c, std::span<const Tensor> y) {
  const Event e{name_of(c.op, c.raw_attrs), c, false, nullptr};
  const Shown shown(e);
  each_observer([&](Observer& o) { o.computed(e, y); });
}

void show_read(const detail::VariableCell& cell, const Tensor& value) {
  each_observer([&](Observer& o) { o.read(cell, value); });
}

void show_rule(const Event& e, std::span<const Gradient> dy, std::span<const Gradient> dx,
               const std::function<void()>& pull_back) {
  const Shown shown(e);
  each_observer([&](Observer& o) { o.before_rule(e, dy); });
  pull_back();
  each_observer([&](Observer& o) { o.after_rule(e, dx); });
}

Scope::Scope(std::string name) : name_(std::move(name)), outer_(std::exchange(innermost_scope, this)) {}
Scope::~Scope() { innermost_scope = outer_; }

std::string scopes() {
  std::string path;
  for (const Scope* s = innermost_scope; s; s = s->outer())
    path = path.empty() ? s->name() : s->name() + "/" + path;
  return path;
}

std::shared_ptr<const Place> here(std::uint64_t id) {
  bool wanted = false;
  each_observer([&](Observer& o) { wanted |= o.wants_places(); });
  if (!wanted) return nullptr;
  void* calls[64];
  const int n = backtrace(calls, 64);
  return std::make_shared<const Place>(Place{id, scopes(), std::vector<void*>(calls, calls + n)});
}

namespace {

// "program(_ZN3net5layerEv+0x1c) [0x55…]": the function where the symbol is known, else all.
std::string readable(const std::string& line) {
  const std::size_t open = line.find('('), plus = line.find('+', open);
  if (open == std::string::npos || plus == std::string::npos || plus == open + 1) return line;
  const std::string symbol = line.substr(open + 1, plus - open - 1);
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(
      abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), std::free);
  return name ? name.get() : symbol;
}

}   // namespace

std::string describe(const Place& place) {
  constexpr std::size_t kMost = 8;
  std::string text = place.scopes.empty() ? "" : fmt::format("\n  in scope \"{}\"", place.scopes);
  const std::unique_ptr<char*, decltype(&std::free)> lines(
      backtrace_symbols(place.calls.data(), static_cast<int>(place.calls.size())), std::free);
  std::size_t shown = 0;
  for (std::size_t i = 0; lines && i < place.calls.size() && shown < kMost; ++i) {
    const std::string line = lines.get()[i];
    if (line.find("libtapedeck") != std::string::npos || line.find("libc.so") != std::string::npos ||
        line.find("_start") != std::string::npos)
      continue;
    text += fmt::format("\n  {} {}", shown++ ? "by" : "recorded by", readable(line));
  }
  return text;
}

std::int64_t first_not_finite(const Tensor& x) {
  if (!is_trainable(x.dtype()) || !x.raw()) return -1;
  return visit_floating(real_of(x.dtype()), [&]<class T>(T) {
    const int parts = is_complex(x.dtype()) ? 2 : 1;
    const T* number = elements<T>(x);
    const std::int64_t n = x.size() * parts;
    bool finite = true;
    for (std::int64_t i = 0; i < n; ++i)
      finite &= number[i] - number[i] == T(0);
    if (finite) return std::int64_t{-1};
    std::int64_t i = 0;
    while (std::isfinite(number[i]))
      ++i;
    return i / parts;
  });
}

}   // namespace tapedeck
