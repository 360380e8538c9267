// Reads and writes files as bytes. FileErrors name the file and the system's reason.
#include "core/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>

#include <filesystem>
#include <optional>
#include <utility>

#include "core/format.h"

namespace tapedeck {
namespace {

// The bytes after which write-back is started during writing.
constexpr std::int64_t kWriteBackBytes = 8 << 20;

// Opens and locks the file, and retries until the name still refers to the locked file: the previous holder
// of the lock may have moved it. Some file systems have no locks, which is not an error; others have none for
// files that are opened for reading (EBADF).
int open_locked(const std::string& partial, int flags, mode_t mode = 0) {
  for (;;) {
    const int fd = open_file(partial, O_NOFOLLOW | flags, mode);
    if (fd < 0) return -1;
    struct stat opened, there;
    const bool is_locked = ::flock(fd, LOCK_EX | LOCK_NB) == 0 || (errno != EWOULDBLOCK && errno != EBADF);
    const bool is_known = is_locked && ::fstat(fd, &opened) == 0;
    const bool is_there = is_known && ::stat(partial.c_str(), &there) == 0;
    if (is_there && opened.st_ino == there.st_ino && opened.st_dev == there.st_dev) return fd;
    const bool was_moved = is_there || (is_known && errno == ENOENT);
    const int reason = errno;
    ::close(fd);
    if (was_moved) continue;
    errno = reason;
    return -1;
  }
}

// Removes a temporary file that no process is writing; returns false and sets errno if it cannot be removed.
// Only regular files are removed. The temporary file of a read-only file is read-only, and is therefore
// opened for reading.
bool remove_unused(const std::string& partial) {
  int fd = open_locked(partial, O_WRONLY);
  if (fd < 0 && errno == EACCES) fd = open_locked(partial, O_RDONLY);
  if (fd < 0) return errno == ENOENT;
  struct stat s;
  errno = EEXIST;
  const bool ok = ::fstat(fd, &s) == 0 && S_ISREG(s.st_mode) && ::unlink(partial.c_str()) == 0;
  const int reason = errno;
  ::close(fd);
  errno = reason;
  return ok;
}

// Creates and locks a temporary file. An existing file is not reused: it may belong to another user, or not
// be writable.
int make_partial(const FileName& name, const std::string& partial, mode_t mode) {
  for (;;) {
    const int fd = open_locked(partial, O_WRONLY | O_CREAT | O_EXCL, mode);
    if (fd >= 0) return fd;
    const bool is_there = errno == EEXIST;
    if (is_there && remove_unused(partial)) continue;
    if (errno == EWOULDBLOCK) name.fail("is being written by another process or thread");
    name.fail_with_errno(is_there ? fmt::format("cannot be written, since {} cannot be removed", partial)
                                  : "cannot be written");
  }
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

// Makes a rename durable by syncing the folder. Some file systems do not support this, which is not an error.
bool sync_folder(const std::string& folder) {
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool ok = ::fsync(fd) == 0 || errno == EINVAL || errno == ENOTSUP;
  const int reason = errno;
  ::close(fd);
  errno = reason;
  return ok;
}

// The file that a path names through symbolic links, whether it exists or not.
std::string target_of(const FileName& name) {
  name.check();
  namespace fs = std::filesystem;
  constexpr int kMostLinks = 40;
  fs::path path = name.path;
  for (int links = 0; links < kMostLinks; ++links) {
    struct stat s;
    const bool is_there = ::lstat(path.c_str(), &s) == 0;
    if (is_there ? S_ISREG(s.st_mode) : errno == ENOENT) return path.string();
    if (!is_there) name.fail_with_errno("cannot be written");
    if (S_ISDIR(s.st_mode)) {
      errno = EISDIR;
      name.fail_with_errno("cannot be written");
    }
    if (!S_ISLNK(s.st_mode)) name.fail("is not a regular file");
    std::error_code error;
    path = path.parent_path() / fs::read_symlink(path, error);
    if (error) name.fail(fmt::format("cannot be written: {}", error.message()));
  }
  errno = ELOOP;
  name.fail_with_errno("cannot be written");
}

// The permission bits of a file's mode; none if there is no file.
std::optional<mode_t> mode_of(const std::string& path) {
  struct stat s;
  return ::stat(path.c_str(), &s) == 0 ? std::optional(s.st_mode & 0777) : std::nullopt;
}

// Copies owner, group and mode of the file in `target` to the file that replaces it, so that no other users
// may read or write it. Some file systems have no modes and owners, which is not an error.
void take_access(int fd, const std::string& target) {
  struct stat s;
  if (::stat(target.c_str(), &s) != 0) return;
  [[maybe_unused]] const bool has_owner = ::fchown(fd, s.st_uid, static_cast<gid_t>(-1)) == 0;
  const bool has_group = ::fchown(fd, static_cast<uid_t>(-1), s.st_gid) == 0;
  [[maybe_unused]] const bool has_mode = ::fchmod(fd, s.st_mode & (has_group ? 0777 : 0707)) == 0;
}

// The length of the UTF-8 character that the text begins with; 0 for a control character and for invalid
// bytes.
std::size_t length_of_character(std::string_view text) {
  const auto byte = [&](std::size_t i) -> unsigned {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const unsigned first = byte(0);
  if (first < 0x80) return first >= 0x20 && first != 0x7f;
  const std::size_t n = first >= 0xc2 && first < 0xe0   ? 2
                        : first >= 0xe0 && first < 0xf0 ? 3
                        : first >= 0xf0 && first < 0xf5 ? 4
                                                        : 0;
  if (n == 0) return 0;
  unsigned code = first & (0xff >> (n + 1));
  for (std::size_t i = 1; i < n; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3f);
  }
  const bool is_long = code < (n == 2 ? 0xa0u : n == 3 ? 0x800u : 0x10000u);   // or a control character
  const bool is_surrogate = code >= 0xd800 && code < 0xe000;
  return is_long || is_surrogate || code > 0x10ffff ? 0 : n;
}

}   // namespace

std::string printable(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const std::size_t n = length_of_character(text);
    if (n > 0)
      result += text.substr(0, n);
    else
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
    text.remove_prefix(std::max<std::size_t>(n, 1));
  }
  return result;
}

void FileName::fail(std::string_view what) const {
  constexpr std::size_t kMost = 4096;
  const bool is_long = what.size() > kMost;
  throw_error<FileError>("{}: {}: {}{}", op, printable(path), printable(what.substr(0, kMost)),
                         is_long ? "…" : "");
}
void FileName::check() const {
  if (path.find('\0') != std::string::npos) fail("the path has a NUL byte");
}
void FileName::fail_with_errno(std::string_view what) const {
  const int reason = errno;
  fail(fmt::format("{}: {}", what, std::strerror(reason)));
}

int open_file(const std::string& path, int flags, unsigned mode) {
  const int fd = ::open(path.c_str(), flags | O_NONBLOCK | O_CLOEXEC, static_cast<mode_t>(mode));
  if (fd < 0 || fd > STDERR_FILENO) return fd;
  const int other = ::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1), reason = errno;
  ::close(fd);
  errno = reason;
  return other;
}

InputFile::InputFile(FileName name) : name_(std::move(name)) {
  name_.check();
  fd_ = open_file(name_.path, O_RDONLY);
  if (fd_ < 0) name_.fail_with_errno("cannot be opened");
  measure();
}
InputFile::InputFile(FileName name, int fd)
    : name_(std::move(name)), fd_(::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1)) {
  if (fd_ < 0) name_.fail_with_errno("cannot be read");
  measure();
}
InputFile::~InputFile() { ::close(fd_); }

// Reads the size of the file. Closes the descriptor, and throws, if it is not a regular file.
void InputFile::measure() {
  struct stat s;
  const bool known = ::fstat(fd_, &s) == 0;
  if (known && S_ISREG(s.st_mode)) {
    size_ = s.st_size;
    return;
  }
  ::close(fd_);
  if (!known) name_.fail_with_errno("cannot be read");
  name_.fail("is not a regular file");
}

void InputFile::read(std::int64_t offset, void* to, std::int64_t n) const {
  for (auto* at = static_cast<char*>(to); n > 0;) {
    const ssize_t count = ::pread(fd_, at, static_cast<std::size_t>(n), offset);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) name_.fail_with_errno("cannot be read");
    if (count == 0) name_.fail(fmt::format("ends at byte {}, {} bytes too early", offset, n));
    at += count, offset += count, n -= count;
  }
}

OutputFile::OutputFile(FileName name)
    : name_(std::move(name)),
      target_(target_of(name_)),
      partial_(target_ + ".partial"),
      fd_(make_partial(name_, partial_, mode_of(target_).value_or(0666))) {
  take_access(fd_, target_);
}

OutputFile::~OutputFile() {
  if (fd_ < 0) return;
  ::unlink(partial_.c_str());   // before the lock is released
  ::close(fd_);
}

void OutputFile::write(const void* from, std::int64_t n) {
  overwrite(size_, from, n);
  size_ += n;
  if (size_ - started_ < kWriteBackBytes) return;
  ::sync_file_range(fd_, started_, size_ - started_,
                    SYNC_FILE_RANGE_WRITE);   // a hint: fsync reports errors
  started_ = size_;
}

void OutputFile::overwrite(std::int64_t offset, const void* from, std::int64_t n) {
  for (auto* at = static_cast<const char*>(from); n > 0;) {
    const ssize_t count = ::pwrite(fd_, at, static_cast<std::size_t>(n), offset);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) name_.fail_with_errno("cannot be written");
    at += count, offset += count, n -= count;
  }
}

void OutputFile::commit() {
  if (::fsync(fd_) != 0 || ::rename(partial_.c_str(), target_.c_str()) != 0)
    name_.fail_with_errno("cannot be written");
  ::close(std::exchange(fd_, -1));
  if (!sync_folder(folder_of(target_)))
    name_.fail_with_errno("has been renamed to its final name, but that may not be on the disk yet");
}

void remove_partial(const std::string& path) noexcept { remove_unused(path + ".partial"); }

}   // namespace tapedeck
