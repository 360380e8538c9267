// Progress: shows a training on standard error.
#pragma once
#include <chrono>

#include "tapedeck/nn/fit.h"

namespace tapedeck::nn {

/// A bar that is redrawn repeatedly, and a line for each epoch.
class Progress {
 public:
  Progress(FitProgress kind, std::int64_t epochs, std::int64_t batches);
  /// Ends the line of a bar.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void resume(std::int64_t steps, bool is_complete);
  /// Begins an epoch at this batch.
  void begin_epoch(std::int64_t epoch, std::int64_t batch);
  /// Counts one more batch; `numbers` is called if the bar is drawn.
  void add_batch(std::int64_t rows, const std::function<std::vector<NamedNumber>()>& numbers);
  void end_epoch(const EpochReport& report);

 private:
  using Clock = std::chrono::steady_clock;

  std::string counted() const;
  void draw(const std::vector<NamedNumber>& numbers, double seconds);

  bool lines_ = true, bar_;
  std::int64_t epochs_, batches_;
  std::int64_t epoch_ = 0, first_ = 0, batch_ = 0, rows_ = 0;
  Clock::time_point began_ = {}, drawn_ = {};
  double seconds_ = 0;      // from the beginning to the last batch
  bool has_line_ = false;   // an unfinished line
};

}   // namespace tapedeck::nn
