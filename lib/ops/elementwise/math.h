// The attributes of astype.
#pragma once
#include "tapedeck/dtype.h"

namespace tapedeck {

struct AsTypeAttrs {
  DType dtype;
};

}   // namespace tapedeck
