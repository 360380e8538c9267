// print_arrays FILE.npz: prints the arrays of an archive in the order of their names, each ended by a NUL,
// for numpy_print.py.
#include <cstdio>

#include "tapedeck/npy.h"

namespace td = tapedeck;

int main(int argc, char** argv) {
  try {
    for (int i = 1; i < argc; ++i)
      for (const auto& [name, x] : td::load_npz(argv[i])) {
        const std::string text = to_string(x);
        std::fwrite(text.c_str(), 1, text.size() + 1, stdout);
      }
  } catch (const td::Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
