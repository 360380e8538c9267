// Elements moved. In: tensors and where their elements go. Out: the same elements elsewhere, or as another type.
#pragma once
#include <span>

#include "tapedeck/tensor.h"

namespace tapedeck::kernels {

/// Fills y of shape x.shape[perm[0]], x.shape[perm[1]], …
void transpose(const Tensor& x, std::span<const std::int8_t> perm, Tensor& y);
/// Fills y with x, repeated along the axes that x does not have or where its extent is 1.
void broadcast(const Tensor& x, Tensor& y);
/// Fills y with the part of x that starts at begin.
void copy_part(const Tensor& x, const Shape& begin, Tensor& y);
/// Writes x over the part of y that starts at begin.
void copy_into(const Tensor& x, Tensor& y, const Shape& begin);
/// Fills y with x converted, as convert() does it.
void cast(const Tensor& x, Tensor& y);

}  // namespace tapedeck::kernels
