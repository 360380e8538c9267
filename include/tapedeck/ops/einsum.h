// Products of tensors by an equation.
#pragma once
#include <span>
#include <string_view>

#include "tapedeck/operand.h"

namespace tapedeck {

/// Sums of products by labels of axes: einsum("ij,jk->ik", {a, b}) is a matrix product. Labels are letters;
/// one that stands twice in an operand takes its diagonal; "..." stands for axes that broadcast. Labels that
/// the output does not name are summed over. Without "->" the output has the broadcast axes, then the labels
/// that stand once, in alphabetical order. More than two operands are multiplied from left to right. Throws
/// ArgumentError for what is not an equation, ShapeError for operands that do not fit it. Products are those
/// of matmul where there is something to sum: f32 and f64; elsewhere those of mul.
TAPEDECK_EXPORT Tensor einsum(std::string_view equation, std::span<const Tensor> operands);
inline Tensor einsum(std::string_view equation, std::initializer_list<Tensor> operands) {
  return einsum(equation, std::span<const Tensor>(operands.begin(), operands.size()));
}

/// The product summed over the axes of a and those of b, pair by pair: the result has the other axes of a,
/// then those of b.
TAPEDECK_EXPORT Tensor tensordot(const Tensor& a, const Tensor& b, const std::vector<int>& axes_of_a,
                                 const std::vector<int>& axes_of_b);
/// The same over the last `axes` of a and the first of b.
TAPEDECK_EXPORT Tensor tensordot(const Tensor& a, const Tensor& b, int axes = 2);
/// y[i, j] = a[i] b[j], of all elements in row-major order.
TAPEDECK_EXPORT Tensor outer(const Tensor& a, const Tensor& b);

}   // namespace tapedeck
