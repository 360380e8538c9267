// The files of this folder are compiled twice: for speed, and with the suite's compiler flags and formulas
// (GRADBENCH_SUITE), to which published figures are relative.
#pragma once
#include "../suite.h"

#ifdef GRADBENCH_SUITE
#define GRADBENCH_KIND suite
#else
#define GRADBENCH_KIND manual
#endif

namespace gradbench::GRADBENCH_KIND {

#ifdef GRADBENCH_SUITE
inline constexpr bool kSuite = true;
#else
inline constexpr bool kSuite = false;
#endif

}   // namespace gradbench::GRADBENCH_KIND
