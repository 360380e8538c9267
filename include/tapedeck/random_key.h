// Key: what random numbers are made from.
#pragma once
#include <cstdint>

#include "tapedeck/error.h"

namespace tapedeck::random {

/// Determines the random numbers that a function returns. {.seed = 7} makes a key; use each key once, and
/// split it to get more.
struct Key {
  std::uint64_t seed = 0, stream = 0;

  /// The i-th of an unlimited number of independent keys.
  TAPEDECK_EXPORT Key split(std::uint64_t i) const;
};

}   // namespace tapedeck::random
