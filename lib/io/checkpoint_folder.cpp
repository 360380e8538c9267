// Folders of checkpoints: one file per step, of which the last few are kept.
#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <memory>

#include "core/file.h"
#include "core/format.h"
#include "tapedeck/checkpoint.h"

namespace tapedeck {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kExtension = ".safetensors";

// The step in a checkpoint's file name; none for other files.
std::optional<std::int64_t> step_of(std::string_view name, std::string_view prefix,
                                    std::string_view extension) {
  if (!name.starts_with(prefix) || !name.ends_with(extension) ||
      name.size() <= prefix.size() + extension.size())
    return {};
  const std::string_view digits = name.substr(prefix.size(), name.size() - prefix.size() - extension.size());
  std::int64_t step = -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), step);
  if (error != std::errc() || end != digits.data() + digits.size() || std::to_string(step) != digits)
    return {};
  return step;
}

bool is_file(const std::string& path) {
  struct stat s;
  return ::stat(path.c_str(), &s) == 0 && S_ISREG(s.st_mode);
}

// The steps in a folder, ascending; none if the folder does not exist. Iterators of std::filesystem terminate
// the process if memory runs out.
std::vector<std::int64_t> steps_in(const std::string& folder, std::string_view prefix,
                                   const std::string& extension) {
  std::vector<std::int64_t> steps;
  const FileName name{"checkpoint_folder", folder};
  const std::unique_ptr<DIR, int (*)(DIR*)> files(::opendir(folder.c_str()), ::closedir);
  if (!files && errno == ENOENT) return steps;
  if (!files) name.fail_with_errno("cannot be read");
  for (errno = 0; const dirent* file = ::readdir(files.get()); errno = 0)
    if (const auto step = step_of(file->d_name, prefix, extension);
        step && *step >= 0 && is_file(folder + "/" + file->d_name))
      steps.push_back(*step);
  if (errno != 0) name.fail_with_errno("cannot be read");
  std::sort(steps.begin(), steps.end());
  return steps;
}

}   // namespace

CheckpointFolder::CheckpointFolder(std::string folder, CheckpointFolderOptions options)
    : folder_(std::move(folder)), options_(std::move(options)) {
  if (folder_.empty())
    throw ArgumentError("checkpoint_folder: the folder has no name; use \".\" for this one");
  if ((folder_ + options_.prefix).find('\0') != std::string::npos)
    throw ArgumentError("checkpoint_folder: the folder or the prefix has a NUL byte");
  if (options_.keep_last < 0)
    throw_error<ArgumentError>("checkpoint_folder: keep_last is {}; use 0, for all, or more",
                               options_.keep_last);
  if (options_.prefix.find('/') != std::string::npos)
    throw_error<ArgumentError>("checkpoint_folder: the prefix has a slash: \"{}\"", options_.prefix);
  // Else run15 would be step 15 of "run" and step 5 of "run1", and one folder would remove the other's files.
  if (const std::size_t end = options_.prefix.find_last_not_of("0123456789");
      end + 1 != options_.prefix.size())
    throw_error<ArgumentError>(
        "checkpoint_folder: the prefix ends with a digit, and step numbers follow it: \"{0}\"; use one such "
        "as \"{0}-\"",
        options_.prefix);
}

std::string CheckpointFolder::save(const Checkpoint& checkpoint, std::int64_t step,
                                   const Metadata& metadata) const {
  if (step < 0) throw_error<ArgumentError>("checkpoint_folder: step is {}; use 0 or more", step);
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) throw_error<FileError>("save: {}: cannot be made: {}", folder_, error.message());
  std::string path = path_of(step);
  checkpoint.save(path, metadata);

  for (const std::int64_t s : steps_in(folder_, options_.prefix, std::string(kExtension) + ".partial"))
    remove_partial(path_of(s));
  const std::vector<std::int64_t> present = steps();
  const auto last = static_cast<std::size_t>(options_.keep_last);
  for (std::size_t i = 0; last && i + last < present.size(); ++i)
    if (present[i] != step)
      fs::remove(path_of(present[i]), error);   // the file just written is kept, whatever its step
  return path;
}

std::optional<std::string> CheckpointFolder::latest() const {
  const std::vector<std::int64_t> present = steps();
  return present.empty() ? std::nullopt : std::optional(path_of(present.back()));
}

std::vector<std::int64_t> CheckpointFolder::steps() const {
  return steps_in(folder_, options_.prefix, std::string(kExtension));
}
std::string CheckpointFolder::path_of(std::int64_t step) const {
  return fmt::format("{}/{}{}{}", folder_, options_.prefix, step, kExtension);
}

}   // namespace tapedeck
