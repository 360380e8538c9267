// The attributes of the ops that draw from distributions.
#pragma once
#include "tapedeck/ops/random.h"

namespace tapedeck {

struct DrawAttrs {
  random::Key key;
  Shape shape;
};
struct ProbabilitiesAttrs {
  random::Key key;
  Spec spec;
};
struct CategoricalAttrs {
  random::Key key;
  std::int64_t n;
};

}   // namespace tapedeck
