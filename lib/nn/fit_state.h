// FitState: the position of a training, in the form in which checkpoints save it.
#pragma once
#include "tapedeck/nn/fit.h"

namespace tapedeck::nn {

/// The state that changes from step to step, in addition to variables, optimizer and metrics.
struct FitPosition {
  std::int64_t epoch = 0, batch = 0;   // the next epoch and batch
  std::int64_t steps = 0;
  std::vector<EpochReport> history = {};
  std::optional<std::int64_t> best_epoch = {};
  double best = 0;                 // value of the monitor in the best epoch
  NamedTensors best_values = {};   // of the network's variables, if they are kept
  std::int64_t waited = 0;         // epochs since the best one
  bool stopped = false;            // by early stopping
  std::int64_t log_size = -1;      // -1: there is no log
};

struct FitState {
  std::vector<std::string> names;   // names of the numbers of an epoch
  std::int64_t batches;             // of an epoch
  bool keeps_best;
  FitPosition at = {};

  SavedState state() const;
  /// Throws ArgumentError if the saved training has other numbers, or another number of batches in its
  /// current epoch, and for an impossible state.
  Commit prepare_restore(const SavedState& saved);
  bool may_have(std::string_view tensor) const;
};

}   // namespace tapedeck::nn
