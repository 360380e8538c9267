// How the library was built and the machine that it runs on, for bug reports and measurements.
#pragma once
#include <iosfwd>
#include <string>

#include "tapedeck/error.h"

namespace tapedeck {

/// The build, and the state at the time of the call: the loader has chosen the library variant and the BLAS,
/// and thread counts can be set.
struct BuildInfo {
  std::string version;          // of tapedeck: "0.1.0"
  std::string compiler;         // "g++ 12.2.0"
  std::string instructions;     // instruction set of the loaded library: "native" (of the build machine),
                                // "x86-64", "x86-64-v3" or "x86-64-v4"
  int vector_bytes;             // width of the vectors in kernels
  std::string blas;             // its description of itself: "OpenBLAS 0.3.21 … SkylakeX MAX_THREADS=64"
  std::string blas_threading;   // "serial", "pthreads" or "OpenMP"
  std::string blas_library;     // the file of the BLAS; empty if the system does not provide it
  int blas_threads;             // for calls made by the program; the library's own calls use one thread each
  std::string onednn;           // oneDNN's version, "2.6.3"; "none" if convolutions use the library's own
                                // kernels
  std::string tbb;              // oneTBB's version: "2021.8"
  int threads;                  // num_threads()
  std::string sanitizers;       // "none", or "address,undefined"
};

/// The build of the loaded library, and the state at the time of the call.
TAPEDECK_EXPORT BuildInfo build_info();

/// The information in five lines, without a final newline.
TAPEDECK_EXPORT std::string to_string(const BuildInfo& info);
TAPEDECK_EXPORT std::ostream& operator<<(std::ostream& out, const BuildInfo& info);

}   // namespace tapedeck
