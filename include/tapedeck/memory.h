// Memory of tensors: the amount in use, its peak and its limit, and the cache of freed buffers.
#pragma once
#include <cstdint>
#include <optional>

#include "tapedeck/tensor.h"

namespace tapedeck {

/// Bytes of tensor buffers in use in the whole process, each rounded up to 256 or by less than a quarter.
/// Tensors of up to 64 bytes store their data inline and are not counted.
TAPEDECK_EXPORT std::int64_t live_bytes();
/// Bytes of freed buffers that this thread caches for reuse, plus bytes of freed buffers shared by all
/// threads: buffers freed on another thread than the one that created them, and buffers of threads that have
/// ended.
TAPEDECK_EXPORT std::int64_t cached_bytes();
/// Maximum bytes that each thread caches (1 GiB by default); all threads share up to an eighth of it. Takes
/// effect when the next buffer is freed.
TAPEDECK_EXPORT void set_buffer_cache_limit(std::int64_t nbytes);
/// Returns this thread's cached buffers, the buffers shared by all threads, and free memory of malloc to the
/// system. Other threads keep their cached buffers.
TAPEDECK_EXPORT void release_buffers();

/// Sets the limit of live_bytes() for all threads. From now on an op whose result would exceed it throws
/// OutOfMemory, which names the tensor and the limit. Memory already in use may exceed it and remains valid.
/// nullopt: no limit, which is the default. Throws ArgumentError for a negative number.
TAPEDECK_EXPORT void set_memory_limit(std::optional<std::int64_t> nbytes);
/// The limit that was set, or nullopt.
TAPEDECK_EXPORT std::optional<std::int64_t> memory_limit();

/// The largest live_bytes() since the process began or reset_peak_memory() was called.
TAPEDECK_EXPORT std::int64_t peak_memory();
/// Sets peak_memory() to the current live_bytes().
TAPEDECK_EXPORT void reset_peak_memory();

}   // namespace tapedeck
