// Observer: sees every op and every rule of its thread, to debug or to measure. While a thread has none,
// thread_state.observer is null and nothing here is called.
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
struct Origin {
  std::uint64_t id;   // of the op's first tracked output
  std::string scopes;
  std::vector<void*> calls;
};

/// One run of an op or of a rule.
struct Event {
  std::string_view name;   // of the op, for users
  const Call& call;
  bool backward;          // the op's rule runs, not the op
  const Origin* origin;   // of a rule: where its op was recorded, or null
  // Of a rule: the tape whose pass runs it, and the id of its op's first tracked output.
  const Recorder* tape = nullptr;
  std::uint64_t id = 0;
};

/// What a replay of a compiled function runs at once, such as a group of ops, or all of the replay, in which
/// these are.
struct ReplayedStep {
  std::string name;
  bool whole = false;                   // the replay
  std::int64_t read = 0, written = 0;   // bytes that it is known to read from memory, and to write there
  Spec first = {};                      // of what it writes
  const void* program = nullptr;        // of a replay: tells those of one name apart
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
  /// An op has its outputs, and is not recorded yet. May throw.
  virtual void computed(const Event&, std::span<const Tensor>) {}
  /// A rule has its cotangents, and then its gradients. May throw.
  virtual void before_rule(const Event&, std::span<const Gradient>) {}
  virtual void after_rule(const Event&, std::span<const Gradient>) {}
  /// A variable is read; value is the tensor that this read returns.
  virtual void read(const detail::VariableCell&, const Tensor& /*value*/) {}
  /// Whether compiled functions may be replayed under it. It sees their steps, and not the ops.
  virtual bool sees_replays() const { return false; }
  /// A replay, or a step of it, begins and ends, also by an exception.
  virtual void step_begins(const ReplayedStep&) {}
  virtual void step_ends() noexcept {}
  /// Where the thread is, for a tape to store with the op whose first output has this id. Null: not wanted.
  virtual std::shared_ptr<const Origin> origin(std::uint64_t) const { return nullptr; }

 private:
  Observer* outer_;
};

// Each calls the functions above for all observers of the thread.

/// Runs the kernel of a call.
void observe_kernel(const Call& c, std::span<Tensor> y, void (*kernel)(const Call&, std::span<Tensor>));
/// For a call whose outputs exist already.
void observe_computed(std::string_view name, const Call& c, std::span<const Tensor> y);
void observe_read(const detail::VariableCell& cell, const Tensor& value);
/// Runs a rule, which uses up dy and fills dx.
void observe_rule(const Event& e, std::span<const Gradient> dy, std::span<const Gradient> dx,
                  const std::function<void()>& rule);
/// Runs a replay or a step of it.
void observe_step(const ReplayedStep& step, const std::function<void()>& run);
/// Whether the thread has an observer that must see ops.
bool must_see_ops();
/// The first origin that an observer gives, or null.
std::shared_ptr<const Origin> observe_origin(std::uint64_t id);

}   // namespace tapedeck
