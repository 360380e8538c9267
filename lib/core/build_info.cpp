// Describes the build and the loaded libraries. Most of it is queried at run time: Debian's alternatives can
// exchange OpenBLAS under a program.
#include "tapedeck/build_info.h"

#include <dlfcn.h>

#include <filesystem>
#include <ostream>

#include <cblas.h>
#include <tbb/version.h>
#include <xsimd/xsimd.hpp>

#include "core/format.h"
#include "core/onednn.h"
#include "tapedeck/threads.h"

namespace tapedeck {
namespace {

#if defined(__clang__)
constexpr std::string_view kCompiler = "clang++ " __clang_version__;
#else
constexpr std::string_view kCompiler = "g++ " __VERSION__;
#endif

// Debian's library names are chains of symbolic links.
std::string file_of(const void* function) {
  Dl_info info;
  if (!dladdr(function, &info) || !info.dli_fname) return {};
  std::error_code error;
  const std::filesystem::path path = std::filesystem::canonical(info.dli_fname, error);
  return error ? info.dli_fname : path.string();
}

std::string threading_of_blas() {
  switch (openblas_get_parallel()) {
    case OPENBLAS_SEQUENTIAL:
      return "serial";
    case OPENBLAS_THREAD:
      return "pthreads";
    case OPENBLAS_OPENMP:
      return "OpenMP";
    default:
      return "unknown";
  }
}

std::string trimmed(std::string_view text) {
  return std::string(text.substr(0, text.find_last_not_of(' ') + 1));
}

}   // namespace

BuildInfo build_info() {
  return {.version = TAPEDECK_VERSION,
          .compiler = trimmed(kCompiler),
          .instructions = TAPEDECK_INSTRUCTIONS,
          .vector_bytes = static_cast<int>(sizeof(xsimd::batch<float>)),
          .blas = trimmed(openblas_get_config()),
          .blas_threading = threading_of_blas(),
          .blas_library = file_of(reinterpret_cast<const void*>(&openblas_get_config)),
          .blas_threads = openblas_get_num_threads(),
          .onednn = onednn_version().empty() ? "none" : onednn_version(),
          .tbb = TBB_runtime_version(),
          .threads = num_threads(),
          .sanitizers = TAPEDECK_SANITIZERS};
}

std::string to_string(const BuildInfo& i) {
  return fmt::format(
      "tapedeck {}, {}, for {} with vectors of {} bytes\n"
      "BLAS: {}, {} with {} threads, {}\n"
      "oneDNN: {}\n"
      "threads: {} an op, oneTBB {}\n"
      "sanitizers: {}",
      i.version, i.compiler, i.instructions, i.vector_bytes, i.blas, i.blas_threading, i.blas_threads,
      i.blas_library, i.onednn, i.threads, i.tbb, i.sanitizers);
}

std::ostream& operator<<(std::ostream& out, const BuildInfo& info) { return out << to_string(info); }

}   // namespace tapedeck
