// The attributes of gathering and scattering.
#pragma once
#include "tapedeck/shape.h"

namespace tapedeck {

// Axes count from the end, and attributes speak of the last axes only, so that further axes in front pass
// through.
struct GatherAttrs {
  int axis, batch = 0, axes = 0;   // the first `batch` of the last `axes` axes go with those of indices
};
struct ScatterAttrs {
  Shape shape;
  int axis, batch = 0;
};
struct GatherNdAttrs {
  int axes;   // the index counts among the last `axes` axes of x
};
struct ScatterNdAttrs {
  Shape shape;
};

}   // namespace tapedeck
