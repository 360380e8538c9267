// How much memory tensors may take, and have taken. Both are counted as live_bytes() (tensor.h) counts: the
// buffers of all tensors in use in the whole process, but neither cached buffers nor tensors of up to 64
// bytes.
#pragma once
#include <cstdint>
#include <optional>

#include "tapedeck/tensor.h"

namespace tapedeck {

/// Sets the limit of live_bytes() for all threads. From now on an op whose result would exceed it throws
/// OutOfMemory, which names the tensor and the limit. What is already in use may exceed it and stays. None:
/// no limit, which is the default. Throws ArgumentError for a negative number.
TAPEDECK_EXPORT void set_memory_limit(std::optional<std::int64_t> nbytes);
/// The limit that was set, or none.
TAPEDECK_EXPORT std::optional<std::int64_t> memory_limit();

/// The largest live_bytes() since the process began or reset_peak_memory() was called.
TAPEDECK_EXPORT std::int64_t peak_memory();
/// Sets peak_memory() to the present live_bytes().
TAPEDECK_EXPORT void reset_peak_memory();

}   // namespace tapedeck
