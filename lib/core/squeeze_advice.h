// Advice for errors about shapes that should be equal but differ by axes of extent 1: [n] and [n, 1].
#pragma once
#include <string>
#include <string_view>

#include "tapedeck/shape.h"

namespace tapedeck {

struct NamedShape {
  std::string_view name;
  Shape shape;
};

/// "use squeeze(predictions, 1)" if the shapes are then equal, else `otherwise`.
std::string squeeze_advice(NamedShape a, NamedShape b, std::string_view otherwise);

}   // namespace tapedeck
