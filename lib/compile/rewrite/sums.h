// Sums of many terms, as additions that groups can compute.
#pragma once
#include "compile/ir/program.h"

namespace tapedeck::compiled {

/// The same program, in which sums whose terms are all computed in one pass are additions of two terms, each
/// as soon as these are there.
Program with_sums_of_two(Program p);

}   // namespace tapedeck::compiled
