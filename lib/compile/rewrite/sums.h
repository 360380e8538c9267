// Rewrites sums of many terms to additions that groups can compute.
#pragma once
#include "compile/ir/program.h"

namespace tapedeck::compiled {

/// Returns an equivalent program in which a sum whose terms can all be computed in one group becomes
/// additions of two terms, each placed as soon as its terms are defined.
Program with_sums_of_two(Program p);

}   // namespace tapedeck::compiled
