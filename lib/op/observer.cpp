// In: ops, rules and reads of variables. Out: calls of the thread's observers.
#include "op/observer.h"

namespace tapedeck {
namespace {

template <class F> void each_observer(const F& f) {
  for (Observer* o = thread_state.observer; o; o = o->outer())
    f(*o);
}

// Calls begins(), and at the end ends() for those observers whose begins() returned.
class EventScope {
 public:
  explicit EventScope(const Event& e) : event_(e) {
    try {
      each_observer([&](Observer& o) { o.begins(e), ++begun_; });
    } catch (...) {
      end();
      throw;
    }
  }
  ~EventScope() { end(); }
  EventScope(const EventScope&) = delete;

 private:
  void end() noexcept {
    each_observer([&](Observer& o) {
      if (begun_-- > 0) o.ends(event_);
    });
  }

  const Event& event_;
  int begun_ = 0;
};

}   // namespace

Observer::~Observer() {
  Observer** at = &thread_state.observer;
  while (*at && *at != this)
    at = &(*at)->outer_;
  if (*at) *at = outer_;
}

void observe_kernel(const Call& c, std::span<Tensor> y, void (*kernel)(const Call&, std::span<Tensor>)) {
  const Event e{c.op.name, c, false, nullptr};
  const EventScope scope(e);
  kernel(c, y);
  each_observer([&](Observer& o) { o.computed(e, y); });
}

void observe_computed(std::string_view name, const Call& c, std::span<const Tensor> y) {
  const Event e{name, c, false, nullptr};
  const EventScope scope(e);
  each_observer([&](Observer& o) { o.computed(e, y); });
}

void observe_read(const detail::VariableCell& cell, const Tensor& value) {
  each_observer([&](Observer& o) { o.read(cell, value); });
}

void observe_rule(const Event& e, std::span<const Gradient> dy, std::span<const Gradient> dx,
                  const std::function<void()>& rule) {
  const EventScope scope(e);
  each_observer([&](Observer& o) { o.before_rule(e, dy); });
  rule();
  each_observer([&](Observer& o) { o.after_rule(e, dx); });
}

std::shared_ptr<const Origin> observe_origin(std::uint64_t id) {
  std::shared_ptr<const Origin> origin;
  each_observer([&](Observer& o) {
    if (!origin) origin = o.origin(id);
  });
  return origin;
}

}   // namespace tapedeck
