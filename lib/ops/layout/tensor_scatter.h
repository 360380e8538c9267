// The attributes of updates at positions.
#pragma once

namespace tapedeck {

struct IntoAttrs {
  int axes;   // positions count among the last `axes` axes of x; stacked cotangents have more in front
};

}   // namespace tapedeck
