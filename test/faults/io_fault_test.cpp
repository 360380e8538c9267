// Disks that fail: every single system call that writes, synchronises, moves or reads fails once, and once
// writes or reads less than requested. Afterwards either the old file is unchanged or the new one is
// complete.
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include <catch2/catch.hpp>

#include "message_of.h"
#include "tapedeck/safetensors.h"
#include "temporary_folder.h"

namespace {

enum class Fault { none, error, interrupted, part };
Fault fault = Fault::none;
int calls_before = 0;
bool happened = false;

// What happens to the next call.
Fault next() {
  if (fault == Fault::none || calls_before-- != 0) return Fault::none;
  happened = true;
  errno = fault == Fault::interrupted ? EINTR : EIO;
  return fault;
}
template <class Call> long with_fault(const Call& call, std::size_t n) {
  switch (next()) {
    case Fault::none:
      return call(n);
    case Fault::part:
      return call(n / 2 + 1);
    default:
      return -1;
  }
}
template <class Call> int with_fault(const Call& call) {
  const Fault f = next();
  return f == Fault::none || f == Fault::part ? static_cast<int>(call()) : -1;
}

}   // namespace

// Replace the functions of the C library.
extern "C" {
ssize_t pwrite(int fd, const void* from, size_t n, off_t offset) {
  return with_fault([=](size_t count) { return syscall(SYS_pwrite64, fd, from, count, offset); }, n);
}
ssize_t pread(int fd, void* to, size_t n, off_t offset) {
  return with_fault([=](size_t count) { return syscall(SYS_pread64, fd, to, count, offset); }, n);
}
int fsync(int fd) {
  return with_fault([=] { return syscall(SYS_fsync, fd); });
}
int ftruncate(int fd, off_t length) noexcept {
  return with_fault([=] { return syscall(SYS_ftruncate, fd, length); });
}
int rename(const char* from, const char* to) noexcept {
  return with_fault([=] { return syscall(SYS_rename, from, to); });
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

const NamedTensors kOld = {{"a", ones({200'000})}, {"b", arange(100)}},
                   kNew = {{"a", zeros({300'000})}, {"c", arange(5)}};

bool holds(const std::string& path, const NamedTensors& tensors) {
  const NamedTensors there = load_safetensors(path).tensors;
  return there.size() == tensors.size() && there.at("a").shape() == tensors.at("a").shape() &&
         there.at("a").at({7}) == tensors.at("a").at({7});
}

}   // namespace

TEST_CASE("a disk that fails leaves the old file", "[safetensors]") {
  const TemporaryFolder folder;
  const std::string path = folder / "x.safetensors";
  int calls = 0;
  for (bool more = true; more; ++calls) {
    save_safetensors(path, kOld);
    std::string message;
    more = met(Fault::error, calls, [&] { message = message_of([&] { save_safetensors(path, kNew); }); });
    INFO("call " << calls << ": " << message);
    if (message == "save_safetensors: " + path + ": cannot be written: Input/output error")
      CHECK(holds(path, kOld));
    else
      CHECK((holds(path, kNew) &&
             message == (more ? "save_safetensors: " + path +
                                    ": is in its place, but that may not be on the disk: Input/output error"
                              : "no error")));
    CHECK(folder.files() == 1);
  }
  CHECK(calls > 10);   // each piece of a tensor, and more
}

TEST_CASE("calls that are interrupted or do less than asked for are made again", "[safetensors]") {
  const TemporaryFolder folder;
  const std::string path = folder / "x.safetensors";
  for (int n = 0; n < 8; ++n) {
    save_safetensors(path, kOld);
    for (const Fault kind : {Fault::interrupted, Fault::part}) {
      INFO("call " << n);
      // ftruncate, fsync and rename come first and last.
      if (n > 0) CHECK(met(kind, n, [&] { save_safetensors(path, kNew); }));
      bool whole = false;
      if (met(kind, n, [&] { whole = holds(path, n ? kNew : kOld); })) CHECK(whole);
    }
  }
}

TEST_CASE("a disk that cannot be read is an error", "[safetensors]") {
  const TemporaryFolder folder;
  const std::string path = folder / "x.safetensors";
  save_safetensors(path, kOld);
  int calls = 0;
  for (bool more = true; more; ++calls) {
    std::string message;
    more = met(Fault::error, calls, [&] { message = message_of([&] { load_safetensors(path); }); });
    CHECK(message ==
          (more ? "load_safetensors: " + path + ": cannot be read: Input/output error" : "no error"));
  }
  CHECK(calls > 5);
}
