// map_short(f): map(f) of an f that takes less time than the conversion of halves, which it has loops of its
// own for.
#pragma once
#include "op/elementwise.h"

namespace tapedeck {

/// For f32 and f64; for these, c64 and c128.
template <class F> constexpr Kernel map_short(F f) {
  return detail::map_over<detail::Over::reals, detail::Body::brief>(f);
}
template <class F> constexpr Kernel map_short_complex(F f) {
  return detail::map_over<detail::Over::complexes, detail::Body::brief>(f);
}

}   // namespace tapedeck
