// The attributes of the solvers.
#pragma once

namespace tapedeck {

struct Transposition {
  bool transposed;
};

}   // namespace tapedeck
