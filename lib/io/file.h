// Files as bytes: one that is read is checked at every step, one that is written takes its place whole or not
// at all.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace tapedeck {

/// A path, and the operation that messages begin with.
struct FileName {
  std::string_view op;
  std::string path;

  /// Throws FileError "op: path: what".
  [[noreturn]] void fail(std::string_view what) const;
  /// The same with the system's reason, from errno.
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
  /// n bytes from offset on; fails where the file does not have them.
  void read(std::int64_t offset, void* to, std::int64_t n) const;

 private:
  FileName name_;
  int fd_;
  std::int64_t size_;
};

/// Is written beside its path, under that name and ".partial", and locked. commit() brings the bytes to the
/// disk, then moves the file to its place; what ends before leaves what was there.
class OutputFile {
 public:
  explicit OutputFile(FileName name);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  /// At the end of what was written so far.
  void write(const void* from, std::int64_t n);
  /// Over what was written before.
  void overwrite(std::int64_t offset, const void* from, std::int64_t n);
  void commit();

 private:
  FileName name_;
  std::string partial_;
  int fd_ = -1;
  std::int64_t size_ = 0, started_ = 0;   // the first bytes are on their way to the disk
};

/// Removes what a process that was killed has left of a file that it wrote, but nothing that is being
/// written.
void remove_partial(const std::string& path) noexcept;

}   // namespace tapedeck
