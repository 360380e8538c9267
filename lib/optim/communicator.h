// Communicator: how many replicas, on threads or machines, take a step together.
#pragma once
#include <atomic>

#include "core/thread_state.h"
#include "tape/imperative_grad.h"
#include "tapedeck/distribute.h"

namespace tapedeck {

/// A replica's part of a step that all of them take. The referred-to objects live until the step is over.
struct StepTogether {
  const void* optimizer;   // the same one, or the same on each machine
  std::span<const GradientAndVariable> pairs;
  const std::optional<Variable>& global_step;
  /// Throws where a gradient cannot be one of its variable. The message begins with `caller`.
  std::function<void(const GradientAndVariable& pair, std::string_view caller)> check;
  /// Applies the sums over all replicas.
  std::function<void(std::span<const GradientAndVariable> sums)> apply;
};

/// Of one replica. While it is the thread's, apply_gradients comes here. Implementations sum by sum_in_tree,
/// or in the same order, so that all of them give the same bits.
class Communicator {
 public:
  /// Waits for the other replicas, and has one step taken for each copy of the variables: one where replicas
  /// share them.
  virtual void step(const StepTogether& own) = 0;
  /// Called before a backward pass whose gradients of these variables feed the next step. Returns a callback
  /// per gradient, or null. Only time is lost where the pass throws or the step gets other gradients.
  virtual Arrival begin_pass(std::span<const Variable>) { return {}; }
  /// The sum of what all replicas give. `then` is called with it before any of them goes on, once for each
  /// copy of the variables, and may change these. `of`: what is summed, an object of this kind, which is the
  /// same for replicas that share their variables. Not recorded.
  struct Collective {
    std::string_view name = "sum_over_replicas", kind = {};
    const void* of = nullptr;
    std::function<void(const Tensor& sum)> then = {};
  };
  virtual Tensor sum(const Tensor& own, const Collective& collective) = 0;
  Tensor sum(const Tensor& own) { return sum(own, {}); }
  /// What the replica's loss is multiplied by, 1 where the loss of all is the sum; notes whether it is
  /// scaled.
  double scale_loss() { return is_loss_scaled_ = loss_factor_ != 1, loss_factor_; }
  bool is_loss_scaled() const { return is_loss_scaled_; }
  /// This one among them. `number`: among all that ever share variables with others; 0: it has its own.
  Replica replica() const { return replica_; }
  std::uint64_t number() const { return number_; }

  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

 protected:
  enum class Variables { own, shared };
  Communicator(LossReduction reduction, Replica replica, Variables variables)
      : loss_factor_(reduction == LossReduction::mean ? 1.0 / replica.count : 1),
        replica_(replica),
        number_(variables == Variables::shared ? next_number() : 0) {}
  ~Communicator() = default;

 private:
  static std::uint64_t next_number() {
    static std::atomic<std::uint64_t> last{0};
    return last.fetch_add(1, std::memory_order_relaxed) + 1;
  }

  const double loss_factor_;
  const Replica replica_;
  const std::uint64_t number_;
  bool is_loss_scaled_ = false;
};

/// Makes the thread the communicator's replica, or none; returns the communicator that it had.
inline Communicator* exchange_communicator(Communicator* c) {
  thread_state.replica = c ? c->number() : 0;
  return std::exchange(thread_state.communicator, c);
}

/// For a scope, the thread is the communicator's replica.
struct CommunicatorScope {
  explicit CommunicatorScope(Communicator* c) : before(exchange_communicator(c)) {}
  ~CommunicatorScope() { exchange_communicator(before); }
  CommunicatorScope(const CommunicatorScope&) = delete;

  Communicator* before;
};

}   // namespace tapedeck
