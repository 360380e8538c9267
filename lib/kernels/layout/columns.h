// Copies between a matrix and tensors of its columns.
#pragma once
#include <cstdint>
#include <span>

#include "tapedeck/refs.h"
#include "tapedeck/tensor.h"

namespace tapedeck::kernels {

/// Copies column k of a matrix to tensor k, for all columns; and back.
void copy_to_columns(const Tensor& matrix, std::span<Tensor> columns);
void copy_from_columns(Refs columns, Tensor& matrix);

}   // namespace tapedeck::kernels
