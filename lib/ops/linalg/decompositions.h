// The attributes of the decompositions.
#pragma once

namespace tapedeck {

struct Full {
  bool full;
};
struct Cutoff {
  double rcond;
};
struct Ridge {
  double l2;
};

}   // namespace tapedeck
