// Data-parallel training: one model is trained by several replicas, each of which processes a part of the
// batch on a tape of its own.
#pragma once
#include <functional>
#include <memory>

#include "tapedeck/optimizer.h"

namespace tapedeck {

class Communicator;

/// How the losses of the replicas combine to the total loss.
enum class LossReduction { sum, mean };

/// Options of Replicas.
struct ReplicasOptions {
  LossReduction reduction = LossReduction::mean;
  int threads = 0;   // maximum number of replicas that run concurrently; 0: all. Results do not depend on it
};

/// Identifies the replica that a function runs as.
struct Replica {
  int index, count;   // index is 0 to count - 1
};

/// Runs a function as several replicas that share their variables. On a replica's thread:
/// - Optimizer::apply_gradients, and so minimize, waits for all replicas and takes one step with the sum
///   of their gradients, added in a fixed tree order: results are bitwise equal for any number of
///   threads. A gradient that is none or missing from a replica's list counts as zero. global_step is
///   incremented once. Constraints, schedules and transformations run once, on the thread that called
///   run.
/// - compute_gradients and minimize multiply gradients by 1 / count if the reduction is mean. If you use
///   a tape directly, call scale_loss.
/// All replicas must take the same steps in the same order with the same optimizers. All may read variables;
/// variables change only in steps, and in nn::BatchNorm in training, which waits for all replicas. An
/// assignment to a variable that the replica has not created itself throws GradientError, except under
/// SkipAggregation.
class TAPEDECK_EXPORT Replicas {
 public:
  /// Throws ArgumentError if count is below 1, the number of threads is below 0, or the reduction is not a
  /// value of its enum.
  explicit Replicas(int count, ReplicasOptions options = {});

  /// The arguments of the constructor.
  int count() const { return count_; }
  const ReplicasOptions& options() const { return options_; }

  /// Calls f once for each replica, on separate threads, and returns when all have finished. Tapes of the
  /// calling thread do not record the replicas. If a replica throws, the others end at their next step at the
  /// latest, and the exception is rethrown here; if several throw, the exception of the replica with the
  /// lowest index. An exception of a step is thrown on every replica, and nothing is changed; ShapeError and
  /// DTypeError name the replica and the variable. Throws GradientError if called on a replica's thread or
  /// within a step (replicas do not nest), if replicas take different steps, or if one ends while others wait
  /// for its step. Meanwhile, apply_gradients on the calling thread, as in a transformation, throws
  /// GradientError.
  void run(const std::function<void(Replica)>& f) const;

 private:
  int count_;
  ReplicasOptions options_;
};

/// Options of Ranks.
struct RanksOptions {
  LossReduction reduction = LossReduction::mean;
  double timeout_seconds = 60;                         // time that a rank waits for another one
  std::int64_t bucket_bytes = std::int64_t{1} << 22;   // target size of a message of dense gradients
};

/// Runs the processes started by mpirun as replicas, one each. Every rank has its own variables and
/// optimizers. Their initial values must be equal, which the first step of a run checks; they stay equal
/// because apply_gradients sums over all ranks in the same tree order as Replicas, and every rank takes the
/// same step. From its second step with the same variables on, minimize sends gradients while the backward
/// pass computes others. MPI is called only on the thread that called run.
class TAPEDECK_EXPORT Ranks {
 public:
  /// Initializes MPI unless it is already initialized, in which case it is not finalized either. Throws
  /// ArgumentError if a time or size is not positive, and if the library was built without MPI.
  explicit Ranks(RanksOptions options = {});
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  /// The replica that this process is, and the number of processes.
  const Replica& replica() const { return replica_; }
  int count() const { return replica_.count; }

  /// Calls f on this thread as this rank's replica; all ranks must call it. An exception is thrown on the
  /// rank where it occurs, and as a GradientError with its text on the others at their next step. If ranks
  /// take different steps or have different variables, the GradientError names both ranks and the variable.
  /// Throws GradientError if a rank does not respond within timeout_seconds. After any of these errors the
  /// ranks cannot be used again, and the programs end with a nonzero status.
  void run(const std::function<void(Replica)>& f) const;

 private:
  struct Job;
  Replica replica_ = {0, 1};
  RanksOptions options_;
  std::unique_ptr<Job> job_;
};

/// Returns loss / count if the reduction is mean; otherwise, and outside replicas, returns loss unchanged.
/// Recorded on tapes.
TAPEDECK_EXPORT Tensor scale_loss(const Tensor& loss);
/// Whether the last compute_gradients, minimize or scale_loss of this replica scaled its loss.
TAPEDECK_EXPORT bool is_loss_scaled();
/// The sum of x over all replicas, for example of losses or counts; all replicas must call it. Outside
/// replicas, returns x. The terms are added in the same tree order as gradients; f16 and bf16 are added in
/// f32. Not differentiated. Throws ShapeError or DTypeError on every replica if their x differ in shape or
/// dtype, and DTypeError for bool.
TAPEDECK_EXPORT Tensor sum_over_replicas(const Tensor& x);

/// While it exists, the thread does not act as a replica: apply_gradients takes a local step with the given
/// gradients. For variables owned by one replica, or for gradients that are already summed in a
/// transformation.
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
