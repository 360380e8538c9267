// Files as bytes: input with every read checked, and output that replaces a file atomically.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace tapedeck {

/// A path, and the name of the operation, with which error messages begin.
struct FileName {
  std::string_view op;
  std::string path;

  /// Throws FileError "op: path: what", printable and not longer than some thousand bytes.
  [[noreturn]] void fail(std::string_view what) const;
  /// Throws the same error, followed by the text of errno.
  [[noreturn]] void fail_with_errno(std::string_view what) const;
  /// Throws for a path that the system would truncate.
  void check() const;
};

/// open(2) with O_CLOEXEC, without blocking. Never returns the descriptor of a standard stream that is
/// closed: text printed there would be written into the file.
int open_file(const std::string& path, int flags, unsigned mode = 0666);

/// The text as UTF-8 without control characters: these, and invalid bytes, are written as \xNN.
std::string printable(std::string_view text);

class InputFile {
 public:
  explicit InputFile(FileName name);
  /// A file that is open for reading, even if its path now names another file. The caller still closes `fd`.
  InputFile(FileName name, int fd);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const FileName& name() const { return name_; }
  std::int64_t size() const { return size_; }
  /// Reads n bytes at offset; fails if the file is shorter.
  void read(std::int64_t offset, void* to, std::int64_t n) const;

 private:
  void measure();

  FileName name_;
  int fd_ = -1;
  std::int64_t size_ = 0;
};

/// Writes to a locked temporary file, the path plus ".partial"; the one of a killed process is removed first.
/// commit() syncs it to disk and renames it to the path; without commit() the previous file stays. The new
/// file has the mode of the file that it replaces, and its owner and group if the system allows it. A
/// symbolic link is followed, and kept. Throws if the path names a device, a pipe or a folder.
class OutputFile {
 public:
  explicit OutputFile(FileName name);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  /// Appends.
  void write(const void* from, std::int64_t n);
  /// Overwrites earlier bytes.
  void overwrite(std::int64_t offset, const void* from, std::int64_t n);
  void commit();
  /// Bytes written so far.
  std::int64_t size() const { return size_; }

 private:
  FileName name_;
  std::string target_, partial_;
  int fd_ = -1;
  std::int64_t size_ = 0, started_ = 0;   // started_: bytes whose write-back has begun
};

/// Removes the temporary file of a killed process, but not one that is being written.
void remove_partial(const std::string& path) noexcept;

}   // namespace tapedeck
