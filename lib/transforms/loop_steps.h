// How many steps a loop over the first axes of tensors has.
#pragma once
#include <optional>

#include "tapedeck/tensor.h"

namespace tapedeck {

/// The extent of the first axes of xs, which must all be the same; `length` if there are no xs. Throws
/// ArgumentError for undefined tensors, a length below 0, or none, and ShapeError where extents differ.
std::int64_t steps_of(std::string_view name, std::span<const Tensor> xs, std::optional<std::int64_t> length);

}   // namespace tapedeck
