// Observer: is notified of every op and every rule of its thread, for debugging and profiling. While a thread
// has no observer, thread_state.observer is null and nothing here is called.
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

/// Where an op was recorded: the open scopes, and the call stack, innermost call first.
struct Origin {
  std::uint64_t id;   // of the first tracked output of the op
  std::string scopes;
  std::vector<void*> calls;
};

/// One run of an op or of a rule.
struct Event {
  std::string_view name;   // the name of the op as users know it
  const Call& call;
  bool backward;          // the rule of the op runs, not the op
  const Origin* origin;   // for a rule: where its op was recorded; may be null
  // For a rule: the tape whose backward pass runs it, and the id of the first tracked output of its op.
  const Recorder* tape = nullptr;
  std::uint64_t id = 0;
};

/// A step of the replay of a compiled function, such as a group of ops; or, with `whole`, the entire replay,
/// in which its steps are nested.
struct ReplayedStep {
  std::string name;
  bool whole = false;                   // the entire replay
  std::int64_t read = 0, written = 0;   // known bytes of memory traffic
  Spec first = {};                      // of the first result
  const void* program = nullptr;        // of a replay: distinguishes programs of the same name
};

class Observer {
 public:
  Observer() : outer_(std::exchange(thread_state.observer, this)) {}
  virtual ~Observer();
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;
  Observer* outer() const { return outer_; }

  /// Called when an event begins and ends, even if it ends by an exception. Events nest.
  virtual void begins(const Event&) {}
  virtual void ends(const Event&) noexcept {}
  /// Called when the outputs of an op are computed, before it is recorded. May throw.
  virtual void computed(const Event&, std::span<const Tensor>) {}
  /// Called with the cotangents before a rule runs, and with the gradients after it. May throw.
  virtual void before_rule(const Event&, std::span<const Gradient>) {}
  virtual void after_rule(const Event&, std::span<const Gradient>) {}
  /// Called when a variable is read; value is the tensor that the read returns.
  virtual void read(const detail::VariableCell&, const Tensor& /*value*/) {}
  /// Whether compiled functions may be replayed under this observer, which is then notified of steps instead
  /// of ops.
  virtual bool sees_replays() const { return false; }
  /// Called when a replay or a step of it begins and ends, even if it ends by an exception.
  virtual void step_begins(const ReplayedStep&) {}
  virtual void step_ends() noexcept {}
  /// The current position of the thread, for a tape to store with the op whose first output has this id; null
  /// if the observer does not need it.
  virtual std::shared_ptr<const Origin> origin(std::uint64_t) const { return nullptr; }

 private:
  Observer* outer_;
};

// Each of the following calls the member functions above for all observers of the thread.

/// Runs the kernel of a call, with the events of an op.
void observe_kernel(const Call& c, std::span<Tensor> y, void (*kernel)(const Call&, std::span<Tensor>));
/// Reports a call whose outputs exist already.
void observe_computed(std::string_view name, const Call& c, std::span<const Tensor> y);
void observe_read(const detail::VariableCell& cell, const Tensor& value);
/// Runs a rule, which consumes dy and fills dx.
void observe_rule(const Event& e, std::span<const Gradient> dy, std::span<const Gradient> dx,
                  const std::function<void()>& rule);
/// Runs a replay or a step of it, with its events.
void observe_step(const ReplayedStep& step, const std::function<void()>& run);
/// Whether the thread has an observer that must see ops.
bool must_see_ops();
/// The first origin that an observer returns, or null.
std::shared_ptr<const Origin> observe_origin(std::uint64_t id);

}   // namespace tapedeck
