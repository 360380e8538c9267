// build_info, compared with the build of the tests themselves and with what OpenBLAS reports.
#include <cblas.h>
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "core/sanitizers.h"
#include "tapedeck/tapedeck.h"

namespace build_info_test {

using namespace tapedeck;
using Catch::Matchers::Contains, Catch::Matchers::StartsWith;

TEST_CASE("build_info reports the build options", "[build_info]") {
  const BuildInfo info = build_info();
  CHECK(std::count(info.version.begin(), info.version.end(), '.') == 2);
#if defined(__clang__)
  CHECK_THAT(info.compiler, StartsWith("clang++ " + std::to_string(__clang_major__) + "."));
#else
  CHECK_THAT(info.compiler, StartsWith("g++ " + std::to_string(__GNUC__) + "."));
#endif
  CHECK(info.sanitizers == (kAddressSanitizer ? "address,undefined" : kThreadSanitizer ? "thread" : "none"));
}

// scripts/test --levels says which level it lets the loader take.
TEST_CASE("build_info reports the level that the loader chose", "[build_info]") {
  const BuildInfo info = build_info();
  const char* const asked = std::getenv("TAPEDECK_LEVEL");
  if (asked) CHECK(info.instructions == (std::string_view(asked) == "none" ? "x86-64" : asked));
  if (info.instructions == "x86-64" || info.instructions == "aarch64")
    CHECK(info.vector_bytes == 16);
  else if (info.instructions == "x86-64-v3")
    CHECK(info.vector_bytes == 32);
  else if (info.instructions == "x86-64-v4")
    CHECK(info.vector_bytes == 64);
  else
    CHECK((info.instructions == "native" && info.vector_bytes >= 16));
}

TEST_CASE("build_info reports the processor", "[build_info]") {
  const int before = openblas_get_num_threads();
  set_num_threads(3);
  openblas_set_num_threads(2);
  const BuildInfo info = build_info();
  CHECK(info.threads == 3);
  CHECK(info.blas_threads == openblas_get_num_threads());
  CHECK_THAT(info.blas, StartsWith("OpenBLAS "));
  CHECK(info.blas_threading == (openblas_get_parallel() == 0   ? "serial"
                                : openblas_get_parallel() == 1 ? "pthreads"
                                                               : "OpenMP"));
  CHECK(std::filesystem::is_regular_file(info.blas_library));
  CHECK(info.blas_library.find("openblas") != std::string::npos);
  CHECK_THAT(info.tbb, StartsWith("20"));
  const char* const onednn = std::getenv("TAPEDECK_ONEDNN");
  CHECK((info.onednn == "none" ||
         (info.onednn.starts_with("2.") && std::string_view(onednn ? onednn : "") != "off")));
  set_num_threads(1);
  openblas_set_num_threads(before);

  std::ostringstream out;
  out << info;
  const std::string text = to_string(info);
  CHECK(out.str() == text);
  CHECK(std::count(text.begin(), text.end(), '\n') == 4);
  for (const std::string& part :
       {info.version, info.compiler, info.instructions, info.blas, info.blas_threading, info.blas_library,
        info.onednn, info.tbb, info.sanitizers})
    CHECK_THAT(text, Contains(part));
  CHECK_THAT(text, Contains("3 an op"));
}

}   // namespace build_info_test
