// The number of steps of a loop over the first axes of tensors.
#pragma once
#include <optional>

#include "tapedeck/tensor.h"

namespace tapedeck {

/// Returns the extent of the first axis of all xs, or `length` if xs is empty. Throws ArgumentError for
/// undefined tensors, a negative length, or neither xs nor length, and ShapeError if extents differ.
std::int64_t steps_of(std::string_view name, std::span<const Tensor> xs, std::optional<std::int64_t> length);

}   // namespace tapedeck
