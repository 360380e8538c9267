// Prints the progress of training.
#include "progress.h"

#include <cstdio>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

namespace {

constexpr int kWidth = 24;   // width of the bar in characters

std::string bar(double done) {
  const int full = static_cast<int>(done * kWidth);
  std::string text;
  for (int i = 0; i < kWidth; ++i)
    text += i < full ? "█" : "░";
  return text;
}

}   // namespace

Progress::Progress(std::string name, std::int64_t epochs, std::int64_t rows_per_epoch)
    : name_(std::move(name)),
      epochs_(epochs),
      rows_per_epoch_(rows_per_epoch),
      terminal_(isatty(STDOUT_FILENO)) {}

void Progress::add(std::int64_t rows, double loss, double accuracy) {
  rows_ += rows;
  loss_ += loss * static_cast<double>(rows);
  right_ += accuracy * static_cast<double>(rows);
  if (!terminal_ || Clock::now() - drawn_ < std::chrono::milliseconds(50)) return;
  drawn_ = Clock::now();
  draw();
}

void Progress::end_epoch() {
  if (!terminal_) {
    const double n = static_cast<double>(rows_);
    fmt::print("{} epoch {:>2}/{}  loss {:.4f}  accuracy {:.4f}\n", name_, epoch_, epochs_, loss_ / n,
               right_ / n);
  } else if (epoch_ == epochs_) {
    draw();
    fmt::print("\n");
  }
  ++epoch_;
  rows_ = 0;
  loss_ = right_ = 0;
}

void Progress::draw() const {
  const double n = static_cast<double>(rows_), all = static_cast<double>(epochs_ * rows_per_epoch_);
  const double done = static_cast<double>((epoch_ - 1) * rows_per_epoch_) + n;
  const double seconds = std::chrono::duration<double>(Clock::now() - start_).count(), rate = done / seconds;
  const int left = static_cast<int>((all - done) / rate + 0.5);
  // \r and \x1b[K overwrite the last line.
  fmt::print("\r{} epoch {:>2}/{} {} {:>7.0f} digits/s  {}:{:02} left  loss {:.4f}  accuracy {:.4f}\x1b[K",
             name_, epoch_, epochs_, bar(done / all), rate, left / 60, left % 60, loss_ / n, right_ / n);
  std::fflush(stdout);
}
