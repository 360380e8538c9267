// Functions that create tensors with regular values; include tapedeck/tensor.h, which also defines Tensor. To
// create a tensor from given numbers, use tensor() of tensor.h: tensor({{1.0, 2.0}, {3.0, 4.0}}) is f32[2,2],
// and tensor(values, shape) accepts a std::vector or std::span. The shape is the first argument, the dtype
// the last.
#pragma once
#include "tapedeck/shape.h"

namespace tapedeck {

class Tensor;

/// A tensor with `value`, converted to the dtype, in every element. Throws OutOfMemory if memory is
/// exhausted.
TAPEDECK_EXPORT Tensor full(const Shape& shape, double value, DType dtype = default_dtype());
/// A tensor of zeros.
TAPEDECK_EXPORT Tensor zeros(const Shape& shape, DType dtype = default_dtype());
/// A tensor of ones.
TAPEDECK_EXPORT Tensor ones(const Shape& shape, DType dtype = default_dtype());
/// A tensor of x's shape and dtype with `value` in every element.
TAPEDECK_EXPORT Tensor full_like(const Tensor& x, double value);
/// The numbers start, start + step, …, excluding stop; for a single argument n, the integers 0 to n - 1.
/// Throws ArgumentError if step is zero or not finite.
TAPEDECK_EXPORT Tensor arange(double start, double stop, double step = 1, DType dtype = default_dtype());
TAPEDECK_EXPORT Tensor arange(double start, double stop, DType dtype);
TAPEDECK_EXPORT Tensor arange(std::int64_t n, DType dtype = DType::i64);
/// `count` evenly spaced values from start to stop, both included. Throws ArgumentError if count is negative.
TAPEDECK_EXPORT Tensor linspace(double start, double stop, std::int64_t count, DType dtype = default_dtype());
/// An n × n or n × m matrix with ones on the diagonal.
TAPEDECK_EXPORT Tensor eye(std::int64_t n, DType dtype = default_dtype());
TAPEDECK_EXPORT Tensor eye(std::int64_t n, std::int64_t m, DType dtype = default_dtype());

}   // namespace tapedeck
