// The attributes of updates at positions.
#pragma once

namespace tapedeck {

struct IntoAttrs {
  int axes;   // positions refer to the last `axes` axes of x; stacked cotangents have further leading axes
};

}   // namespace tapedeck
