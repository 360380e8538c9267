// Access: how a node names elements of a value. A value is what was computed; an access is which of its
// elements are read, and as what. There is no other way to name an operand.
#pragma once
#include "compile/ir/ids.h"
#include "tapedeck/shape.h"

namespace tapedeck::compiled {

/// The elements of `of` from `first` on, row-major under the shape of `spec`. Without a value: an operand of
/// which a node needs the dtype and shape, or nothing at all.
struct Access {
  ValueId of = {};
  std::int64_t first = 0;
  Spec spec = {};

  bool reads() const { return static_cast<bool>(of); }
  std::int64_t size() const { return spec.shape.size(); }
  friend bool operator==(const Access&, const Access&) = default;
};

}   // namespace tapedeck::compiled
