// To see what a tape holds.
#pragma once
#include <string>

#include "tapedeck/gradient_tape.h"

namespace tapedeck {

/// What the tape has recorded, as a graph in Graphviz's DOT language: `dot -Tsvg` draws it. A box is an op, with the specs of
/// its outputs and the bytes of tensors that it keeps for its gradient; results, which no further op takes, have a double line.
/// Watched tensors and variables are ellipses. Reads of a variable are not shown, nor are inputs that the tape does not
/// follow. The same recording gives the same text. Throws GradientError where gradient() has used up the tape.
TAPEDECK_EXPORT std::string to_dot(const GradientTape& tape);

}  // namespace tapedeck
