// Products of all elements but one: the partials of a product.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck {

/// The product of the other elements along the last axis: yᵢ = Πⱼ≠ᵢ xⱼ.
Tensor prod_of_others(const Tensor& x);

}   // namespace tapedeck
