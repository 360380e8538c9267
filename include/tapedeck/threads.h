// The number of threads that an op may use.
#pragma once
#include "tapedeck/error.h"

namespace tapedeck {

/// Maximum number of threads that one op uses, 1 by default; results do not depend on it. It remains 1 in a
/// child process of fork(). Throws ArgumentError if n is below 1.
TAPEDECK_EXPORT void set_num_threads(int n);
/// The number set by set_num_threads.
TAPEDECK_EXPORT int num_threads();

}   // namespace tapedeck
