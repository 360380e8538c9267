// Products of tensors by an equation. In: an equation and tensors. Out: the sum over the labels that the result does not have.
#include "tapedeck/ops/einsum.h"
