// |z| of complex numbers, used by abs.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck {

Tensor complex_abs(const Tensor& z);

}   // namespace tapedeck
