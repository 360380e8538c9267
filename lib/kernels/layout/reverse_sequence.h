// Reverses the first entries of each sequence.
#pragma once
#include <span>

#include "tapedeck/tensor.h"

namespace tapedeck::kernels {

/// y = x with the first lengths[b] entries along sequence_axis reversed, for each entry b of batch_axis. Axes
/// count from 0.
void reverse_sequence(const Tensor& x, std::span<const std::int64_t> lengths, int sequence_axis,
                      int batch_axis, Tensor& y);

}   // namespace tapedeck::kernels
