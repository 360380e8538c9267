// Key: what random numbers are made from.
#pragma once
#include <cstdint>

#include "tapedeck/error.h"

namespace tapedeck::random {

/// Where the numbers come from. {.seed = 7} makes one; use every key once, and split it for more.
struct Key {
  std::uint64_t seed = 0, stream = 0;

  /// The i-th of as many independent keys as are wanted.
  TAPEDECK_EXPORT Key split(std::uint64_t i) const;
};

}   // namespace tapedeck::random
