// The attributes of gathering and scattering.
#pragma once
#include "tapedeck/shape.h"

namespace tapedeck {

// Axes count from the end, and attributes refer to the last axes only, so that leading axes of stacked
// cotangents stay unchanged.
struct GatherAttrs {
  int axis, batch = 0, axes = 0;   // the first `batch` of the last `axes` axes are batch axes
};
struct ScatterAttrs {
  Shape shape;
  int axis, batch = 0;
};
struct GatherNdAttrs {
  int axes;   // indices refer to the last `axes` axes of x
};
struct ScatterNdAttrs {
  Shape shape;
};

}   // namespace tapedeck
