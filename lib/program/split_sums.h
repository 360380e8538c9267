// Sums of many terms as additions of two.
#pragma once
#include "program/program.h"

namespace tapedeck::program {

/// Replaces each add_n whose terms are computed in groups by additions in its order, each of which comes as
/// soon as its term is there: the terms need no memory. Needs find_passes before it, and again after it.
void split_sums(Program& p);

}   // namespace tapedeck::program
