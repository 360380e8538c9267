// Draws the progress of a training.
#include "nn/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>
#include <cstdio>

#include "core/format.h"

namespace tapedeck::nn {
namespace {

constexpr double kPause = 0.1;   // seconds between two drawings
constexpr std::size_t kBarWidth = 24;

double seconds_since(std::chrono::steady_clock::time_point t) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - t).count();
}

std::size_t terminal_width() {
  winsize size = {};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

void write(const std::string& text) {
  std::fputs(text.c_str(), stderr);
  std::fflush(stderr);
}

std::string text_of(const std::vector<NamedNumber>& numbers) {
  std::string text;
  for (const NamedNumber& n : numbers)
    text += fmt::format("  {} {:.4g}", n.name, n.value);
  return text;
}

/// "3:07" or "1:03:07"
std::string clock_text(double seconds) {
  const auto s = static_cast<std::int64_t>(seconds + 0.5);
  return s < 3600 ? fmt::format("{}:{:02}", s / 60, s % 60)
                  : fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
}

}   // namespace

std::ostream& operator<<(std::ostream& out, const EpochReport& epoch) {
  return out << fmt::format("epoch {}{}", epoch.epoch + 1, text_of(epoch.numbers));
}

std::ostream& operator<<(std::ostream& out, const FitReport& report) {
  for (const EpochReport& epoch : report.history)
    out << epoch << '\n';
  out << fmt::format("{} steps in {:.1f} s", report.steps, report.seconds);
  if (report.resumed_at) out << fmt::format(", resumed after step {}", *report.resumed_at);
  if (report.best_epoch) out << fmt::format(", best epoch {}", *report.best_epoch + 1);
  return out << (report.stopped_early ? ", stopped early" : "");
}

Progress::Progress(FitProgress kind, std::int64_t epochs, std::int64_t batches)
    : lines_(kind != FitProgress::silent),
      bar_(kind == FitProgress::bar || (kind == FitProgress::automatic && ::isatty(STDERR_FILENO))),
      epochs_(epochs),
      batches_(batches) {}

Progress::~Progress() {
  if (has_line_) write("\n");
}

void Progress::resume(std::int64_t steps, bool is_complete) {
  if (lines_)
    write(fmt::format("resumed after step {}{}\n", steps,
                      is_complete ? ", where the training was complete: nothing is trained" : ""));
}

void Progress::begin_epoch(std::int64_t epoch, std::int64_t batch) {
  epoch_ = epoch;
  first_ = batch_ = batch;
  rows_ = 0;
  seconds_ = 0;
  began_ = Clock::now();
}

void Progress::add_batch(std::int64_t rows, const std::function<std::vector<NamedNumber>()>& numbers) {
  ++batch_;
  rows_ += rows;
  seconds_ = seconds_since(began_);
  if (bar_ && (!has_line_ || seconds_since(drawn_) >= kPause)) draw(numbers(), seconds_);
}

void Progress::end_epoch(const EpochReport& report) {
  if (!lines_) return;
  write(fmt::format("{}{}{}  {:.1f} s  {:.0f} rows/s\n", has_line_ ? "\r\x1b[K" : "", counted(),
                    text_of(report.numbers), seconds_since(began_),
                    seconds_ > 0 ? static_cast<double>(rows_) / seconds_ : 0.0));
  has_line_ = false;
}

std::string Progress::counted() const { return fmt::format("epoch {}/{}", epoch_ + 1, epochs_); }

void Progress::draw(const std::vector<NamedNumber>& numbers, double seconds) {
  const std::size_t filled =
      kBarWidth * static_cast<std::size_t>(batch_) / static_cast<std::size_t>(batches_);
  const double done = static_cast<double>(batch_ - first_), left = static_cast<double>(batches_ - batch_);
  std::string line =
      fmt::format("{} [{}{}] {}/{}  {:.0f} rows/s  {} left{}", counted(), std::string(filled, '='),
                  std::string(kBarWidth - filled, '.'), batch_, batches_,
                  static_cast<double>(rows_) / seconds, clock_text(seconds / done * left), text_of(numbers));
  line.resize(std::min(line.size(), terminal_width() - 1));
  write("\r" + line + "\x1b[K");
  has_line_ = true;
  drawn_ = Clock::now();
}

}   // namespace tapedeck::nn
