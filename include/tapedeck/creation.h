// Tensors of given values; include tapedeck/tensor.h, which has the Tensor, too. Those of one's own numbers
// are made by tensor (tensor.h): tensor({{1.0, 2.0}, {3.0, 4.0}}) is f32[2,2], tensor(values, shape) takes a
// std::vector or std::span. The shape comes first, the dtype last.
#pragma once
#include "tapedeck/shape.h"

namespace tapedeck {

class Tensor;

/// `value` in every element, converted to the dtype. Throws OutOfMemory where there is no memory.
TAPEDECK_EXPORT Tensor full(const Shape& shape, double value, DType dtype = default_dtype());
/// 0 in every element.
TAPEDECK_EXPORT Tensor zeros(const Shape& shape, DType dtype = default_dtype());
/// 1 in every element.
TAPEDECK_EXPORT Tensor ones(const Shape& shape, DType dtype = default_dtype());
/// `value` repeated, in x's shape and dtype.
TAPEDECK_EXPORT Tensor full_like(const Tensor& x, double value);
/// start, start + step, …, excluding stop; of one number n the integers 0 to n - 1. Throws ArgumentError if
/// step is zero or not finite.
TAPEDECK_EXPORT Tensor arange(double start, double stop, double step = 1, DType dtype = default_dtype());
TAPEDECK_EXPORT Tensor arange(double start, double stop, DType dtype);
TAPEDECK_EXPORT Tensor arange(std::int64_t n, DType dtype = DType::i64);
/// `count` evenly spaced values from start to stop, both included. Throws ArgumentError if count is negative.
TAPEDECK_EXPORT Tensor linspace(double start, double stop, std::int64_t count, DType dtype = default_dtype());
/// An n × n or n × m matrix with ones on the diagonal.
TAPEDECK_EXPORT Tensor eye(std::int64_t n, DType dtype = default_dtype());
TAPEDECK_EXPORT Tensor eye(std::int64_t n, std::int64_t m, DType dtype = default_dtype());

}   // namespace tapedeck
