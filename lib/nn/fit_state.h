// FitState: where a training stands, in the form in which checkpoints save it.
#pragma once
#include "tapedeck/nn/fit.h"

namespace tapedeck::nn {

/// What changes from step to step, beside variables, optimizer and metrics.
struct FitPosition {
  std::int64_t epoch = 0, batch = 0;   // the next ones
  std::int64_t steps = 0;
  std::vector<EpochReport> history = {};
  std::optional<std::int64_t> best_epoch = {};
  double best = 0;                 // the monitor in that epoch
  NamedTensors best_values = {};   // of the network's variables, if they are kept
  std::int64_t waited = 0;         // epochs since then
  bool stopped = false;            // by early stopping
  std::int64_t log_size = -1;      // -1: there is no log
};

struct FitState {
  std::vector<std::string> names;   // of the numbers of an epoch
  std::int64_t batches;             // of an epoch
  bool keeps_best;
  FitPosition at = {};

  SavedState state() const;
  /// Throws ArgumentError where the saved training had other numbers, or another number of batches in the
  /// epoch that it is in, and for a state that no training can have.
  Commit prepare_restore(const SavedState& saved);
  bool may_have(std::string_view tensor) const;
};

}   // namespace tapedeck::nn
