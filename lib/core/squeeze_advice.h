// What to do where shapes that should be one differ by axes of extent 1, as [n] and [n, 1] do.
#pragma once
#include <string>
#include <string_view>

#include "tapedeck/shape.h"

namespace tapedeck {

struct NamedShape {
  std::string_view name;
  Shape shape;
};

/// "use squeeze(predictions, 1)" where that gives both one shape, else `otherwise`.
std::string squeeze_advice(NamedShape a, NamedShape b, std::string_view otherwise);

}   // namespace tapedeck
