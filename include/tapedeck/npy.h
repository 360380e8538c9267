// NumPy's files: .npy holds one array, .npz several by name. NumPy's dtypes are float32, float64, int8,
// int32, int64, uint8, bool, complex64 and complex128.
#pragma once
#include "tapedeck/named_tensors.h"

namespace tapedeck {

/// Writes what numpy.load reads. The file takes the place of one that was there when all of it is on the
/// disk. Throws ArgumentError for an undefined tensor, FileError where the file cannot be written.
TAPEDECK_EXPORT void save_npy(const std::string& path, const Tensor& x);
/// Reads what numpy.save writes, in either byte order and memory order. Throws FileError for a file that
/// cannot be read or is not as the format has it, and for dtypes that tensors do not have; objects are never
/// unpickled.
TAPEDECK_EXPORT Tensor load_npy(const std::string& path);

/// The same for several arrays in one zip archive, as numpy.savez writes them: without compression. Names
/// have no ".npy". The file takes the place of one that was there when all of it is written; where the system
/// fails just then, it may be lost.
TAPEDECK_EXPORT void save_npz(const std::string& path, const NamedTensors& tensors);
/// Also reads numpy.savez_compressed, and archives of more than 4 GB.
TAPEDECK_EXPORT NamedTensors load_npz(const std::string& path);

}   // namespace tapedeck
