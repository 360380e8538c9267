// The attributes of the ops that quantize.
#pragma once
#include "tapedeck/ops/quantize.h"

namespace tapedeck {

// min and max are those of fake_quant_with_min_max_args; the others have them as inputs.
struct FakeQuantAttrs {
  FakeQuant options;
  double min = 0, max = 0;
};
// range_of_x: min and max are those of x, and whatever comes back goes to x.
struct QuantizeAttrs {
  Quantize options;
  bool range_of_x = false;
};

}   // namespace tapedeck
