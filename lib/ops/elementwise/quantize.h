// The attributes of the ops that quantize.
#pragma once
#include "tapedeck/ops/quantize.h"

namespace tapedeck {

// min and max are used by fake_quant_with_min_max_args only; for the other ops they are inputs.
struct FakeQuantAttrs {
  FakeQuantOptions options;
  double min = 0, max = 0;
};
// range_of_x: min and max are computed from x, and the whole gradient goes to x. The options' axis is counted
// from the end.
struct QuantizeAttrs {
  QuantizeAndDequantizeOptions options;
  bool range_of_x = false;
};

}   // namespace tapedeck
