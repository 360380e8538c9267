// Access: the operand of a node. A value is a computed tensor; an access names the elements of a value that
// are read, and the spec under which they are read. There is no other way to name an operand.
#pragma once
#include "compile/ir/ids.h"
#include "tapedeck/shape.h"

namespace tapedeck::compiled {

/// The elements of value `of` from element `first` on, row-major in the shape of `spec`. Without a value: an
/// operand that is not read, of which a node needs only the spec, or nothing at all.
struct Access {
  ValueId of = {};
  std::int64_t first = 0;
  Spec spec = {};

  bool reads() const { return static_cast<bool>(of); }
  std::int64_t size() const { return spec.shape.size(); }
  friend bool operator==(const Access&, const Access&) = default;
};

}   // namespace tapedeck::compiled
