// Replaces npz.cpp in a library without libzip.
#include "core/format.h"
#include "tapedeck/npy.h"

namespace tapedeck {
namespace {

[[noreturn]] void refuse(std::string_view op) {
  throw_error<ArgumentError>(
      "{}: the library was built without libzip; install libzip-dev and build with -Dzip=enabled, or use "
      ".npy "
      "or safetensors files",
      op);
}

}   // namespace

void save_npz(const std::string&, const NamedTensors&) { refuse("save_npz"); }
NamedTensors load_npz(const std::string&, const NpzOptions&) { refuse("load_npz"); }
bool has_npz() { return false; }

}   // namespace tapedeck
