// Rewrites sums of matrix products to accumulating products.
#pragma once
#include "compile/ir/program.h"

namespace tapedeck::compiled {

/// Returns an equivalent program in which a product that is a term of a sum becomes a ProductSum, which adds
/// the product to the sum of the terms before it.
Program with_product_sums(Program p);

}   // namespace tapedeck::compiled
