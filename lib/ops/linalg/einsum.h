// The attributes of einsum.
#pragma once
#include <string>

namespace tapedeck {

/// A character for each axis: a letter, or for an axis that "..." stands for how far it is from the end of
/// these, from 1 on.
using Labels = std::string;

// Of one operand or of two; a label stands once in each, and in the output.
struct EinsumAttrs {
  Labels a, b, output;
};

}   // namespace tapedeck
