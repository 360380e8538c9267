// The cofactor matrix, which is the gradient of a determinant, and its derivative.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck {

/// The cofactor matrices of square matrices x, whose determinants are y; not recorded as a function of x.
Tensor cofactors_of(const Tensor& x, const Tensor& y);
/// The derivative of the cofactors at x, whose determinants are y, in direction e, which may have stacking
/// axes. It is symmetric as a linear map, is computed by ops, and is correct for matrices of any rank.
Tensor change_of_cofactors(const Tensor& x, const Tensor& y, const Tensor& e);

}   // namespace tapedeck
