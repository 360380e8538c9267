// Run: how a network is called.
#pragma once
#include <string_view>

#include "tapedeck/random_key.h"

namespace tapedeck::nn {

namespace detail {
/// Of a Run that was given none; a number that nobody would choose.
inline constexpr random::Key kNoKey{.seed = 0x8f1bbcdc62c1d6a9, .stream = 0xca62c1d66ed9eba1};
}   // namespace detail

/// Whether a network is called to train it, and the key of its random choices. An argument of the call: no
/// layer has a mode.
struct Run {
  bool training = false;              // dropout drops, and batch normalization uses and counts the batch
  random::Key key = detail::kNoKey;   // another one in each step
  /// Whether it was given a key, which dropout asks for in training.
  bool has_key() const { return !random::KeyAccess::equal(key, detail::kNoKey); }
  /// The same for the i-th of several layers, with a key of its own.
  Run split(std::uint64_t i) const { return {training, training && has_key() ? key.split(i) : key}; }
};

namespace detail {
/// The key of a run that trains. Throws ArgumentError, which names the layer, where it was given none.
TAPEDECK_EXPORT random::Key key_of(const Run& run, std::string_view layer);
}   // namespace detail

}   // namespace tapedeck::nn
