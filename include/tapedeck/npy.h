// NumPy's file formats: .npy holds one array, .npz several named ones. Supported NumPy dtypes are float16,
// float32, float64, int8, int16, int32, int64, uint8, uint16, uint32, uint64, bool, complex64 and complex128.
#pragma once
#include <optional>

#include "tapedeck/named_tensors.h"

namespace tapedeck {

/// Writes a file for numpy.load. An existing file is replaced only after the new one is completely on disk.
/// Throws ArgumentError if x is undefined, and FileError if the file cannot be written.
TAPEDECK_EXPORT void save_npy(const std::string& path, const Tensor& x);
/// Reads a file written by numpy.save, in either byte order and memory order. Throws FileError if the file
/// cannot be read or is invalid, and for unsupported dtypes; objects are never unpickled.
TAPEDECK_EXPORT Tensor load_npy(const std::string& path);

/// Writes several arrays to one uncompressed zip archive, like numpy.savez. Names exclude ".npy". An existing
/// file is replaced only after the new one is completely on disk. Throws ArgumentError for an empty list, an
/// undefined tensor and a name with a NUL byte, FileError if the file cannot be written, and ArgumentError if
/// the library was built without libzip (see has_npz).
TAPEDECK_EXPORT void save_npz(const std::string& path, const NamedTensors& tensors);

/// Options of load_npz.
struct NpzOptions {
  /// Maximum number of bytes of all arrays together, since a few damaged or hostile bytes of a compressed
  /// archive could expand to many times as much. If omitted: 64 times the size of the file, but at least 256
  /// MB.
  std::optional<std::int64_t> max_bytes = {};
};
/// Also reads numpy.savez_compressed archives, and archives larger than 4 GB. Throws FileError if the file
/// cannot be read, is invalid or has more bytes than allowed, and ArgumentError if the library was built
/// without libzip (see has_npz).
TAPEDECK_EXPORT NamedTensors load_npz(const std::string& path, const NpzOptions& options = {});
/// Whether the library was built with libzip, which save_npz and load_npz need.
TAPEDECK_EXPORT bool has_npz();

}   // namespace tapedeck
