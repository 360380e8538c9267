// Identity functions that check or print their argument, or block its gradient.
#pragma once
#include <iosfwd>
#include <string_view>

#include "tapedeck/tensor.h"

namespace tapedeck {

/// Returns x; a gradient through it throws GradientError.
TAPEDECK_EXPORT Tensor prevent_gradient(const Tensor& x);
/// Returns x; throws ShapeError unless its shape matches `shape`, in which -1 matches any extent.
TAPEDECK_EXPORT Tensor ensure_shape(const Tensor& x, const Shape& shape);
/// Returns x; throws ArgumentError with `name` if an element is NaN or infinite. Gradients through it are
/// checked, too. f32, f64.
TAPEDECK_EXPORT Tensor check_numerics(const Tensor& x, std::string_view name);
/// Writes `text` and x to a stream and returns x.
TAPEDECK_EXPORT Tensor print(const Tensor& x, std::string_view text, std::ostream& out);
/// Writes to standard error.
TAPEDECK_EXPORT Tensor print(const Tensor& x, std::string_view text = {});
/// Throws ArgumentError with `text` unless all elements of `condition` (bool) are true.
TAPEDECK_EXPORT void assert_that(const Tensor& condition, std::string_view text);

}   // namespace tapedeck
