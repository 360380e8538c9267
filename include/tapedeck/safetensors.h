// The safetensors format, which other libraries also read and write: named tensors and text metadata.
// docs/guide/checkpoints.md describes the files.
#pragma once
#include "tapedeck/named_tensors.h"

namespace tapedeck {

/// Text metadata of a file. Keys that begin with "tapedeck." are reserved for the library.
using Metadata = std::map<std::string, std::string, std::less<>>;

/// Writes the tensors, with checksums of each tensor and of the rest of the file. An existing file is
/// replaced only after the new one is completely on disk, so a failure leaves the old file intact. Throws
/// ArgumentError for an undefined tensor, a name that is not UTF-8 and the name "__metadata__", and FileError
/// if the file cannot be written.
TAPEDECK_EXPORT void save_safetensors(const std::string& path, const NamedTensors& tensors,
                                      const Metadata& metadata = {});

/// Reads a file of any origin and verifies checksums if it has them. Throws FileError if the file cannot be
/// read or is invalid, and for element types that tensors do not have, such as F8_E4M3.
TAPEDECK_EXPORT NamedTensors load_safetensors(const std::string& path);
/// Reads only the metadata of a safetensors file. Throws as load_safetensors does.
TAPEDECK_EXPORT Metadata load_safetensors_metadata(const std::string& path);

}   // namespace tapedeck
