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
  std::int64_t n;   // n: numbers along the last axis of what is real
};

}   // namespace tapedeck
