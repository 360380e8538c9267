// The error for the use of a moved-from object.
#include "tapedeck/owned.h"

#include "tapedeck/error.h"

namespace tapedeck {

void detail::throw_moved_from() {
  throw ArgumentError("this object was moved from: only assigning to it and destroying it are defined");
}

}   // namespace tapedeck
