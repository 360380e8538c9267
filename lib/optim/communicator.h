// Communicator: how a step is taken by many replicas together. What joins them, threads or machines, is behind this interface.
#pragma once
#include "tapedeck/optimizer.h"

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

/// Of one replica. While it is the thread's, apply_gradients comes here. Implementations sum by sum_in_tree, or in the same order, so that
/// all of them give the same bits.
class Communicator {
 public:
  /// Waits for the other replicas, and has one step taken for each copy of the variables: one where replicas share them.
  virtual void step(const StepTogether& own) = 0;
  /// The sum of what all replicas give.
  virtual Tensor sum(const Tensor& own) = 0;
  /// What the replica's loss is multiplied by, 1 where the loss of all is the sum; notes that this is done.
  virtual double scale_loss() = 0;
  virtual bool is_loss_scaled() const = 0;

  Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

 protected:
  ~Communicator() = default;
};

}  // namespace tapedeck
