// Sums of products of matrices, each added where the sum is.
#pragma once
#include "program/program.h"

namespace tapedeck::program {

/// Replaces each add_n whose terms, but for the first, are products of matrices that nothing else reads: each
/// of these is added to the sum as it is computed, so that neither needs memory of its own.
void add_products(Program& p);

}   // namespace tapedeck::program
