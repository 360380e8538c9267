// A log of training that other programs read: one JSON object a line.
#pragma once
#include <concepts>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "tapedeck/error.h"

namespace tapedeck {

/// A number, a text or a truth.
class LogValue {
 public:
  LogValue(bool v) : value_(v) {}
  template <std::integral T> LogValue(T v) : value_(static_cast<std::int64_t>(v)) {}
  template <std::floating_point T> LogValue(T v) : value_(static_cast<double>(v)) {}
  LogValue(std::string_view v) : value_(v) {}
  LogValue(const std::string& v) : value_(std::string_view(v)) {}
  LogValue(const char* v) : value_(std::string_view(v)) {}

  const std::variant<bool, std::int64_t, double, std::string_view>& value() const { return value_; }

 private:
  std::variant<bool, std::int64_t, double, std::string_view> value_;
};
struct LogField {
  std::string_view name;
  LogValue value;
};

/// Appends to a file. Each line goes to the system at once and in one piece, so programs may read while it
/// grows. Not to be used from several threads at once.
class TAPEDECK_EXPORT TrainingLog {
 public:
  /// A last line that a killed process has left half written is removed. Throws FileError where the file
  /// cannot be opened.
  explicit TrainingLog(std::string path);
  ~TrainingLog();
  TrainingLog(const TrainingLog&) = delete;
  TrainingLog& operator=(const TrainingLog&) = delete;

  /// log.write({{"step", 3}, {"loss", 0.5}}). Numbers that are not finite become null, which JSON has for
  /// them, and bytes that are no UTF-8 become U+FFFD. Throws FileError where the line cannot be written.
  void write(std::span<const LogField> fields);
  void write(std::initializer_list<LogField> fields) { write(std::span(fields.begin(), fields.size())); }

 private:
  std::string path_;
  int file_;
};

}   // namespace tapedeck
