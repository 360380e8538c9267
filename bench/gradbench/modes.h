// Shared by particle and saddle: a function for each pair of modes of differentiation, outer and inner.
#pragma once
#include "../scalar_programs.h"
#include "suite.h"

namespace gradbench {

/// The form that calls run<outer, inner>(out), in the order of the evals' functions: rr, ff, fr, rf.
template <class F> Form in_modes(std::string name, F run) {
  using programs::Mode;
  constexpr Mode r = Mode::reverse, f = Mode::forward;
  return {std::move(name), [run] {
            return std::vector<Work>{work([run](Values& out) { run.template operator()<r, r>(out); }),
                                     work([run](Values& out) { run.template operator()<f, f>(out); }),
                                     work([run](Values& out) { run.template operator()<f, r>(out); }),
                                     work([run](Values& out) { run.template operator()<r, f>(out); })};
          }};
}

}   // namespace gradbench
