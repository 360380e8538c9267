// Windows over images [..., height, width, channels], for the tables of convolution, pooling and patches. The attributes of
// every op on windows are a Window2d; its "input" is the image that the window slides over.
#pragma once
#include "kernels/window.h"
#include "ops/infer.h"
#include "tapedeck/ops/conv.h"

namespace tapedeck {

using kernels::Window2d;

Window2d window_of(HeightWidth input, HeightWidth size, HeightWidth strides, HeightWidth dilation, const Padding& padding);

inline HeightWidth input_of(const Window2d& w) { return {w.rows.extent, w.columns.extent}; }
inline HeightWidth output_of(const Window2d& w) { return {w.rows.outputs, w.columns.outputs}; }
inline HeightWidth input_of(const Call& c) { return input_of(c.attrs<Window2d>()); }
inline HeightWidth output_of(const Call& c) { return output_of(c.attrs<Window2d>()); }

/// A window over volumes [..., depth, height, width, channels].
struct Window3d { kernels::WindowAxis planes; Window2d plane; };
Window3d window_of(DepthHeightWidth input, DepthHeightWidth size, DepthHeightWidth strides, DepthHeightWidth dilation, const Padding3d& padding);
inline DepthHeightWidth input_of(const Window3d& w) { return {w.planes.extent, w.plane.rows.extent, w.plane.columns.extent}; }
inline DepthHeightWidth output_of(const Window3d& w) { return {w.planes.outputs, w.plane.rows.outputs, w.plane.columns.outputs}; }
/// Its window over planes alone: over images whose rows are planes of that many pixels.
inline Window2d across_planes(const Window3d& w, std::int64_t pixels) { return {w.planes, {pixels, 1, 1, 1, 0, pixels}}; }

/// The shape of images.
Shape behind(Shape front, HeightWidth image, std::int64_t channels);
Shape behind(Shape front, DepthHeightWidth volume, std::int64_t channels);
/// The axes in front of an image's, or in front of the last `ndim`.
inline Shape front_of(const Tensor& x, int ndim = 3) { return Shape(x.shape().dims().first(static_cast<std::size_t>(x.ndim() - ndim))); }
inline std::int64_t channels_of(const Tensor& x) { return x.shape()[x.ndim() - 1]; }

// Each throws ShapeError or DTypeError, naming the op and its inputs.

/// Input i ends in these extents and channels.
void require_images(const Call& c, int i, HeightWidth extents, std::int64_t channels);
void require_volumes(const Call& c, int i, DepthHeightWidth extents, std::int64_t channels);
void require_rank(const Call& c, int i);
void require_volume_rank(const Call& c, int i);
void require_one_dtype(const Call& c);

/// Extents, numbers of cells and products of both are below 2^31 in the kernels.
inline constexpr std::int64_t kMostCells = std::numeric_limits<std::int32_t>::max();

// Each throws ArgumentError.

void check_numbers(const Op& op, std::string_view name, HeightWidth v);
void check_numbers(const Op& op, std::string_view name, DepthHeightWidth v);
/// Each less than these.
void check_padding(const Op& op, const Padding& p, HeightWidth most);
void check_padding(const Op& op, const Padding3d& p, DepthHeightWidth most);
/// The window over the images or volumes c.x[0]; of filters or of a pool, as `what` says. Throws ShapeError where it reaches over more than the padded ones.
Window2d checked_window(const Call& c, std::string_view what, HeightWidth size, HeightWidth strides, HeightWidth dilation, const Padding& padding);
Window3d checked_window(const Call& c, std::string_view what, DepthHeightWidth size, DepthHeightWidth strides, DepthHeightWidth dilation, const Padding3d& padding);

// Ops that others are made of.

/// The adjoint of conv2d in its images.
Tensor conv2d_input_gradient(const Window2d& w, const Tensor& dy, const Tensor& filters);
/// The adjoint of extract_image_patches.
Tensor image_patches_gradient(const Window2d& w, const Tensor& dy);

namespace samples {
inline OwnedAttrs window(HeightWidth input, HeightWidth size, HeightWidth strides = 1, const Padding& padding = Padding::valid, HeightWidth dilation = 1) {
  return Attrs(window_of(input, size, strides, dilation, padding));
}
inline OwnedAttrs window3d(DepthHeightWidth input, DepthHeightWidth size, DepthHeightWidth strides = 1, const Padding3d& padding = Padding::valid, DepthHeightWidth dilation = 1) {
  return Attrs(window_of(input, size, strides, dilation, padding));
}
}  // namespace samples

}  // namespace tapedeck
