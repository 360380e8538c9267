// Search for numbers that are NaN or infinite.
#pragma once
#include <optional>

#include "tapedeck/tensor.h"

namespace tapedeck::kernels {

/// A number that is NaN or infinite, and its flat position.
struct NotFinite {
  double number;
  std::int64_t position;
};
/// The first NaN or infinity in x, which is f32 or f64.
std::optional<NotFinite> first_not_finite(const Tensor& x);

}   // namespace tapedeck::kernels
