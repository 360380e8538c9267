// How many threads an op may use.
#pragma once
#include "tapedeck/error.h"

namespace tapedeck {

/// The most threads that one op uses, 1 at the start; results do not depend on it. In a process that came out
/// of fork() it stays 1. Throws ArgumentError below 1.
TAPEDECK_EXPORT void set_num_threads(int n);
TAPEDECK_EXPORT int num_threads();

}   // namespace tapedeck
