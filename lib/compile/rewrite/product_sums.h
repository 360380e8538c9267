// Sums of products of matrices, in one node each.
#pragma once
#include "compile/ir/program.h"

namespace tapedeck::compiled {

/// The same program, in which a product that is a term of a sum is added to the terms before it.
Program with_product_sums(Program p);

}   // namespace tapedeck::compiled
