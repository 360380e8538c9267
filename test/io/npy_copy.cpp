// npy_copy IN OUT [IN OUT]…: reads .npy and .npz files and writes them again, for numpy_files.py.
#include <cstdio>
#include <string_view>

#include "tapedeck/npy.h"

namespace td = tapedeck;

int main(int argc, char** argv) {
  try {
    for (int i = 1; i + 1 < argc; i += 2) {
      if (std::string_view(argv[i]).ends_with(".npz"))
        td::save_npz(argv[i + 1], td::load_npz(argv[i]));
      else
        td::save_npy(argv[i + 1], td::load_npy(argv[i]));
    }
  } catch (const td::Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
