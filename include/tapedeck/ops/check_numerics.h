// Values that pass through: checked, shown, or kept from being differentiated.
#pragma once
#include <iosfwd>
#include <string_view>

#include "tapedeck/tensor.h"

namespace tapedeck {

/// x, which must not be differentiated: a gradient through it throws GradientError.
TAPEDECK_EXPORT Tensor prevent_gradient(const Tensor& x);
/// x; throws ShapeError unless its shape is this one, where -1 stands for any extent.
TAPEDECK_EXPORT Tensor ensure_shape(const Tensor& x, const Shape& shape);
/// x; throws ArgumentError, with this name, where an element is NaN or infinite. Gradients that come back are
/// checked, too. f32, f64.
TAPEDECK_EXPORT Tensor check_numerics(const Tensor& x, std::string_view name);
/// x, written to a stream behind a text.
TAPEDECK_EXPORT Tensor print(const Tensor& x, std::string_view text, std::ostream& out);
/// The same to standard error.
TAPEDECK_EXPORT Tensor print(const Tensor& x, std::string_view text = {});
/// Throws ArgumentError with this text unless all elements of condition (bool) hold.
TAPEDECK_EXPORT void assert_that(const Tensor& condition, std::string_view text);

}   // namespace tapedeck
