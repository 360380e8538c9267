// In: machine code. Out: a copy of it in executable memory.
//
// Each copy has pages of its own, which are written and then made executable and read-only. So nothing is
// written to memory from which another thread, or a child process, may run.
#include "compile/machine/code_pages.h"

#include <sys/mman.h>
#include <unistd.h>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "core/format.h"

namespace tapedeck::compiled {
namespace {

class CodePages {
 public:
  /// Is empty if the system gives no memory; errno tells why.
  explicit CodePages(std::span<const std::byte> code) : bytes_(code.size()) {
    void* const pages = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) return;
    std::memcpy(pages, code.data(), bytes_);
    if (mprotect(pages, bytes_, PROT_READ | PROT_EXEC) == 0)
      code_ = static_cast<const std::byte*>(pages);
    else
      munmap(pages, bytes_);
  }
  ~CodePages() {
    if (code_) munmap(const_cast<std::byte*>(code_), bytes_);
  }
  CodePages(const CodePages&) = delete;
  const std::byte* code() const { return code_; }

 private:
  std::size_t bytes_;
  const std::byte* code_ = nullptr;
};

// For the profiler perf, which looks for the names of such code in a file of this name, in lines of this
// form.
void name_for_perf(const std::byte* at, std::size_t bytes) {
  static const bool wanted = [] {
    const char* asked = std::getenv("TAPEDECK_PERF_MAP");
    return asked && *asked == '1';
  }();
  if (!wanted) return;
  std::FILE* const map = std::fopen(fmt::format("/tmp/perf-{}.map", getpid()).c_str(), "a");
  if (!map) return;
  const std::string line =
      fmt::format("{:x} {:x} tapedeck group\n", reinterpret_cast<std::uintptr_t>(at), bytes);
  std::fputs(line.c_str(), map);
  std::fclose(map);
}

}   // namespace

std::shared_ptr<const std::byte> executable_copy(std::span<const std::byte> code) {
  const auto pages = std::make_shared<const CodePages>(code);
  if (!pages->code()) return nullptr;
  name_for_perf(pages->code(), code.size());
  return {pages, pages->code()};
}

}   // namespace tapedeck::compiled
