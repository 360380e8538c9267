// How much memory tensors may take, and have taken. Of live_bytes() in tensor.h: buffers of tensors in use in
// the whole process, without what is cached (cached_bytes()), and without tensors of up to 64 bytes.
#pragma once
#include <cstdint>
#include <optional>

#include "tapedeck/tensor.h"

namespace tapedeck {

/// From now on a tensor for which live_bytes() would exceed `nbytes` is not made: OutOfMemory, which names it
/// and the limit. None: no limit, as at first. What is in use already may be more. For all threads. Throws
/// ArgumentError for a negative number.
TAPEDECK_EXPORT void set_memory_limit(std::optional<std::int64_t> nbytes);
/// The limit; none: there is none.
TAPEDECK_EXPORT std::optional<std::int64_t> memory_limit();

/// The largest live_bytes() since the process began or reset_peak_memory() was called.
TAPEDECK_EXPORT std::int64_t peak_memory();
/// From now on peak_memory() is that of what follows: it begins with live_bytes().
TAPEDECK_EXPORT void reset_peak_memory();

}   // namespace tapedeck
