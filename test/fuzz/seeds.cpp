// seeds FOLDER: writes a few small seed files for each fuzz target, into FOLDER/safetensors,
// FOLDER/npy and FOLDER/npz.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <zip.h>

#include "tapedeck/npy.h"
#include "tapedeck/ops.h"
#include "tapedeck/safetensors.h"

namespace td = tapedeck;

namespace {

void write(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

// Without checksums, as other libraries write them; otherwise every changed byte would be rejected at once.
void write_safetensors(const std::string& path, const std::string& header, std::size_t data) {
  write(path, std::string(1, static_cast<char>(header.size())) + std::string(7, '\0') + header +
                  std::string(data, '\1'));
}

void write_npy(const std::string& path, const std::string& description, std::size_t data) {
  write(path, std::string("\x93NUMPY\1\0", 8) + static_cast<char>(description.size()) + '\0' + description +
                  std::string(data, '\1'));
}

// With deflate, which save_npz does not use.
void write_deflated(const std::string& path, const std::string& npy_path) {
  zip_t* archive = zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, nullptr);
  if (!archive || zip_file_add(archive, "a.npy", zip_source_file(archive, npy_path.c_str(), 0, -1), 0) < 0 ||
      zip_close(archive) != 0)
    std::exit((std::perror("seeds"), 1));
}

}   // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::fputs("usage: seeds FOLDER\n", stderr), 2;
  const std::string folder = argv[1], safetensors = folder + "/safetensors/", npy = folder + "/npy/",
                    npz = folder + "/npz/";
  for (const std::string& f : {safetensors, npy, npz})
    std::filesystem::create_directories(f);
  const td::NamedTensors tensors = {{"a", td::tensor({{1.0, 2.0}, {3.0, 4.0}})},
                                    {"b", td::zeros({0, 3}, td::DType::i64)},
                                    {"c", td::ones({2}, td::DType::boolean)},
                                    {"d", td::ones({1}, td::DType::c128)}};
  td::save_safetensors(safetensors + "checksums", tensors, {{"k", "v"}});
  write_safetensors(
      safetensors + "plain",
      R"({"w":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},"b":{"dtype":"BOOL","shape":[3],"data_offsets":[8,11]}})",
      11);
  write_safetensors(safetensors + "texts",
                    R"({"__metadata__":{"format":"pt"},"w":{"dtype":"I64","shape":[],"data_offsets":[0,8]}})",
                    8);
  td::save_npy(npy + "scalar", td::tensor(1.0));
  write_npy(npy + "big", "{'descr': '>c8', 'fortran_order': True, 'shape': (2, 3), }", 48);
  write_npy(npy + "bool", "{'descr': '|b1', 'fortran_order': False, 'shape': (3,), }\n", 3);
  td::save_npz(npz + "stored", tensors);
  write_deflated(npz + "deflated", npy + "scalar");
}
