// The training log: appends records to a JSON Lines file.
#include "tapedeck/training_log.h"

#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>

#include <nlohmann/json.hpp>

#include "io/file.h"

namespace tapedeck {
namespace {

// The offset behind the last complete line.
std::int64_t end_of_lines(const std::string& path) {
  const InputFile file({"training_log", path});
  char piece[4096];
  for (std::int64_t end = file.size(); end > 0;) {
    const std::int64_t n = std::min<std::int64_t>(end, sizeof piece);
    file.read(end - n, piece, n);
    for (std::int64_t i = n; i-- > 0;)
      if (piece[i] == '\n') return end - n + i + 1;
    end -= n;
  }
  return 0;
}

std::string json_of(const auto& value) {
  return nlohmann::json(value).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}   // namespace

TrainingLog::TrainingLog(std::string path)
    : path_(std::move(path)),
      file_(::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_CLOEXEC, 0666)) {
  const FileName name{"training_log", path_};
  if (file_ < 0) name.fail_with_errno("cannot be opened");
  try {
    if (::ftruncate(file_, end_of_lines(path_)) != 0) name.fail_with_errno("cannot be written");
  } catch (...) {
    ::close(file_);
    throw;
  }
}
TrainingLog::~TrainingLog() { ::close(file_); }

void TrainingLog::write(std::span<const LogField> fields) {
  std::string line;
  for (const LogField& field : fields) {
    line += line.empty() ? '{' : ',';
    line +=
        json_of(field.name) + ":" + std::visit([](const auto& v) { return json_of(v); }, field.value.value());
  }
  line += line.empty() ? "{}\n" : "}\n";
  for (std::string_view rest = line; !rest.empty();) {
    const ssize_t n = ::write(file_, rest.data(), rest.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) FileName{"training_log", path_}.fail_with_errno("cannot be written");
    rest.remove_prefix(static_cast<std::size_t>(n));
  }
}

}   // namespace tapedeck
