// The ops that dispatch, rules and tapes use, which are the only ones that lib/op and lib/tape may call.
// Their tables are in lib/ops; their documentation and default arguments are in tapedeck/ops. Factories such
// as zeros are not ops; they are in tapedeck/tensor.h.
#pragma once
#include <span>
#include <vector>

#include "tapedeck/axes.h"
#include "tapedeck/operand.h"

namespace tapedeck {

TAPEDECK_EXPORT Tensor add(Operand a, Operand b);
TAPEDECK_EXPORT Tensor sub(Operand a, Operand b);
TAPEDECK_EXPORT Tensor mul(Operand a, Operand b);
TAPEDECK_EXPORT Tensor div(Operand a, Operand b);
TAPEDECK_EXPORT Tensor neg(Operand x);
TAPEDECK_EXPORT Tensor conj(const Tensor& z);
TAPEDECK_EXPORT Tensor astype(const Tensor& x, DType dtype);

TAPEDECK_EXPORT Tensor add_n(std::vector<Tensor>&& x);
TAPEDECK_EXPORT Tensor sum(const Tensor& x, const Axes& axes, ReduceOptions options);

TAPEDECK_EXPORT Tensor identity(const Tensor& x);
TAPEDECK_EXPORT Tensor reshape(const Tensor& x, const Shape& shape);
TAPEDECK_EXPORT Tensor broadcast_to(const Tensor& x, const Shape& shape);
TAPEDECK_EXPORT Tensor concat(std::span<const Tensor> x, int axis);
TAPEDECK_EXPORT Tensor stack(std::span<const Tensor> x, int axis);
TAPEDECK_EXPORT std::vector<Tensor> unstack(const Tensor& x, int axis);

}   // namespace tapedeck
