// Communicator: lets several replicas, on threads or machines, take a step together.
#pragma once
#include <atomic>

#include "core/thread_state.h"
#include "tape/imperative_grad.h"
#include "tapedeck/distribute.h"

namespace tapedeck {

/// A replica's part of a step that all of them take. The referred-to objects live until the step is over.
struct StepTogether {
  const void* optimizer;   // the same object in all replicas, or its counterpart on each machine
  std::span<const GradientAndVariable> pairs;
  const std::optional<Variable>& global_step;
  /// Throws if a gradient does not fit its variable. The message begins with `caller`.
  std::function<void(const GradientAndVariable& pair, std::string_view caller)> check;
  /// Applies the sums over all replicas.
  std::function<void(std::span<const GradientAndVariable> sums)> apply;
};

/// The communicator of one replica. While it is set for the thread, apply_gradients calls step().
/// Implementations sum by sum_in_tree, or in the same order, so that the results of all of them have the same
/// bits.
class Communicator {
 public:
  /// Waits for the other replicas; then one step is taken for each copy of the variables: a single one if the
  /// replicas share them.
  virtual void step(const StepTogether& own) = 0;
  /// Called before a backward pass whose gradients of these variables feed the next step. Returns a callback
  /// per gradient, or null. If the pass throws, or the step gets other gradients, only time is lost.
  virtual Arrival begin_pass(std::span<const Variable>) { return {}; }
  /// The sum of the tensors that the replicas pass. `then` is called with it before any replica resumes, once
  /// for each copy of the variables, which it may change. `of` is the object whose values are summed, `kind`
  /// names its kind; replicas that share their variables must pass the same object. Not recorded.
  struct Collective {
    std::string_view name = "sum_over_replicas", kind = {};
    const void* of = nullptr;
    std::function<void(const Tensor& sum)> then = {};
  };
  virtual Tensor sum(const Tensor& own, const Collective& collective) = 0;
  Tensor sum(const Tensor& own) { return sum(own, {}); }
  /// Returns the factor of the replica's loss, 1 if the total loss is the sum over replicas, and stores
  /// whether it differs from 1.
  double scale_loss() { return is_loss_scaled_ = loss_factor_ != 1, loss_factor_; }
  bool is_loss_scaled() const { return is_loss_scaled_; }
  /// The index of this replica, and the number of replicas. `number` identifies a replica that shares its
  /// variables, uniquely within the process; 0: it has variables of its own.
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

/// Sets the thread's communicator, or none; returns the previous one.
inline Communicator* exchange_communicator(Communicator* c) {
  thread_state.replica = c ? c->number() : 0;
  return std::exchange(thread_state.communicator, c);
}

/// Sets the thread's communicator for a scope.
struct CommunicatorScope {
  explicit CommunicatorScope(Communicator* c) : before(exchange_communicator(c)) {}
  ~CommunicatorScope() { exchange_communicator(before); }
  CommunicatorScope(const CommunicatorScope&) = delete;

  Communicator* before;
};

}   // namespace tapedeck
