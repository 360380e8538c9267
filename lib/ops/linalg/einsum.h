// The attributes of einsum.
#pragma once
#include <string>

namespace tapedeck {

/// One character for each axis: its letter or, for an axis that "..." covers, its position from the end of
/// these axes, counted from 1.
using Labels = std::string;

// For one operand or two. A label occurs at most once in each operand and in the output.
struct EinsumAttrs {
  Labels a, b, output;
};

}   // namespace tapedeck
