#include "tapedeck/safetensors.h"
#include "loader.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t n) {
  return load_bytes(bytes, n, [](const std::string& path) { tapedeck::load_safetensors(path); });
}
