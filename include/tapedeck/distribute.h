// Replicas: one model trained by many threads, each of which has a part of the batch and a tape of its own.
#pragma once
#include <functional>
#include <memory>

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
/// - Optimizer::apply_gradients, and so minimize, waits for all replicas and takes one step with the sum of
/// their gradients, added up
///   in a fixed tree: the results have the same bits for any number of threads. A gradient that is none, or
///   is not in a replica's list, counts as zero; global_step counts one. Constraints, schedules and
///   transformations run once, on the thread that called run.
/// - compute_gradients and minimize multiply gradients by 1 / count where the reduction is mean; who calls a
/// tape by hand does so with
///   scale_loss.
/// All replicas take the same steps in the same order, by the same optimizers. Variables are read by all, and
/// change in steps alone.
class TAPEDECK_EXPORT Replicas {
 public:
  /// Throws ArgumentError for a count below 1, a number of threads below 0, and a reduction that is none of
  /// two.
  explicit Replicas(int count, ReplicasOptions options = {});

  int count() const { return count_; }
  const ReplicasOptions& options() const { return options_; }

  /// Calls f once for each replica, on threads of their own, and returns when all have ended. Tapes of the
  /// calling thread do not see what they do. What a replica throws ends the others, at their next step at the
  /// latest, and is thrown here, that of the lowest index where there are several. What a step throws is
  /// thrown on every replica, with nothing changed: ShapeError and DTypeError name the replica and the
  /// variable. Throws GradientError on a replica's thread and within a step, since replicas do not nest;
  /// where replicas take different steps, and where one ends while others wait for its step. While it runs,
  /// apply_gradients on the calling thread, as in a transformation, throws GradientError.
  void run(const std::function<void(Replica)>& f) const;

 private:
  int count_;
  ReplicasOptions options_;
};

struct RanksOptions {
  LossReduction reduction = LossReduction::mean;
  double timeout_seconds = 60;   // that a rank waits for another one
  std::int64_t bucket_bytes = std::int64_t{1}
                              << 22;   // dense gradients are sent in buckets of about this size
};

/// The processes that mpirun has started, as replicas, one each. Every rank has variables and optimizers of
/// its own, which begin alike, of which the first step of a run makes sure, and stay alike: apply_gradients
/// sums over all ranks in the tree that Replicas have, gives the sums to all, and each takes the same step.
/// minimize sends gradients while the backward pass computes others, from its second step with the same
/// variables on; MPI is called by the thread that called run alone.
class TAPEDECK_EXPORT Ranks {
 public:
  /// Starts MPI unless it runs, in which case it is not ended either. Throws ArgumentError for a time or size
  /// that is not above 0, and where the library is built without MPI.
  explicit Ranks(RanksOptions options = {});
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  const Replica& replica() const { return replica_; }
  int count() const { return replica_.count; }

  /// Calls f on this thread, as this rank's replica; all ranks call it. What one rank throws is thrown there,
  /// and a GradientError with its text on the others at their next step. The same where ranks take different
  /// steps, or have other variables: it names both ranks and the variable. Throws GradientError after
  /// timeout_seconds for a rank that does not answer. After any of these the ranks are of no use, and
  /// programs end with a status that is not 0.
  void run(const std::function<void(Replica)>& f) const;

 private:
  struct Job;
  Replica replica_ = {0, 1};
  RanksOptions options_;
  std::unique_ptr<Job> job_;
};

/// loss / count where the reduction is mean; elsewhere, and outside of replicas, the loss. Recorded on tapes.
TAPEDECK_EXPORT Tensor scale_loss(const Tensor& loss);
/// Whether the loss that this replica's last compute_gradients, minimize or scale_loss had was scaled.
TAPEDECK_EXPORT bool is_loss_scaled();
/// The sum of x over all replicas, which all call this, such as losses and counts; outside of replicas x.
/// Added up in the same tree as gradients are. Not differentiated. Throws ShapeError or DTypeError on every
/// replica where they differ.
TAPEDECK_EXPORT Tensor sum_over_replicas(const Tensor& x);

/// While it lives, the thread is no replica: apply_gradients takes a step by itself, with the gradients that
/// it is given, as for variables of a replica's own, or in a transformation with sums that are there already.
class TAPEDECK_EXPORT SkipAggregation {
 public:
  [[nodiscard]] SkipAggregation();
  ~SkipAggregation();
  SkipAggregation(const SkipAggregation&) = delete;
  SkipAggregation& operator=(const SkipAggregation&) = delete;

 private:
  Communicator* communicator_;
};

}   // namespace tapedeck
