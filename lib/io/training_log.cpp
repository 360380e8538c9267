// The training log: appends records to a JSON Lines file.
#include "tapedeck/training_log.h"

#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "core/file.h"
#include "core/format.h"

namespace tapedeck {
namespace {

// The offset after the last complete line of the first `end` bytes.
std::int64_t end_of_lines(const InputFile& file, std::int64_t end) {
  char piece[4096];
  while (end > 0) {
    const std::int64_t n = std::min<std::int64_t>(end, sizeof piece);
    file.read(end - n, piece, n);
    for (std::int64_t i = n; i-- > 0;)
      if (piece[i] == '\n') return end - n + i + 1;
    end -= n;
  }
  return 0;
}
std::int64_t end_of_lines(const InputFile& file) { return end_of_lines(file, file.size()); }

// The end of a log, where it is continued. Throws if the file is not a log, which is left unchanged.
struct Tail {
  std::int64_t begin;
  bool lacks_newline;   // a complete last record has no newline
};
Tail tail_of(const InputFile& file) {
  constexpr std::int64_t most = 1 << 20;
  const FileName& name = file.name();
  const std::int64_t end = end_of_lines(file), n = file.size() - end;
  const auto text = [&](std::int64_t first, std::int64_t count) {
    std::string s(static_cast<std::size_t>(count), '\0');
    file.read(first, s.data(), count);
    return s;
  };
  const bool has_log = end == 0 || text(end_of_lines(file, end - 1), 1) == "{";
  const std::string begin = text(end, std::min<std::int64_t>(n, 2));
  if (!has_log || !(begin.empty() || begin == "{" || begin == "{\"" || begin == "{}"))
    name.fail("is not a training log, and was left unchanged; give the log a different path");
  if (n > most)
    name.fail(fmt::format(
        "ends with {} bytes without a newline, more than a line of a log has, and was left unchanged", n));
  return {end, n > 0 && nlohmann::json::accept(text(end, n))};
}

std::string json_of(const auto& value) {
  return nlohmann::json(value).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// The file, for reading and appending, and the folders it is in. Other programs may rename the file
// meanwhile, so it is never reopened by its path.
int open_log(const FileName& name) {
  name.check();
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::path(name.path).parent_path();
  if (!folder.empty()) std::filesystem::create_directories(folder, error);
  if (error) name.fail(fmt::format("its folder cannot be created: {}", error.message()));
  const int file = open_file(name.path, O_RDWR | O_APPEND | O_CREAT);
  if (file < 0) name.fail_with_errno("cannot be opened");
  return file;
}

}   // namespace

TrainingLog::TrainingLog(std::string path)
    : path_(std::move(path)), file_(open_log({"training_log", path_})) {
  try {
    const FileName name{"training_log", path_};
    const Tail tail = tail_of(InputFile(name, file_));
    if (tail.lacks_newline)
      append("\n");
    else if (::ftruncate(file_, tail.begin) != 0)
      name.fail_with_errno("cannot be written");
  } catch (...) {
    ::close(file_);
    throw;
  }
}
TrainingLog::~TrainingLog() { ::close(file_); }

void TrainingLog::write(std::span<const LogField> fields) {
  std::string line;
  std::vector<std::string> names;
  for (const LogField& field : fields) {
    names.push_back(json_of(field.name));
    if (std::find(names.begin(), names.end() - 1, names.back()) != names.end() - 1)
      throw_error<ArgumentError>("training_log: a line has the field {} twice", names.back());
    line += line.empty() ? '{' : ',';
    line += names.back() + ":" + std::visit([](const auto& v) { return json_of(v); }, field.value.value());
  }
  line += line.empty() ? "{}\n" : "}\n";
  append(line);
}

std::int64_t TrainingLog::size() const { return end_of_lines(InputFile({"training_log", path_}, file_)); }

void TrainingLog::truncate(std::int64_t size) {
  const FileName name{"training_log", path_};
  const InputFile file(name, file_);
  if (size < 0 || size > file.size() || end_of_lines(file, size) != size)
    throw_error<ArgumentError>(
        "training_log: {}: no line ends after {} of {} bytes; use a number that size() returned",
        printable(path_), size, file.size());
  if (::ftruncate(file_, size) != 0) name.fail_with_errno("cannot be shortened");
  broken_ = false;
}

// A partial line, which a full disk may cause, is removed by the next call.
void TrainingLog::append(std::string_view line) {
  const FileName name{"training_log", path_};
  if (broken_ && ::ftruncate(file_, end_of_lines(InputFile(name, file_))) != 0)
    name.fail_with_errno("cannot be written");
  broken_ = false;
  for (std::string_view rest = line; !rest.empty();) {
    const ssize_t n = ::write(file_, rest.data(), rest.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      broken_ = rest.size() < line.size();
      name.fail_with_errno("cannot be written");
    }
    rest.remove_prefix(static_cast<std::size_t>(n));
  }
}

}   // namespace tapedeck
