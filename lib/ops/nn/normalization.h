// The attributes of the normalizations.
#pragma once

namespace tapedeck {

struct NormAttrs {
  double epsilon;
};

}   // namespace tapedeck
