// Tensor contractions. Mixed dtypes are promoted. Differentiable in all operands.
#pragma once
#include <span>
#include <string_view>

#include "tapedeck/axes.h"
#include "tapedeck/operand.h"

namespace tapedeck {

/// Sums of products over labeled axes: einsum("ij,jk->ik", {a, b}) is a matrix product. Labels are letters. A
/// label that occurs twice in one operand selects its diagonal; "..." stands for axes that broadcast; labels
/// missing from the output are summed over. Without "->" the output has the broadcast axes, then the labels
/// that occur once, in alphabetical order. More than two operands are multiplied from left to right. Throws
/// ArgumentError for an invalid equation, and ShapeError if operands do not match it. Contractions of
/// floating-point dtypes are computed by matmul, others by mul and sum, which throws DTypeError for i8, u8
/// and bool.
TAPEDECK_EXPORT Tensor einsum(std::string_view equation, std::span<const Tensor> operands);
inline Tensor einsum(std::string_view equation, std::initializer_list<Tensor> operands) {
  return einsum(equation, std::span<const Tensor>(operands.begin(), operands.size()));
}

/// Contracts axes_of_a[i] of a with axes_of_b[i] of b; {} contracts no axis. The result has the remaining
/// axes of a, then those of b. Throws ArgumentError if the lists differ in length or name an axis twice,
/// ShapeError if extents differ.
TAPEDECK_EXPORT Tensor tensordot(const Tensor& a, const Tensor& b, const Axes& axes_of_a,
                                 const Axes& axes_of_b);
/// Contracts the last `axes` axes of a with the first ones of b; with 0 axes, returns the outer product.
TAPEDECK_EXPORT Tensor tensordot(const Tensor& a, const Tensor& b, int axes = 2);
/// The outer product y[i, j] = a[i] b[j] of all elements in row-major order, [a.size, b.size].
TAPEDECK_EXPORT Tensor outer(const Tensor& a, const Tensor& b);

}   // namespace tapedeck
