// Run: the mode of a call of a network.
#pragma once
#include <string_view>

#include "tapedeck/random_key.h"

namespace tapedeck::nn {

namespace detail {
/// The key of a Run that was constructed without one; an arbitrary number that is unlikely to be chosen.
inline constexpr random::Key kNoKey{.seed = 0x8f1bbcdc62c1d6a9, .stream = 0xca62c1d66ed9eba1};
}   // namespace detail

/// Whether a network is called to train it, and the key of its random choices. It is an argument of the call:
/// layers have no mode.
struct Run {
  bool training = false;              // dropout is active; batch normalization uses and counts the batch
  random::Key key = detail::kNoKey;   // must differ in each step
  /// Whether it was constructed with a key, which dropout requires in training.
  bool has_key() const { return !random::KeyAccess::equal(key, detail::kNoKey); }
  /// The Run for the i-th of several layers, with its own key.
  Run split(std::uint64_t i) const { return {training, training && has_key() ? key.split(i) : key}; }
};

namespace detail {
/// The key of a run that trains. Throws ArgumentError, which names the layer, if the run has no key.
TAPEDECK_EXPORT random::Key key_of(const Run& run, std::string_view layer);
}   // namespace detail

}   // namespace tapedeck::nn
