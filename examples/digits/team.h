// The replicas that share the work of every step: threads of this process, or the ranks of an MPI job.
#pragma once
#include <functional>
#include <optional>

#include "tapedeck/distribute.h"
#include "tapedeck/tapedeck.h"

class Team {
 public:
  /// Number of threads; 0: the ranks of the current MPI job.
  explicit Team(int replicas);

  int count() const { return ranks_ ? ranks_->count() : threads_.count(); }
  /// Only one rank prints and writes files.
  bool speaks() const { return !ranks_ || ranks_->replica().index == 0; }
  /// Calls f for each replica in this process. A single replica runs on the calling thread.
  void run(const std::function<void(tapedeck::Replica)>& f) const {
    if (ranks_)
      ranks_->run(f);
    else if (threads_.count() > 1)
      threads_.run(f);
    else
      f({0, 1});
  }

 private:
  // A replica's loss is its term of the total loss, so it is not scaled.
  static constexpr auto kReduction = tapedeck::LossReduction::sum;

  tapedeck::Replicas threads_;
  std::optional<tapedeck::Ranks> ranks_;
};

/// Call on all replicas: throws if a variable of any replica is not bitwise equal to the first replica's.
void check_same_bits(const tapedeck::Variable& variable, tapedeck::Replica replica);
