// Resizing. In: images [..., height, width, channels]. Out: images of another size. Every method is linear
// and separable into rows and columns, so a single op along one axis implements them all, with a table of
// weights for each method. Its adjoint is the same op with the transposed table.
#include "tapedeck/ops/resize.h"

#include <cmath>
#include <memory>

#include "core/format.h"
#include "core/storage.h"
#include "kernels/image/resample.h"
#include "kernels/layout/strided_view.h"
#include "ops/image/resize.h"
#include "ops/nn/window.h"
#include "tapedeck/ops.h"

namespace tapedeck {
namespace {

Spec infer_resample(const Call& c) {
  const auto& [table, adjoint, axis] = c.attrs<ResampleAttrs>();
  require_floating(c, 0);
  Spec y = c.x[0].spec();
  const int at = y.shape.ndim() + axis;
  if (at < 0 || y.shape[at] != table->inputs)
    c.throw_shape_error(fmt::format("axis {} must have extent {}", axis, table->inputs));
  y.shape.set(at, table->outputs());
  return y;
}

Spec infer_resize(const Call& c) {
  const auto& [rows, columns] = c.attrs<ResizeAttrs>();
  require_floating(c, 0);
  require_images(c, 0, {rows.table->inputs, columns.table->inputs},
                 c.x[0].ndim() < 3 ? 0 : channels_of(c.x[0]));
  return {c.x[0].dtype(),
          behind(front_of(c.x[0]), {rows.table->outputs(), columns.table->outputs()}, channels_of(c.x[0]))};
}
void run_resize(const Call& c, std::span<Tensor> y) { y[0] = c.attrs<ResizeAttrs>()(c.x[0]); }
constexpr Rule resize_rule() {
  return Rule::linear([](const Call& c, const Tensor& dy) { return c.attrs<ResizeAttrs>().adjoint(dy); });
}

constexpr Op kResample = {
    .name = "resample",
    .doc =
        "Weighted sums along an axis: y[o] = Σ w[o, i] x[i], with few weights for each o. All image "
        "resizing uses it.",
    .tensorflow = "ResizeNearestNeighborGrad ResizeBilinearGrad ResizeBicubicGrad ScaleAndTranslateGrad",
    .args = {"x"},
    .infer = infer_resample,
    .forward =
        [](const Call& c, std::span<Tensor> y) {
          const auto& a = c.attrs<ResampleAttrs>();
          const kernels::AxisView view(c.x[0].shape(), c.x[0].ndim() + a.axis);
          kernels::weighted_sums(*a.table, c.x[0], view.before, view.after, y[0]);
        },
    .rule = Rule::linear([](const Call& c, const Tensor& dy) {
      const auto& a = c.attrs<ResampleAttrs>();
      return resample({a.adjoint, a.table, a.axis}, dy);
    }),
};

constexpr Op kResizeNearest = {
    .name = "resize_nearest",
    .doc = "Images resized by nearest-neighbor interpolation.",
    .tensorflow = "ResizeNearestNeighbor",
    .args = {"x"},
    .infer = infer_resize,
    .forward = {run_resize, Outputs::by_kernel},
    .rule = resize_rule(),
};

constexpr Op kResizeBilinear = {
    .name = "resize_bilinear",
    .doc = "Images resized by bilinear interpolation between the four nearest pixels.",
    .tensorflow = "ResizeBilinear",
    .args = {"x"},
    .infer = infer_resize,
    .forward = {run_resize, Outputs::by_kernel},
    .rule = resize_rule(),
};

constexpr Op kResizeBicubic = {
    .name = "resize_bicubic",
    .doc = "Images resized by Keys' cubic convolution (1981) of the sixteen nearest pixels.",
    .tensorflow = "ResizeBicubic",
    .args = {"x"},
    .infer = infer_resize,
    .forward = {run_resize, Outputs::by_kernel},
    .rule = resize_rule(),
};

constexpr Op kScaleAndTranslate = {
    .name = "scale_and_translate",
    .doc =
        "Images scaled, then translated, in an output of a given size, with pixels weighted by their "
        "distance; 0 where the image does not reach.",
    .tensorflow = "ScaleAndTranslate",
    .args = {"x"},
    .infer = infer_resize,
    .forward = {run_resize, Outputs::by_kernel},
    .rule = resize_rule(),
};

constexpr const Op* resize_table[] = {&kResample, &kResizeNearest, &kResizeBilinear, &kResizeBicubic,
                                      &kScaleAndTranslate};

void require_size(std::string_view name, const Tensor& x, HeightWidth size) {
  if (x.ndim() < 3)
    throw_error<ShapeError>("{}: x needs the axes height, width and channels: x is {}", name, x.spec());
  if (std::min(x.shape()[x.ndim() - 3], x.shape()[x.ndim() - 2]) < 1)
    throw_error<ShapeError>("{}: the image is empty: x is {}", name, x.spec());
  if (std::min(size.height, size.width) < 1 || std::max(size.height, size.width) > kMostCells)
    throw_error<ArgumentError>("{}: size is {}×{}; use 1..{}", name, size.height, size.width, kMostCells);
}

HeightWidth extents_of(const Tensor& x) { return {x.shape()[x.ndim() - 3], x.shape()[x.ndim() - 2]}; }
// Builds no tables if x has no elements: its extents, and with them the tables, may be huge.
template <class F> Tensor resize(const Op& op, const Tensor& x, HeightWidth size, const F& attrs) {
  require_size(op.name, x, size);
  if (x.size()) return op(x, attrs());
  return without_elements(op, x, behind(front_of(x), {size.height, size.width}, channels_of(x)));
}
Tensor resize(const Op& op, Table table, const Tensor& x, HeightWidth size, Align align) {
  return resize(op, x, size, [&] { return resizing(table, extents_of(x), size, align); });
}

}   // namespace

Tensor resample(const ResampleAttrs& attrs, const Tensor& x) { return kResample(x, attrs); }

Tensor resize_nearest(const Tensor& x, HeightWidth size, Align align) {
  return resize(kResizeNearest, nearest_table, x, size, align);
}
Tensor resize_bilinear(const Tensor& x, HeightWidth size, Align align) {
  return resize(kResizeBilinear, linear_table, x, size, align);
}
Tensor resize_bicubic(const Tensor& x, HeightWidth size, Align align) {
  return resize(kResizeBicubic, cubic_table, x, size, align);
}

Tensor scale_and_translate(const Tensor& x, HeightWidth size, const ScaleAndTranslateOptions& o) {
  if (!(o.scale_y > 0 && o.scale_x > 0 && std::isfinite(o.scale_y) && std::isfinite(o.scale_x)))
    throw_error<ArgumentError>("scale_and_translate: scale is {}, {}; use positive ones", o.scale_y,
                               o.scale_x);
  if (!std::isfinite(o.translate_y) || !std::isfinite(o.translate_x))
    throw_error<ArgumentError>("scale_and_translate: translate is {}, {}; use finite numbers", o.translate_y,
                               o.translate_x);
  return resize(kScaleAndTranslate, x, size, [&] { return resizing(o, extents_of(x), size); });
}

std::span<const Op* const> resize_ops() { return resize_table; }

}   // namespace tapedeck
