// In: ops, rules, reads of variables and steps of replays. Out: calls of the thread's observers.
#include "op/observer.h"

namespace tapedeck {
namespace {

template <class F> void each_observer(const F& f) {
  for (Observer* o = thread_state.observer; o; o = o->outer())
    f(*o);
}

// Calls `begin` for all observers, and, when the scope ends, `end` for those whose `begin` has returned.
template <class Begin, class End> class EventScope {
 public:
  EventScope(const Begin& begin, const End& end) : end_(end) {
    try {
      each_observer([&](Observer& o) { begin(o), ++begun_; });
    } catch (...) {
      finish();
      throw;
    }
  }
  ~EventScope() { finish(); }
  EventScope(const EventScope&) = delete;

 private:
  void finish() noexcept {
    each_observer([&](Observer& o) {
      if (begun_-- > 0) end_(o);
    });
  }

  End end_;
  int begun_ = 0;
};
auto scope_of(const Event& e) {
  return EventScope([&](Observer& o) { o.begins(e); }, [&](Observer& o) { o.ends(e); });
}

}   // namespace

Observer::~Observer() {
  Observer** at = &thread_state.observer;
  while (*at && *at != this)
    at = &(*at)->outer_;
  if (*at) *at = outer_;
}

void observe_kernel(const Call& c, std::span<Tensor> y, void (*kernel)(const Call&, std::span<Tensor>)) {
  const Event e{c.op.name, c, false, nullptr};
  const auto scope = scope_of(e);
  kernel(c, y);
  each_observer([&](Observer& o) { o.computed(e, y); });
}

void observe_computed(std::string_view name, const Call& c, std::span<const Tensor> y) {
  const Event e{name, c, false, nullptr};
  const auto scope = scope_of(e);
  each_observer([&](Observer& o) { o.computed(e, y); });
}

void observe_read(const detail::VariableCell& cell, const Tensor& value) {
  each_observer([&](Observer& o) { o.read(cell, value); });
}

void observe_rule(const Event& e, std::span<const Gradient> dy, std::span<const Gradient> dx,
                  const std::function<void()>& rule) {
  const auto scope = scope_of(e);
  each_observer([&](Observer& o) { o.before_rule(e, dy); });
  rule();
  each_observer([&](Observer& o) { o.after_rule(e, dx); });
}

void observe_step(const ReplayedStep& step, const std::function<void()>& run) {
  const EventScope scope([&](Observer& o) { o.step_begins(step); }, [](Observer& o) { o.step_ends(); });
  run();
}

bool must_see_ops() {
  bool any = false;
  each_observer([&](Observer& o) { any |= !o.sees_replays(); });
  return any;
}

std::shared_ptr<const Origin> observe_origin(std::uint64_t id) {
  std::shared_ptr<const Origin> origin;
  each_observer([&](Observer& o) {
    if (!origin) origin = o.origin(id);
  });
  return origin;
}

}   // namespace tapedeck
