// Checksum: 64-bit XXH3, fed piece by piece.
#pragma once
#include <cstddef>
#include <cstdint>

namespace tapedeck {

class Checksum {
 public:
  Checksum();
  void add(const void* bytes, std::int64_t n);
  std::uint64_t value() const;

 private:
  alignas(64) std::byte state_[576];   // an XXH3_state_t, without a long header
};

}   // namespace tapedeck
