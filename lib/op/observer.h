// Observer: something that looks at every op and every rule of its thread, to debug or to measure. Where
// there is none, which is a null pointer in the thread's state, nobody calls what is here.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/thread_state.h"
#include "tapedeck/op.h"

namespace tapedeck {

namespace detail {
struct VariableCell;
}

/// Where an op was recorded: the scopes, and the calls that led there, innermost first.
struct Place {
  std::uint64_t id;   // of the op's first tracked output
  std::string scopes;
  std::vector<void*> calls;
};

/// An op or a rule that is to run, or has run.
struct Event {
  std::string_view name;   // of the op, for users
  const Call& call;
  bool backward;        // its rule
  const Place* place;   // of a rule: where its op was recorded, or null
};

class Observer {
 public:
  Observer() : outer_(std::exchange(thread_state.observer, this)) {}
  virtual ~Observer();
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;
  Observer* outer() const { return outer_; }

  /// An event begins and ends, also by an exception. Events nest.
  virtual void begins(const Event&) {}
  virtual void ends(const Event&) noexcept {}
  /// An op has its outputs, and is not recorded yet; a rule has its cotangents, and then its gradients. May
  /// throw.
  virtual void computed(const Event&, std::span<const Tensor>) {}
  /// A variable is read; value is this read's own.
  virtual void read(const detail::VariableCell&, const Tensor& /*value*/) {}
  virtual void before_rule(const Event&, std::span<const Gradient>) {}
  virtual void after_rule(const Event&, std::span<const Gradient>) {}
  /// Whether tapes are to note where they record.
  virtual bool wants_places() const { return false; }

 private:
  Observer* outer_;
};

/// The kernel of a call, as the thread's observers see it.
void compute_observed(const Call& c, std::span<Tensor> y, void (*compute)(const Call&, std::span<Tensor>));
/// A call that brought its outputs.
void show_computed(const Call& c, std::span<const Tensor> y);
/// A read of a variable.
void show_read(const detail::VariableCell& cell, const Tensor& value);
/// The rule of a call, run by pull_back, which uses up dy and fills dx.
void show_rule(const Event& e, std::span<const Gradient> dy, std::span<const Gradient> dx,
               const std::function<void()>& pull_back);

/// Where this thread is, for a tape to note of an op, or null where no observer wants it.
std::shared_ptr<const Place> here(std::uint64_t id);
/// "a/b" for the scopes a and b.
std::string scopes();
/// Lines for a message: the scopes, then the calls outside the library.
std::string describe(const Place& place);

/// The position of the first number of x that is NaN or infinite, or -1.
std::int64_t first_not_finite(const Tensor& x);

}   // namespace tapedeck
