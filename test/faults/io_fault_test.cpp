// Disks that fail: every single system call that opens, writes, synchronises, moves or reads fails once, and
// once writes or reads less than requested. Afterwards either the old file is unchanged or the new one is
// complete; a log has whole lines.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <span>

#include <catch2/catch.hpp>

#include "message_of.h"
#include "tapedeck/checkpoint.h"
#include "tapedeck/csv.h"
#include "tapedeck/npy.h"
#include "tapedeck/ops.h"
#include "tapedeck/safetensors.h"
#include "tapedeck/training_log.h"
#include "temporary_folder.h"

namespace {

enum class Fault { none, error, interrupted, part };
Fault fault = Fault::none;
int calls_before = 0;
bool happened = false;
bool leaves_holes = false;   // zeros are not written, so that a large file takes no room
std::string taken;           // the next lock comes when another process has just moved this file away

// Whether the next call is the one.
bool is_met() {
  if (fault == Fault::none || calls_before-- != 0) return false;
  happened = true;
  errno = fault == Fault::interrupted ? EINTR : EIO;
  return true;
}
// A call that transfers n bytes; only such a call is interrupted or does less.
template <class Call> long with_fault(const Call& call, std::size_t n) {
  if (!is_met()) return call(n);
  return fault == Fault::part ? call(n / 2 + 1) : -1;
}
template <class Call> int with_fault(const Call& call) {
  return fault == Fault::error && is_met() ? -1 : static_cast<int>(call());
}

}   // namespace

// Replace the functions of the C library.
extern "C" {
ssize_t pwrite(int fd, const void* from, size_t n, off_t offset) {
  const auto* bytes = static_cast<const char*>(from);
  if (leaves_holes && n > 4096 && bytes[0] == 0 && std::memcmp(bytes, bytes + 1, n - 1) == 0) {
    const off_t end = offset + static_cast<off_t>(n);
    struct stat s;
    const bool fits = fstat(fd, &s) == 0 && (s.st_size >= end || syscall(SYS_ftruncate, fd, end) == 0);
    return fits ? static_cast<ssize_t>(n) : -1;
  }
  return with_fault([=](size_t count) { return syscall(SYS_pwrite64, fd, from, count, offset); }, n);
}
ssize_t write(int fd, const void* from, size_t n) {
  return with_fault([=](size_t count) { return syscall(SYS_write, fd, from, count); }, n);
}
ssize_t pread(int fd, void* to, size_t n, off_t offset) {
  return with_fault([=](size_t count) { return syscall(SYS_pread64, fd, to, count, offset); }, n);
}
int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return with_fault([=] { return syscall(SYS_openat, AT_FDCWD, path, flags, mode); });
}
int mkdir(const char* path, mode_t mode) noexcept {
  return with_fault([=] { return syscall(SYS_mkdirat, AT_FDCWD, path, mode); });
}
int lstat(const char* path, struct stat* s) noexcept {
  return with_fault([=] { return fstatat(AT_FDCWD, path, s, AT_SYMLINK_NOFOLLOW); });
}
int flock(int fd, int operation) noexcept {
  if (!taken.empty()) std::filesystem::remove(std::exchange(taken, ""));
  return static_cast<int>(syscall(SYS_flock, fd, operation));
}
int fsync(int fd) {
  return with_fault([=] { return syscall(SYS_fsync, fd); });
}
int ftruncate(int fd, off_t length) noexcept {
  return with_fault([=] { return syscall(SYS_ftruncate, fd, length); });
}
int rename(const char* from, const char* to) noexcept {
  return with_fault([=] { return syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0); });
}
}

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

/// Runs f with a fault in its n-th call; false if it makes fewer calls.
template <class F> bool met(Fault kind, int n, const F& f) {
  fault = kind, calls_before = n, happened = false;
  f();
  fault = Fault::none;
  return happened;
}

/// Tensors "a" and "b", or of a file of one array the first.
struct Format {
  std::string_view op, loading_op;
  void (*save)(const std::string& path, const Tensor& a, const Tensor& b);
  Tensor (*load)(const std::string& path);   // "a"
};
const Format kFormats[] = {
    // the last needs libzip
    {"save_safetensors", "load_safetensors",
     [](const std::string& path, const Tensor& a, const Tensor& b) {
       save_safetensors(path, {{"a", a}, {"b", b}});
     },
     [](const std::string& path) { return load_safetensors(path).at("a"); }},
    {"save_npy", "load_npy",
     [](const std::string& path, const Tensor& a, const Tensor&) { save_npy(path, a); }, load_npy},
    {"save", "restore",
     [](const std::string& path, const Tensor& a, const Tensor& b) {
       Tensor first = a, second = b;
       Checkpoint checkpoint;
       checkpoint.add("a", first), checkpoint.add("b", second);
       checkpoint.save(path);
     },
     [](const std::string& path) {
       Tensor a, b;
       Checkpoint checkpoint;
       checkpoint.add("a", a), checkpoint.add("b", b);
       checkpoint.restore(path);
       return a;
     }},
    {"save_npz", "load_npz",
     [](const std::string& path, const Tensor& a, const Tensor& b) {
       save_npz(path, {{"a", a}, {"b", b}});
     },
     [](const std::string& path) { return load_npz(path).at("a"); }},
};
std::span<const Format> formats() { return std::span(kFormats).first(std::size(kFormats) - !has_npz()); }

struct Case {
  const Format& format;
  TemporaryFolder folder = {};
  std::string path = folder / "x";
  Tensor ones = tapedeck::ones({200'000}), zeros = tapedeck::zeros({300'000}), b = arange(100);

  void save_old() const { format.save(path, ones, b); }
  void save_new() const { format.save(path, zeros, b); }
  bool holds(const Tensor& a) const {
    const Tensor there = format.load(path);
    return there.shape() == a.shape() && there.to_vector() == a.to_vector();
  }
};

}   // namespace

TEST_CASE("a disk that fails leaves the old file", "[files]") {
  for (const Format& format : formats()) {
    const Case c{format};
    const std::string begin = std::string(format.op) + ": " + c.path;
    int calls = 0;
    for (bool more = true; more; ++calls) {
      c.save_old();
      std::string message;
      more = met(Fault::error, calls, [&] { message = message_of<FileError>([&] { c.save_new(); }); });
      INFO("call " << calls << ": " << message);
      if (message == begin + ": cannot be written: Input/output error")
        CHECK(c.holds(c.ones));
      else
        CHECK(
            (c.holds(c.zeros) && message == (more ? begin + ": has been renamed to its final name, but that "
                                                            "may not be on the disk yet: Input/output error"
                                                  : "no error")));
      CHECK(c.folder.files() == 1);
    }
    INFO(format.op);
    CHECK(calls > 8);
  }
}

TEST_CASE("a file that another process moves before it is locked is created again", "[files]") {
  for (const Format& format : formats()) {
    const Case c{format};
    INFO(format.op);
    c.save_old();
    taken = c.path + ".partial";
    c.save_new();
    CHECK(taken.empty());
    CHECK(c.holds(c.zeros));
    CHECK(c.folder.files() == 1);
  }
}

TEST_CASE("interrupted and partial system calls are repeated", "[files]") {
  for (const Format& format : formats()) {
    const Case c{format};
    for (const Fault kind : {Fault::interrupted, Fault::part}) {
      int saves = 0, loads = 0;
      for (bool more = true; more; saves += more) {
        c.save_old();
        more = met(kind, saves, [&] { c.save_new(); });
        INFO(format.op << ", call " << saves);
        CHECK(c.holds(c.zeros));
      }
      for (bool more = true; more; loads += more) {
        bool whole = false;
        more = met(kind, loads, [&] { whole = c.holds(c.zeros); });
        INFO(format.loading_op << ", call " << loads);
        CHECK(whole);
      }
      CHECK(saves > 1);
      CHECK((loads > 1 || format.loading_op == "load_npz"));   // which libzip reads
    }
  }
}

TEST_CASE("a disk that cannot be read is an error", "[files]") {
  for (const Format& format : formats()) {
    const Case c{format};
    c.save_old();
    int calls = 0;
    for (bool more = true; more; ++calls) {
      std::string message;
      more = met(Fault::error, calls, [&] { message = message_of<FileError>([&] { format.load(c.path); }); });
      const std::string begin = std::string(format.loading_op) + ": " + c.path + ": cannot be ";
      CHECK(message == (!more        ? "no error"
                        : calls == 0 ? begin + "opened: Input/output error"
                                     : begin + "read: Input/output error"));
    }
    CHECK(calls > (format.loading_op == "load_npz" ? 1 : 2));
  }
}

TEST_CASE("csv: a disk that cannot be read is an error", "[files]") {
  const TemporaryFolder folder;
  const std::string path = folder / "x.csv";
  write_text(path, "1,2\n3,4\n");
  for (const auto& [kind, expected] :
       {std::pair(Fault::error, "load_csv: " + path + ": cannot be read: Input/output error"),
        std::pair(Fault::interrupted, std::string("no error")),
        std::pair(Fault::part, std::string("no error"))}) {
    std::string message;
    std::int64_t elements = 0;
    const int first_read = kind == Fault::error;   // behind open
    CHECK(met(kind, first_read,
              [&] { message = message_of([&] { elements = load_csv(path).values.size(); }); }));
    CHECK(message == expected);
    CHECK(elements == (kind == Fault::error ? 0 : 4));
  }
}

TEST_CASE("a log has whole lines, whatever fails", "[files]") {
  for (const Fault kind : {Fault::error, Fault::interrupted, Fault::part}) {
    int calls = 0;
    for (bool more = true; more; ++calls) {
      const TemporaryFolder folder;
      const std::string path = folder / "deep/log";
      std::filesystem::create_directory(folder / "deep");
      if (calls % 2)
        write_text(path, "{\"old\":1}\n{\"cut\":");
      else
        std::filesystem::remove(folder / "deep");
      std::string expected = calls % 2 ? "{\"old\":1}\n" : "";
      int errors = 0;
      const auto log_all = [&] {
        for (int i = 0; i < 4; ++i) {
          const auto write = [&](TrainingLog& log) {
            log.write({{"step", i}, {"text", "a line that is longer than half of itself"}});
            expected += "{\"step\":" + std::to_string(i) +
                        ",\"text\":\"a line that is longer than half of itself\"}\n";
          };
          errors += message_of<FileError>([&] {
                      TrainingLog log(path);
                      write(log);
                    }) != "no error";
        }
      };
      more = met(kind, calls / 2, log_all);
      INFO("call " << calls / 2);
      CHECK(errors == (more && kind == Fault::error));
      CHECK(text_of(path) == expected);
      if (!more && calls % 2 == 0) more = true;   // the other kind of file makes other calls
    }
    CHECK(calls > 8);
  }
}

TEST_CASE("a log that cannot be truncated is left unchanged", "[files]") {
  bool more = true;
  int calls = 0;
  for (; more; ++calls) {
    const TemporaryFolder folder;
    TrainingLog log(folder / "log");
    log.write({{"step", 1}});
    std::int64_t size = 0;
    std::string message;
    more = met(Fault::error, calls, [&] {
      message = message_of<FileError>([&] {
        size = log.size();
        log.write({{"step", 2}});
        log.truncate(size);
      });
    });
    CHECK((message != "no error") == more);
    const std::string one = "{\"step\":1}\n", two = "{\"step\":2}\n", text = text_of(folder / "log");
    CHECK((text == one || (more && text == one + two)));
  }
  CHECK(calls > 4);
}

// A write that does a part, then fails: the next line does not continue it.
TEST_CASE("a log continues after a line that was cut off", "[files]") {
  const TemporaryFolder folder;
  const std::string path = folder / "log";
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before;
  REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
  TrainingLog log(path);
  log.write({{"step", 1}});
  const rlimit full = {15, before.rlim_max};   // 11 bytes are there
  setrlimit(RLIMIT_FSIZE, &full);
  const std::string first = message_of<FileError>([&] {
    log.write({{"step", 2}});
  }),
                    second = message_of<FileError>([&] {
                      log.write({{"step", 3}});
                    });
  setrlimit(RLIMIT_FSIZE, &before);
  CHECK(first == "training_log: " + path + ": cannot be written: File too large");
  CHECK(second == first);
  log.write({{"step", 4}});
  CHECK(text_of(path) == "{\"step\":1}\n{\"step\":4}\n");
}

// The place of the last member, as APPNOTE.TXT 4.3 has it, in the end of the archive: the locator of ZIP64,
// its record, the entries of the directory.
TEST_CASE("npz: an archive over 4 GB", "[.][large]") {
  const TemporaryFolder folder;
  const std::string path = folder / "x.npz";
  const Tensor large = zeros({1 << 26}, DType::u8);
  NamedTensors tensors = {{"z", tensor({1.0, 2.0})}};
  for (int i = 0; i < 70; ++i)
    tensors.emplace("a" + std::to_string(i), large);
  leaves_holes = true;
  save_npz(path, tensors);
  leaves_holes = false;

  const auto bytes = std::filesystem::file_size(path);
  REQUIRE(bytes > (std::uint64_t{1} << 32));
  std::ifstream file(path, std::ios::binary);
  const auto text_at = [&](std::uint64_t offset, std::size_t n) {
    std::string text(n, '\0');
    file.seekg(static_cast<std::streamoff>(offset));
    file.read(text.data(), static_cast<std::streamsize>(n));
    REQUIRE(file.gcount() == static_cast<std::streamsize>(n));
    return text;
  };
  const auto number = [](const std::string& text, std::size_t at) {
    std::uint64_t n = 0;
    std::memcpy(&n, text.data() + at, sizeof n);
    return n;
  };
  const std::string ends = text_at(bytes - 42, 42);   // the locator and the old end
  REQUIRE(ends.substr(0, 4) == "PK\6\7");
  const std::string record = text_at(number(ends, 8), 56);
  REQUIRE(record.substr(0, 4) == "PK\6\6");
  CHECK(number(record, 32) == tensors.size());
  const std::string directory = text_at(number(record, 48), number(record, 40));
  const std::size_t last = directory.rfind("PK\1\2"), extra = last + 46 + std::strlen("z.npy");
  REQUIRE(directory.substr(last + 46, 5) == "z.npy");
  REQUIRE(directory.substr(extra, 4) == std::string("\1\0\x8\0", 4));
  const std::uint64_t place = number(directory, extra + 4);
  CHECK(place > (std::uint64_t{1} << 32));
  CHECK(text_at(place, 4) == "PK\3\4");
  CHECK(text_at(place + 30, 5) == "z.npy");
  CHECK(message_of<FileError>([&] { load_npz(path, {.max_bytes = 1 << 27}); }).find("max_bytes") !=
        std::string::npos);
}
