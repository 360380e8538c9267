// Sequences of which the first entries are turned around.
#pragma once
#include <span>

#include "tapedeck/tensor.h"

namespace tapedeck::kernels {

/// y = x with the first lengths[b] entries along one axis in the opposite order, for each entry b along
/// another axis. Axes count from 0.
void reverse_sequence(const Tensor& x, std::span<const std::int64_t> lengths, int sequence_axis,
                      int batch_axis, Tensor& y);

}   // namespace tapedeck::kernels
