// Shows training progress: a bar on a terminal, a line per epoch elsewhere.
#pragma once
#include <chrono>
#include <cstdint>
#include <string>

class Progress {
 public:
  Progress(std::string name, std::int64_t epochs, std::int64_t rows_per_epoch);

  /// Call after each batch with its size, mean loss, and fraction of correct answers.
  void add(std::int64_t rows, double loss, double accuracy);
  void end_epoch();

 private:
  using Clock = std::chrono::steady_clock;
  void draw() const;

  std::string name_;
  std::int64_t epochs_, rows_per_epoch_;
  bool terminal_;
  Clock::time_point start_ = Clock::now(), drawn_ = {};
  std::int64_t epoch_ = 1, rows_ = 0;
  double loss_ = 0, right_ = 0;   // sums over the rows of this epoch
};
