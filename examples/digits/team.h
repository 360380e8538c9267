// The replicas that share the work of every step: threads of this process, or the ranks of an MPI job.
#pragma once
#include <functional>
#include <optional>

#include "tapedeck/distribute.h"
#include "tapedeck/tapedeck.h"

class Team {
 public:
  /// So many threads; 0: the ranks of the job that this process is in.
  explicit Team(int replicas);

  int count() const { return ranks_ ? ranks_->count() : threads_.count(); }
  /// Of ranks, one prints and writes.
  bool speaks() const { return !ranks_ || ranks_->replica().index == 0; }
  /// Calls f as each of the replicas that this process has. A single one needs no thread of its own.
  void run(const std::function<void(tapedeck::Replica)>& f) const {
    if (ranks_)
      ranks_->run(f);
    else if (threads_.count() > 1)
      threads_.run(f);
    else
      f({0, 1});
  }

 private:
  // A replica's loss is its share of the whole one, so that nothing is left to be scaled.
  static constexpr auto kReduction = tapedeck::LossReduction::sum;

  tapedeck::Replicas threads_;
  std::optional<tapedeck::Ranks> ranks_;
};

/// In a replica: throws where a variable of any replica has other bits than that of the first one. All
/// replicas call this.
void check_same_bits(const tapedeck::Variable& variable, tapedeck::Replica replica);
