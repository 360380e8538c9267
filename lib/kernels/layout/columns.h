// Copies between a matrix and tensors of its columns.
#pragma once
#include <cstdint>
#include <span>

#include "tapedeck/refs.h"
#include "tapedeck/tensor.h"

namespace tapedeck::kernels {

/// Copies each column of a matrix to a tensor, and back. The matrix has as many columns as there are tensors.
void copy_to_columns(const Tensor& matrix, std::span<Tensor> columns);
void copy_from_columns(Refs columns, Tensor& matrix);

}   // namespace tapedeck::kernels
