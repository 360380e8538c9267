// The attributes of einsum.
#pragma once
#include <string>

namespace tapedeck {

/// One character for each axis: its letter or, for an axis that "..." covers, its distance from the end of
/// those axes, from 1 on.
using Labels = std::string;

// Of one operand or of two. A label occurs at most once in each operand and in the output.
struct EinsumAttrs {
  Labels a, b, output;
};

}   // namespace tapedeck
