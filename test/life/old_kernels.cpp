// A product of matrices, with the kernels that OPENBLAS_CORETYPE names; the argument is the number of
// warnings.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "tapedeck/tapedeck.h"

using namespace tapedeck;

int main([[maybe_unused]] int argc, [[maybe_unused]] char** argv) {
#ifdef __x86_64__
  if (argc < 2 || !__builtin_cpu_supports("avx2")) return 0;   // other processors have no better kernels
  std::vector<std::string> warnings;
  set_warning_handler([&](std::string_view text) {
    warnings.emplace_back(text);
    (void)matmul(ones({20, 20}, DType::f64), ones({20, 20}, DType::f64));   // does not warn again
  });
  for (int i = 0; i < 2; ++i)
    if (matmul(ones({20, 20}, DType::f64), ones({20, 20}, DType::f64)).to_vector()[0] != 20) return 1;
  for (const std::string& text : warnings) {
    std::puts(text.c_str());
    if (text.find("set OPENBLAS_CORETYPE=") == std::string::npos) return 1;
  }
  return warnings.size() == static_cast<std::size_t>(std::atoi(argv[1])) ? 0 : 1;
#endif
}
