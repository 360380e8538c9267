// Without memory the first matrix product of a process throws, and does not wait for ever in OpenBLAS; with
// memory again it succeeds.
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <new>

#include "tapedeck/tapedeck.h"

namespace td = tapedeck;

int main() {
  const td::Tensor x = td::ones({600, 600});
  rlimit before{}, seconds{20, 20};
  getrlimit(RLIMIT_AS, &before);
  setrlimit(RLIMIT_CPU, &seconds);
  long pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const auto page = static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
  const rlimit tight{static_cast<rlim_t>(pages) * page + (std::size_t{16} << 20), before.rlim_max};
  setrlimit(RLIMIT_AS, &tight);
  if (mmap(nullptr, std::size_t{32} << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED) {
    std::puts("skipped: memory: limits have no effect here, as in an emulator");
    return 77;
  }
  bool failed = false;
  try {
    (void)td::matmul(x, x);
  } catch (const std::bad_alloc&) {
    failed = true;
  }
  setrlimit(RLIMIT_AS, &before);
  if (!failed) return std::fprintf(stderr, "memory: the product did not fail\n"), 1;
  if (td::matmul(x, x).at({3, 5}) != 600) return std::fprintf(stderr, "memory: the product is wrong\n"), 1;
  return 0;
}
