// Training logs in JSON Lines format: one JSON object per line.
#pragma once
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "tapedeck/error.h"

namespace tapedeck {

/// A number, a string or a bool.
class LogValue {
 public:
  LogValue(bool v) : value_(v) {}
  template <std::signed_integral T> LogValue(T v) : value_(static_cast<std::int64_t>(v)) {}
  template <std::unsigned_integral T> LogValue(T v) : value_(static_cast<std::uint64_t>(v)) {}
  template <std::floating_point T> LogValue(T v) : value_(static_cast<double>(v)) {}
  LogValue(std::string_view v) : value_(v) {}
  LogValue(const std::string& v) : value_(std::string_view(v)) {}
  LogValue(const char* v) : value_(std::string_view(v)) {}

  /// The stored value; a string is not copied.
  const std::variant<bool, std::int64_t, std::uint64_t, double, std::string_view>& value() const {
    return value_;
  }

 private:
  std::variant<bool, std::int64_t, std::uint64_t, double, std::string_view> value_;
};
/// One name and its value in a line.
struct LogField {
  std::string_view name;
  LogValue value;
};

/// Appends to a file. Each line is written immediately and in one piece, so other programs may read the file
/// while it grows. Not thread-safe.
class TAPEDECK_EXPORT TrainingLog {
 public:
  /// Creates the folder when needed, and removes an incomplete last line left by a killed process. Throws
  /// FileError if the file cannot be opened, and, before anything is changed, if its last line does not begin
  /// like a line of a log.
  explicit TrainingLog(std::string path);
  ~TrainingLog();
  TrainingLog(const TrainingLog&) = delete;
  TrainingLog& operator=(const TrainingLog&) = delete;

  /// log.write({{"step", 3}, {"loss", 0.5}}). Numbers that are not finite become null, since JSON cannot
  /// represent them; invalid UTF-8 bytes become U+FFFD. Throws ArgumentError, and writes nothing, for two
  /// fields of one name, and FileError if the line cannot be written; the next write removes an incomplete
  /// line from the file.
  void write(std::span<const LogField> fields);
  void write(std::initializer_list<LogField> fields) { write(std::span(fields.begin(), fields.size())); }

  /// Bytes in the file, in complete lines. Throws FileError if the file cannot be read.
  std::int64_t size() const;
  /// Keeps the first `size` bytes and removes the lines after them, which a run that resumes from a
  /// checkpoint writes again. Throws ArgumentError unless the file has that many bytes and they end with a
  /// complete line, and FileError if the file cannot be read or shortened.
  void truncate(std::int64_t size);

 private:
  void append(std::string_view line);

  std::string path_;
  int file_;
  bool broken_ = false;   // the file ends with an incomplete line
};

}   // namespace tapedeck
