// Key: determines random numbers by a seed and a stream.
#pragma once
#include <cstdint>

#include "tapedeck/error.h"

namespace tapedeck {
class Tensor;
}

namespace tapedeck::random {

/// One of the two numbers of a key. It remembers whether the key is an argument of a function that is being
/// compiled, or a part of one: then it is a different number in each call, and reading it throws TraceError.
class TAPEDECK_EXPORT KeyNumber {
 public:
  constexpr KeyNumber(std::uint64_t value = 0) : value_(value) {}
  operator std::uint64_t() const {
    if (source_) [[unlikely]]
      note_read();
    return value_;
  }

 private:
  friend struct KeyAccess;
  void note_read() const;

  std::uint64_t value_;
  std::uint64_t source_ = 0;   // the key of a compiled function to which it belongs; 0: none
};

/// Determines the random numbers that a function returns. {.seed = 7} is a key; use each key once, and split
/// it to obtain more.
struct Key {
  KeyNumber seed = 0, stream = 0;

  /// Returns the i-th of an unlimited number of independent keys.
  TAPEDECK_EXPORT Key split(std::uint64_t i) const;
  /// Returns the key of this number, an integer tensor with one element, as for the steps of a loop. Throws
  /// DTypeError or ShapeError for other tensors. In a compiled function the number has to be an argument of
  /// the function, or of the step of a loop, else it throws TraceError.
  TAPEDECK_EXPORT Key split(const Tensor& i) const;
};

/// For the library: access to the numbers of a key without notifying a recording, and to its source.
struct KeyAccess {
  static std::uint64_t seed(const Key& key) { return key.seed.value_; }
  static std::uint64_t stream(const Key& key) { return key.stream.value_; }
  /// The source of a key with which a compiled function was called, or of a key split from one; 0 for others.
  /// Throws TraceError if the numbers of the key come from two keys.
  TAPEDECK_EXPORT static std::uint64_t source(const Key& key);
  /// Returns the key with this source, which must not be 0.
  static Key from(Key key, std::uint64_t source) {
    key.seed.source_ = 2 * source, key.stream.source_ = 2 * source + 1;
    return key;
  }
  static bool equal(const Key& a, const Key& b) { return seed(a) == seed(b) && stream(a) == stream(b); }
};

}   // namespace tapedeck::random
