// Copies between a matrix and tensors of its columns.
#pragma once
#include <cstdint>
#include <span>

#include "tapedeck/refs.h"
#include "tapedeck/tensor.h"

namespace tapedeck::kernels {

/// Copies the columns of a matrix, as many to a row as there are tensors, to tensors of their own, and back.
void copy_to_columns(const Tensor& matrix, std::span<Tensor> columns);
void copy_from_columns(Refs columns, Tensor& matrix);

}   // namespace tapedeck::kernels
