// How much memory tensors take, have taken and may take; and the freed buffers that are kept for reuse.
#pragma once
#include <cstdint>
#include <optional>

#include "tapedeck/tensor.h"

namespace tapedeck {

/// Bytes of tensor buffers in use in the whole process, each rounded up to 256 or by less than a quarter.
/// Tensors of up to 64 bytes store their data inline and are not counted.
TAPEDECK_EXPORT std::int64_t live_bytes();
/// Bytes of freed buffers that this thread caches for reuse, and of those that all threads share: buffers
/// freed on another thread than the one that made them, and those of threads that have ended.
TAPEDECK_EXPORT std::int64_t cached_bytes();
/// Maximum bytes that each thread caches (1 GiB by default); all threads share up to an eighth of it. Takes
/// effect when the next buffer is freed.
TAPEDECK_EXPORT void set_buffer_cache_limit(std::int64_t nbytes);
/// Returns this thread's cached buffers, those that all threads share, and what malloc keeps free, to the
/// system. Other threads keep theirs.
TAPEDECK_EXPORT void release_buffers();

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
