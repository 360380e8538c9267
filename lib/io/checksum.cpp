// Checksums by xxhash.
#include "io/checksum.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <new>
#include <type_traits>

namespace tapedeck {
namespace {

template <class Bytes> auto* state_in(Bytes& bytes) {
  using State = std::conditional_t<std::is_const_v<Bytes>, const XXH3_state_t, XXH3_state_t>;
  static_assert(sizeof(XXH3_state_t) <= sizeof(Bytes) && alignof(XXH3_state_t) <= 64);
  return reinterpret_cast<State*>(&bytes);
}

}   // namespace

Checksum::Checksum() {
  new (&state_) XXH3_state_t;
  XXH3_64bits_reset(state_in(state_));
}

void Checksum::add(const void* bytes, std::int64_t n) {
  XXH3_64bits_update(state_in(state_), bytes, static_cast<std::size_t>(n));
}

std::uint64_t Checksum::value() const { return XXH3_64bits_digest(state_in(state_)); }

}   // namespace tapedeck
