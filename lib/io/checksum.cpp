// Checksums by xxhash.
#include "io/checksum.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace tapedeck {
namespace {

XXH3_state_t* state_in(const std::shared_ptr<void>& p) { return static_cast<XXH3_state_t*>(p.get()); }

}   // namespace

Checksum::Checksum() : state_(std::make_shared<XXH3_state_t>()) { XXH3_64bits_reset(state_in(state_)); }

void Checksum::add(const void* bytes, std::int64_t n) {
  XXH3_64bits_update(state_in(state_), bytes, static_cast<std::size_t>(n));
}

std::uint64_t Checksum::value() const { return XXH3_64bits_digest(state_in(state_)); }

}   // namespace tapedeck
