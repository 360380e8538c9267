// Files as bytes: input with every read checked, and output that replaces a file atomically.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace tapedeck {

/// A path, and the operation that error messages begin with.
struct FileName {
  std::string_view op;
  std::string path;

  /// Throws FileError "op: path: what".
  [[noreturn]] void fail(std::string_view what) const;
  /// The same, followed by the text of errno.
  [[noreturn]] void fail_with_errno(std::string_view what) const;
};

class InputFile {
 public:
  explicit InputFile(FileName name);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const FileName& name() const { return name_; }
  std::int64_t size() const { return size_; }
  /// Reads n bytes at offset; fails if the file is shorter.
  void read(std::int64_t offset, void* to, std::int64_t n) const;

 private:
  FileName name_;
  int fd_;
  std::int64_t size_;
};

/// Writes to a locked temporary file, the path plus ".partial". commit() syncs it to disk and renames it to
/// the path; without commit() the previous file stays.
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

 private:
  FileName name_;
  std::string partial_;
  int fd_ = -1;
  std::int64_t size_ = 0, started_ = 0;   // started_: bytes whose write-back has begun
};

/// Removes the temporary file of a process that was killed, but none that is being written.
void remove_partial(const std::string& path) noexcept;

}   // namespace tapedeck
