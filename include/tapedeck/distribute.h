// Replicas: one model trained by many threads, each of which has a part of the batch and a tape of its own.
#pragma once
#include <functional>

#include "tapedeck/optimizer.h"

namespace tapedeck {

class Communicator;

/// What the loss of all replicas is, of those that they compute.
enum class LossReduction { sum, mean };

struct ReplicasOptions {
  LossReduction reduction = LossReduction::mean;
  int threads = 0;   // how many replicas run at the same time; 0: all. Results do not depend on it
};

/// Which replica a function runs as.
struct Replica {
  int index, count;   // 0 … count - 1
};

/// Runs a function as many replicas that share their variables. On a replica's thread
/// - Optimizer::apply_gradients, and so minimize, waits for all replicas and takes one step with the sum of their gradients, added up
///   in a fixed tree: the results have the same bits for any number of threads. A gradient that is none, or is not in a replica's list,
///   counts as zero; global_step counts one. Constraints, schedules and transformations run once, on the thread that called run.
/// - compute_gradients and minimize multiply gradients by 1 / count where the reduction is mean; who calls a tape by hand does so with
///   scale_loss.
/// All replicas take the same steps in the same order, by the same optimizers. Variables are read by all, and change in steps alone.
class TAPEDECK_EXPORT Replicas {
 public:
  /// Throws ArgumentError for a count below 1, a number of threads below 0, and a reduction that is none of two.
  explicit Replicas(int count, ReplicasOptions options = {});

  int count() const { return count_; }
  const ReplicasOptions& options() const { return options_; }

  /// Calls f once for each replica, on threads of their own, and returns when all have ended. Tapes of the calling thread do not see
  /// what they do. What a replica throws ends the others, at their next step at the latest, and is thrown here, that of the lowest index
  /// where there are several. What a step throws is thrown on every replica, with nothing changed: ShapeError and DTypeError name the
  /// replica and the variable. Throws GradientError on a replica's thread and within a step, since replicas do not nest; where replicas
  /// take different steps, and where one ends while others wait for its step.
  /// While it runs, apply_gradients on the calling thread, as in a transformation, throws GradientError.
  void run(const std::function<void(Replica)>& f) const;

 private:
  int count_;
  ReplicasOptions options_;
};

/// loss / count where the reduction is mean; elsewhere, and outside of replicas, the loss. Recorded on tapes.
TAPEDECK_EXPORT Tensor scale_loss(const Tensor& loss);
/// Whether the loss that this replica's last compute_gradients, minimize or scale_loss had was scaled.
TAPEDECK_EXPORT bool is_loss_scaled();
/// The sum of x over all replicas, which all call this, such as losses and counts; outside of replicas x. Added up in the same tree as
/// gradients are. Not differentiated. Throws ShapeError or DTypeError on every replica where they differ.
TAPEDECK_EXPORT Tensor sum_over_replicas(const Tensor& x);

/// While it lives, the thread is no replica: apply_gradients takes a step by itself, with the gradients that it is given, as for
/// variables of a replica's own, or in a transformation with sums that are there already.
class TAPEDECK_EXPORT SkipAggregation {
 public:
  [[nodiscard]] SkipAggregation();
  ~SkipAggregation();
  SkipAggregation(const SkipAggregation&) = delete;
  SkipAggregation& operator=(const SkipAggregation&) = delete;

 private:
  Communicator* communicator_;
};

}  // namespace tapedeck
