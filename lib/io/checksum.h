// Checksum: 64-bit XXH3, fed piece by piece.
#pragma once
#include <cstdint>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace tapedeck {

class Checksum {
 public:
  Checksum() { XXH3_64bits_reset(&state_); }
  void add(const void* bytes, std::int64_t n) {
    XXH3_64bits_update(&state_, bytes, static_cast<std::size_t>(n));
  }
  std::uint64_t value() const { return XXH3_64bits_digest(&state_); }

 private:
  XXH3_state_t state_;
};

}   // namespace tapedeck
