// Checksum: 64-bit XXH3, fed piece by piece.
#pragma once
#include <cstdint>
#include <memory>

namespace tapedeck {

class Checksum {
 public:
  Checksum();
  void add(const void* bytes, std::int64_t n);
  std::uint64_t value() const;

 private:
  std::shared_ptr<void> state_;   // of xxhash.h, which is long
};

}   // namespace tapedeck
