// The resident memory of the process.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

namespace tapedeck::test {

/// The number of resident pages in the process's anonymous mappings. Unlike /proc/self/statm, it does not
/// include pages of an emulator. Not for use with sanitizers, which map terabytes.
inline long resident_pages() {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  std::ifstream maps("/proc/self/maps");
  std::vector<unsigned char> is_in_memory;
  long pages = 0;
  for (std::string line; std::getline(maps, line);) {
    std::size_t begin = 0, end = 0, inode = 0;
    if (std::sscanf(line.c_str(), "%zx-%zx %*s %*s %*s %zu", &begin, &end, &inode) != 3 || inode != 0)
      continue;
    is_in_memory.assign((end - begin) / page, 0);
    // mincore() fails for the kernel's own mappings.
    if (mincore(reinterpret_cast<void*>(begin), end - begin, is_in_memory.data()) != 0) continue;
    for (const unsigned char flags : is_in_memory)
      pages += flags & 1;
  }
  return pages;
}

}   // namespace tapedeck::test
