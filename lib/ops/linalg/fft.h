// The attributes of the Fourier transforms.
#pragma once
#include <cstdint>

namespace tapedeck {

struct FftAttrs {
  int axes;
  bool inverse;
};
struct RealFftAttrs {
  int axes;
  std::int64_t n;   // extent of the last axis of the real tensor
};

}   // namespace tapedeck
