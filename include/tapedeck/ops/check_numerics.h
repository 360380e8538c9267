// Identity functions that check or print their argument, or block its gradient.
#pragma once
#include <iosfwd>
#include <string_view>

#include "tapedeck/tensor.h"

namespace tapedeck {

/// Returns x; differentiating the result throws GradientError.
TAPEDECK_EXPORT Tensor prevent_gradient(const Tensor& x);
/// Returns x; throws ShapeError unless its shape matches `shape`, in which -1 matches any extent. Gradients
/// pass unchanged.
TAPEDECK_EXPORT Tensor ensure_shape(const Tensor& x, const Shape& shape);
/// Returns x; throws ArgumentError, with `name` and the first such element, if an element is NaN or infinite.
/// Gradients are checked, too. Floating-point dtypes; others throw DTypeError.
TAPEDECK_EXPORT Tensor check_numerics(const Tensor& x, std::string_view name);
/// Writes `text`, x and a line break to a stream and returns x; gradients pass unchanged and are not printed.
TAPEDECK_EXPORT Tensor print(const Tensor& x, std::string_view text, std::ostream& out);
/// Writes to standard error instead.
TAPEDECK_EXPORT Tensor print(const Tensor& x, std::string_view text = {});
/// Throws ArgumentError with `text` unless all elements of `condition` are true, and DTypeError unless it is
/// bool.
TAPEDECK_EXPORT void assert_that(const Tensor& condition, std::string_view text);

}   // namespace tapedeck
