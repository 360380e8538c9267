// Crops and projective transforms of images. Each pixel of a frame samples an image at some position.
// Sampling is linear in the images; its adjoint adds the pixels of frames to the images where they were
// sampled.
#include "ops/image/crop.h"

#include "core/format.h"
#include "kernels/image/image_sample.h"
#include "kernels/layout/index_check.h"
#include "op/stacked_shapes.h"
#include "ops/nn/window.h"
#include "ops/pull_back_by_ops.h"
#include "tapedeck/ops.h"

namespace tapedeck {
namespace {

FrameAttrs frames_of(const Tensor& x, HeightWidth size, Interpolation method, double outside) {
  return {x.shape()[0], x.shape()[1], x.shape()[2], size, method, outside};
}

// Checks that input 0 is [..., from, channels]; returns its spec with the extents `to` instead.
Spec with_frames(const Call& c, const Shape& from, const Shape& to) {
  const Tensor& x = c.x[0];
  require_floating(c, 0);
  if (x.dtype() != c.x[1].dtype()) c.throw_dtype_error("dtypes differ");
  if (x.ndim() < 4 || Shape(x.shape().dims().subspan(static_cast<std::size_t>(x.ndim() - 4), 3)) != from)
    c.throw_shape_error(fmt::format("{} must have extents {} and channels", c.op.args[0], from));
  Shape y = front_of(x, 4);
  for (const std::int64_t d : to)
    y.push_back(d);
  y.push_back(channels_of(x));
  return {x.dtype(), y};
}
Shape image_extents(const FrameAttrs& a) { return {a.images, a.height, a.width}; }
Shape frame_extents(const FrameAttrs& a, std::int64_t frames) {
  return {frames, a.size.height, a.size.width};
}

Spec infer_boxes(const Call& c, bool adjoint) {
  const auto& a = c.attrs<FrameAttrs>();
  const Tensor &boxes = c.x[1], &indices = c.x[2];
  if (boxes.ndim() != 2 || boxes.shape()[1] != 4 || indices.shape() != Shape{boxes.shape()[0]})
    c.throw_shape_error("boxes must be [n,4] and box_indices [n]");
  require_indices(c, 2);
  const Shape images = image_extents(a), frames = frame_extents(a, boxes.shape()[0]);
  return adjoint ? with_frames(c, frames, images) : with_frames(c, images, frames);
}
void check_indices(const Call& c) {
  const std::int64_t images = c.attrs<FrameAttrs>().images;
  if (const auto o = kernels::first_outside(c.x[2], images))
    throw_error<ShapeError>("{}: index {} at {} of box_indices is out of range for {} images", c.op.name,
                            o->index, o->position, images);
}

Spec infer_transformed(const Call& c, bool adjoint) {
  const auto& a = c.attrs<FrameAttrs>();
  const Shape& t = c.x[1].shape();
  if (t != Shape{8} && t != Shape{1, 8} && t != Shape{a.images, 8})
    throw_error<ShapeError>("{}: transforms are not [8] or [{},8]: they are {}", c.op.name, a.images,
                            c.x[1].spec());
  const Shape images = image_extents(a), frames = frame_extents(a, a.images);
  return adjoint ? with_frames(c, frames, images) : with_frames(c, images, frames);
}

// Images as rows of channels, read at integer positions [n, rows, columns]; 0 outside.
class Pixels {
 public:
  Pixels(const Tensor& x, const Tensor& image)
      : rows_(reshape(x, {x.shape()[0] * x.shape()[1] * x.shape()[2], x.shape()[3]})),
        first_(reshape(astype(image, DType::i64) * (x.shape()[1] * x.shape()[2]), {image.size(), 1, 1})),
        height_(x.shape()[1]),
        width_(x.shape()[2]) {}

  Tensor inside(const Tensor& y, const Tensor& x) const {
    return logical_and(logical_and(y >= 0, y <= static_cast<double>(height_ - 1)),
                       logical_and(x >= 0, x <= static_cast<double>(width_ - 1)));
  }
  Tensor at(const Tensor& y, const Tensor& x) const {
    const Tensor known = inside(y, x);
    const auto index = [&](const Tensor& t) { return astype(where(known, t, 0), DType::i64); };
    return where(expand_dims(known, -1), gather(rows_, first_ + index(y) * width_ + index(x)), 0);
  }

 private:
  Tensor rows_, first_;   // first_[i, 0, 0]: the first row of the image that frame i samples
  std::int64_t height_, width_;
};

// `count` equidistant positions from a to b, times `last`; the middle if count is 1. Computed in f64 and
// rounded as in the kernel, so that both read the same pixels.
struct CropPositions {
  Tensor of_a, of_b, at;   // at = of_a · a + of_b · b

  CropPositions(const Tensor& low, const Tensor& high, std::int64_t count, std::int64_t last) {
    const Tensor a = astype(low, DType::f64), b = astype(high, DType::f64);
    const auto scale = static_cast<double>(last);
    if (count == 1) {
      of_a = of_b = full({1}, 0.5 * scale, low.dtype());
      at = 0.5 * (a + b) * scale;
    } else {
      const Tensor steps = arange(0, static_cast<double>(count), 1, DType::f64);
      const auto spaces = static_cast<double>(count - 1);
      at = where(equal(steps, spaces), b * scale, a * scale + (b - a) * scale * steps / spaces);
      of_b = astype(steps * scale / spaces, low.dtype());
      of_a = scale - of_b;
    }
  }
};

// The gradient with respect to boxes. Between neighbouring pixels a b in one row and c d in the next, at
// distances `down` and `right` from a, the derivative is (1 - right) (c - a) + right (d - b) in y and (1 -
// down) (b - a) + down (d - c) in x. At an integer position both neighbours are the pixel itself, so that
// derivative is 0.
Tensor box_gradient(const FrameAttrs& a, const Tensor& x, const Tensor& boxes, const Tensor& indices,
                    const Tensor& dy) {
  if (x.size() == 0) return zeros(behind_extra(dy, x.ndim(), boxes.shape()), boxes.dtype());
  if (x.ndim() > 4) {   // leading axes: more images; all boxes apply to each
    const std::int64_t further = front_of(x, 4).size(), n = boxes.shape()[0];
    const Tensor first = expand_dims(arange(further) * a.images, 1);
    const Shape front(dy.shape().dims().first(static_cast<std::size_t>(dy.ndim() - x.ndim())));
    const auto behind_front = [&](std::initializer_list<std::int64_t> extents) {
      Shape shape = front;
      for (const std::int64_t d : extents)
        shape.push_back(d);
      return shape;
    };
    const Tensor g =
        box_gradient(a, reshape(x, {further * a.images, a.height, a.width, channels_of(x)}),
                     tile(boxes, {further, 1}), reshape(first + astype(indices, DType::i64), {further * n}),
                     reshape(dy, behind_front({further * n, a.size.height, a.size.width, channels_of(x)})));
    return sum(reshape(g, behind_front({further, n, 4})), -3);
  }
  const std::vector<Tensor> corner = split(boxes, 4, 1);   // y1, x1, y2, x2, each [n, 1]
  const CropPositions along_y(corner[0], corner[2], a.size.height, a.height - 1),
      along_x(corner[1], corner[3], a.size.width, a.width - 1);
  const Tensor y = expand_dims(along_y.at, 2), z = expand_dims(along_x.at, 1);
  const Pixels pixels(x, indices);
  const Tensor known = pixels.inside(y, z), safe_y = where(known, y, 0), safe_x = where(known, z, 0),
               top = floor(safe_y), left = floor(safe_x), bottom = ceil(safe_y), beyond = ceil(safe_x);
  const Tensor down = astype(expand_dims(safe_y - top, -1), x.dtype()),
               right = astype(expand_dims(safe_x - left, -1), x.dtype());
  const Tensor p = pixels.at(top, left), q = pixels.at(top, beyond), r = pixels.at(bottom, left),
               s = pixels.at(bottom, beyond), bend = p - q - r + s;
  const auto at_positions = [&](const Tensor& slope, int other_axis) {
    return sum(where(known, sum(dy * slope, -1), 0), other_axis);   // [..., n, positions]
  };
  const Tensor of_y = at_positions(r - p + bend * right, -1), of_x = at_positions(q - p + bend * down, -2);
  return stack({sum(of_y * along_y.of_a, -1), sum(of_x * along_x.of_a, -1), sum(of_y * along_y.of_b, -1),
                sum(of_x * along_x.of_b, -1)},
               -1);
}

Tensor crops(const FrameAttrs& a, const Tensor& x, const Tensor& boxes, const Tensor& indices);
Tensor crops_adjoint(const FrameAttrs& a, const Tensor& dy, const Tensor& boxes, const Tensor& indices);
Tensor transformed(const FrameAttrs& a, const Tensor& x, const Tensor& transforms);
Tensor transformed_adjoint(const FrameAttrs& a, const Tensor& dy, const Tensor& transforms);

constexpr Op kCropAndResize = {
    .name = "crop_and_resize",
    .doc =
        "Crops of images, resized to one size. Boxes are y1, x1, y2, x2 as fractions of height - 1 and "
        "width - 1, sampled bilinearly or at the nearest pixels.",
    .tensorflow = "CropAndResize",
    .args = {"x", "boxes", "box_indices"},
    .infer = [](const Call& c) { return infer_boxes(c, false); },
    .forward =
        [](const Call& c, std::span<Tensor> y) {
          check_indices(c);
          kernels::sample_boxes(c.attrs<FrameAttrs>().of(c.x[0], c.x[2].size()), c.x[0], c.x[1], c.x[2],
                                y[0]);
        },
    .rule = Rule::custom({.x = 0b111},
                         [](const Call& c, std::span<Gradient> dys, std::span<Gradient> dx) {
                           const auto& a = c.attrs<FrameAttrs>();
                           const Tensor dy = std::move(dys[0]).dense();
                           if (c.needs_gradient(0)) dx[0] = crops_adjoint(a.linear(), dy, c.x[1], c.x[2]);
                           if (c.needs_gradient(1) && a.method == Interpolation::bilinear)
                             dx[1] = box_gradient(a, c.x[0], c.x[1], c.x[2], dy);
                         }),
};

constexpr Op kCropAndResizeAdjoint = {
    .name = "crop_and_resize_adjoint",
    .doc =
        "The adjoint of crop_and_resize with respect to its images: the pixels of the crops dy are added "
        "to the images where they were sampled.",
    .tensorflow = "CropAndResizeGradImage",
    .args = {"dy", "boxes", "box_indices"},
    .infer = [](const Call& c) { return infer_boxes(c, true); },
    .forward =
        [](const Call& c, std::span<Tensor> y) {
          check_indices(c);
          kernels::sample_boxes_adjoint(c.attrs<FrameAttrs>().of(c.x[0], c.x[2].size()), c.x[0], c.x[1],
                                        c.x[2], y[0]);
        },
    .rule = unstacked(Rule::custom({.x = 0b111},
                                   [](const Call& c, std::span<Gradient> dys, std::span<Gradient> dx) {
                                     const auto& a = c.attrs<FrameAttrs>();
                                     const Tensor v = std::move(dys[0]).dense();
                                     if (c.needs_gradient(0)) dx[0] = crops(a, v, c.x[1], c.x[2]);
                                     if (c.needs_gradient(1) && a.method == Interpolation::bilinear)
                                       dx[1] = box_gradient(a, v, c.x[1], c.x[2], c.x[0]);
                                   })),
};

constexpr Op kProjectiveTransform = {
    .name = "projective_transform",
    .doc =
        "Images warped by a projective transform, sampled bilinearly or at the nearest pixels; no "
        "gradient with respect to the transform.",
    .tensorflow = "ImageProjectiveTransformV2",
    .args = {"x", "transforms"},
    .infer = [](const Call& c) { return infer_transformed(c, false); },
    .forward =
        [](const Call& c, std::span<Tensor> y) {
          const auto& a = c.attrs<FrameAttrs>();
          kernels::sample_transformed(a.of(c.x[0], a.images), c.x[0], c.x[1], y[0]);
        },
    .rule = Rule::custom(
        {.x = 0b10},
        [](const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
          dx[0] = transformed_adjoint(c.attrs<FrameAttrs>().linear(), std::move(dy[0]).dense(), c.x[1]);
        },
        [](const Call& c, Refs dx, std::span<Tensor> dy) {
          if (dx[0].defined()) dy[0] = transformed(c.attrs<FrameAttrs>().linear(), dx[0], c.x[1]);
        }),
};

constexpr Op kProjectiveTransformAdjoint = {
    .name = "projective_transform_adjoint",
    .doc = "The adjoint of projective_transform with respect to its images.",
    .args = {"dy", "transforms"},
    .infer = [](const Call& c) { return infer_transformed(c, true); },
    .forward =
        [](const Call& c, std::span<Tensor> y) {
          const auto& a = c.attrs<FrameAttrs>();
          kernels::sample_transformed_adjoint(a.of(c.x[0], a.images), c.x[0], c.x[1], y[0]);
        },
    .rule = Rule::linear(
        [](const Call& c, const Tensor& v) { return transformed(c.attrs<FrameAttrs>(), v, c.x[1]); },
        {.x = 0b10}),
};

constexpr const Op* crop_table[] = {&kCropAndResize, &kCropAndResizeAdjoint, &kProjectiveTransform,
                                    &kProjectiveTransformAdjoint};

Tensor crops(const FrameAttrs& a, const Tensor& x, const Tensor& boxes, const Tensor& indices) {
  return kCropAndResize(x, boxes, indices, a);
}
Tensor crops_adjoint(const FrameAttrs& a, const Tensor& dy, const Tensor& boxes, const Tensor& indices) {
  return kCropAndResizeAdjoint(dy, boxes, indices, a);
}
Tensor transformed(const FrameAttrs& a, const Tensor& x, const Tensor& transforms) {
  return kProjectiveTransform(x, transforms, a);
}
Tensor transformed_adjoint(const FrameAttrs& a, const Tensor& dy, const Tensor& transforms) {
  return kProjectiveTransformAdjoint(dy, transforms, a);
}

void require_batch(std::string_view name, const Tensor& x, HeightWidth size) {
  if (x.ndim() != 4)
    throw_error<ShapeError>("{}: x needs the axes batch, height, width and channels: x is {}", name,
                            x.spec());
  if (std::min(x.shape()[1], x.shape()[2]) < 1)
    throw_error<ShapeError>("{}: the images are empty: x is {}", name, x.spec());
  if (std::min(size.height, size.width) < 1 || std::max(size.height, size.width) > kMostCells)
    throw_error<ArgumentError>("{}: size is {}×{}; use 1..{}", name, size.height, size.width, kMostCells);
}

}   // namespace

Tensor crop_and_resize(const Tensor& x, const Tensor& boxes, const Tensor& box_indices, HeightWidth size,
                       const CropOptions& o) {
  require_batch("crop_and_resize", x, size);
  return crops(frames_of(x, size, o.method, o.outside), x, boxes, box_indices);
}
Tensor projective_transform(const Tensor& x, const Tensor& transforms, HeightWidth size,
                            const ProjectiveOptions& o) {
  require_batch("projective_transform", x, size);
  return transformed(frames_of(x, size, o.method, o.outside), x, transforms);
}

std::span<const Op* const> crop_ops() { return crop_table; }

}   // namespace tapedeck
