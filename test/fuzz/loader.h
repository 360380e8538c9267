// Shared by the fuzz targets: a file loader gets arbitrary bytes, and may throw nothing but FileError.
#pragma once
#include <cstdint>
#include <string>

#include <sys/mman.h>
#include <unistd.h>

#include "tapedeck/error.h"

template <class Load> int load_bytes(const std::uint8_t* bytes, std::size_t n, const Load& load) {
  static const int file = memfd_create("fuzz", 0);
  static const std::string path = "/proc/self/fd/" + std::to_string(file);
  if (ftruncate(file, 0) != 0 || pwrite(file, bytes, n, 0) != static_cast<ssize_t>(n)) __builtin_trap();
  try {
    load(path);
  } catch (const tapedeck::FileError&) {}
  return 0;
}
