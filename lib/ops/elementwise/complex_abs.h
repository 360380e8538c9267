// |z| of complex numbers, for abs.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck {

Tensor complex_abs(const Tensor& z);

}   // namespace tapedeck
