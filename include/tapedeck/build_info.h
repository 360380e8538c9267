// What the library was built with and what it runs on: for reports of bugs and of speed.
#pragma once
#include <iosfwd>
#include <string>

#include "tapedeck/error.h"

namespace tapedeck {

/// As at the time of the call: the loader chose the library's level and the BLAS, and numbers of threads can
/// be set.
struct BuildInfo {
  std::string version;          // of tapedeck: "0.1.0"
  std::string compiler;         // "g++ 12.2.0"
  std::string instructions;     // the loaded library's: "native" (those of the machine that built it),
                                // "x86-64", "x86-64-v3" or "x86-64-v4"
  int vector_bytes;             // width of the kernels' vectors
  std::string blas;             // what it says of itself: "OpenBLAS 0.3.21 … SkylakeX MAX_THREADS=64"
  std::string blas_threading;   // "serial", "pthreads" or "OpenMP"
  std::string blas_library;     // its file; empty where the system does not tell
  int blas_threads;             // of calls that the program makes itself; the library's own use one each
  std::string onednn;           // its version, "2.6.3"; "none" where convolutions are the library's own
  std::string tbb;              // oneTBB's version: "2021.8"
  int threads;                  // num_threads()
  std::string sanitizers;       // "none", or "address,undefined"
};

TAPEDECK_EXPORT BuildInfo build_info();

/// Five lines, the last without its end.
TAPEDECK_EXPORT std::string to_string(const BuildInfo& info);
TAPEDECK_EXPORT std::ostream& operator<<(std::ostream& out, const BuildInfo& info);

}   // namespace tapedeck
