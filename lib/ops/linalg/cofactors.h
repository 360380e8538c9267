// The matrix of cofactors, which is the gradient of a determinant, and its own derivative.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck {

/// The matrices of cofactors of square x, whose determinants are y; not recorded as a function of x.
Tensor cofactors_of(const Tensor& x, const Tensor& y);
/// The derivative of the cofactors at x, whose determinants are y, in direction e, which may have stacking
/// axes. It is symmetric, made of ops, and holds for matrices of any rank.
Tensor change_of_cofactors(const Tensor& x, const Tensor& y, const Tensor& e);

}   // namespace tapedeck
