// Run: how a network is called.
#pragma once
#include "tapedeck/random_key.h"

namespace tapedeck::nn {

/// Whether a network is called to train it, and the key of its random choices. An argument of the call: no
/// layer has a mode.
struct Run {
  bool training = false;   // dropout drops, and batch normalization uses and counts the batch
  random::Key key = {};    // another one in each step
  /// The same for the i-th of several layers, with a key of its own.
  Run split(std::uint64_t i) const { return {training, training ? key.split(i) : key}; }
};

}   // namespace tapedeck::nn
