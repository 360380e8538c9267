// The safetensors format, which other libraries read and write, too: tensors by name, and a few texts.
// docs/checkpoints.md says what the files look like.
#pragma once
#include "tapedeck/named_tensors.h"

namespace tapedeck {

/// Texts beside the tensors of a file. Keys that begin with "tapedeck." are the library's own.
using Metadata = std::map<std::string, std::string, std::less<>>;

struct TensorFile {
  NamedTensors tensors;
  Metadata metadata;
};

/// Writes the tensors, with a checksum of each and of the rest. The file takes the place of one that was
/// there when all of it is on the disk: whatever happens before, the old one stays. Throws ArgumentError for
/// an undefined tensor, names that are not UTF-8 and the name "__metadata__", FileError where the file cannot
/// be written.
TAPEDECK_EXPORT void save_safetensors(const std::string& path, const NamedTensors& tensors,
                                      const Metadata& metadata = {});

/// Reads a file of any origin; what has checksums is compared with them. Throws FileError for a file that
/// cannot be read or is not as the format has it, and for elements of a type that tensors do not have, such
/// as BF16.
TAPEDECK_EXPORT TensorFile load_safetensors(const std::string& path);

}   // namespace tapedeck
