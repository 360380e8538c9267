// The checks of a random program.
#pragma once
#include <set>

#include "programs.h"

namespace tapedeck::fuzz {

struct Failure {
  std::string check, what;
};
struct Verdict {
  std::optional<Failure> failure = {};
  bool rough = false;      // differences do not converge
  bool singular = false;   // derivatives are too large, or not finite in f32
};
/// Differentiates the program in all ways, and compares.
Verdict check_program(const Program& p);

/// The ops of the library that programs have run so far.
const std::set<std::string, std::less<>>& ops_recorded();

}   // namespace tapedeck::fuzz
