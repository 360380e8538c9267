// Without memory the first matrix product of a process throws, and does not wait for ever in OpenBLAS; with
// memory again it succeeds.
#include <sys/resource.h>

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
  const rlimit tight{static_cast<rlim_t>(pages) * 4096 + (std::size_t{16} << 20), before.rlim_max};
  setrlimit(RLIMIT_AS, &tight);
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
