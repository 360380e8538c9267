// Patches: sliding windows over images and volumes. In: images. Out: one row for each window.
#include "core/format.h"
#include "core/storage.h"
#include "kernels/nn/conv.h"
#include "ops/nn/window.h"
#include "tapedeck/ops.h"

namespace tapedeck {
namespace {

kernels::Conv geometry(const Call& c, std::int64_t channels) {
  const auto& a = c.attrs<WindowAttrs>();
  return {a.window, front_of(c.x[0], a.axes + 1).size(), channels, 0};
}
Spec infer_patches(const Call& c) {
  const auto& a = c.attrs<WindowAttrs>();
  require_floating(c, 0);
  require_rank(c, 0, a.axes);
  require_images(c, 0, a.inputs(), channels_of(c.x[0]));
  return {c.x[0].dtype(), behind(front_of(c.x[0], a.axes + 1), a.outputs(),
                                 Shape{a.window.cells(), channels_of(c.x[0])}.size())};
}
Spec infer_patches_gradient(const Call& c) {
  const auto& a = c.attrs<WindowAttrs>();
  require_floating(c, 0);
  require_rank(c, 0, a.axes);
  if (channels_of(c.x[0]) % a.window.cells())
    c.throw_shape_error(fmt::format("the last axis does not hold windows of {}", a.sizes()));
  require_images(c, 0, a.outputs(), channels_of(c.x[0]));
  return {c.x[0].dtype(),
          behind(front_of(c.x[0], a.axes + 1), a.inputs(), channels_of(c.x[0]) / a.window.cells())};
}
void run_patches(const Call& c, std::span<Tensor> y) {
  kernels::patches(geometry(c, channels_of(c.x[0])), c.x[0], y[0]);
}

Tensor patches(const WindowAttrs& a, const Tensor& x);
Tensor patches_gradient(const WindowAttrs& a, const Tensor& dy);

constexpr Rule patches_rule() {
  return Rule::linear(
      [](const Call& c, const Tensor& dy) { return patches_gradient(c.attrs<WindowAttrs>(), dy); });
}

constexpr Op kExtractImagePatches = {
    .name = "extract_image_patches",
    .doc =
        "Image patches read by a sliding window, flattened row by row. conv2d is their product with the "
        "filters.",
    .tensorflow = "ExtractImagePatches",
    .args = {"x"},
    .infer = infer_patches,
    .forward = run_patches,
    .rule = patches_rule(),
};

constexpr Op kPatchesGradient = {
    .name = "patches_gradient",
    .doc =
        "The adjoint of extract_image_patches and extract_volume_patches: each patch is added to the "
        "images where it was read.",
    .args = {"dy"},
    .infer = infer_patches_gradient,
    .forward =
        [](const Call& c, std::span<Tensor> y) {
          kernels::patches_gradient(geometry(c, channels_of(y[0])), c.x[0], y[0]);
        },
    .rule = Rule::linear([](const Call& c, const Tensor& v) { return patches(c.attrs<WindowAttrs>(), v); }),
};

constexpr Op kExtractVolumePatches = {
    .name = "extract_volume_patches",
    .doc =
        "Volume patches read by a sliding window, flattened plane by plane. conv3d is their product with "
        "the filters.",
    .tensorflow = "ExtractVolumePatches",
    .args = {"x"},
    .infer = infer_patches,
    .forward = run_patches,
    .rule = patches_rule(),
};

constexpr const Op* patches_table[] = {&kExtractImagePatches, &kPatchesGradient, &kExtractVolumePatches};

Tensor patches(const WindowAttrs& a, const Tensor& x) {
  return (a.axes == 2 ? kExtractImagePatches : kExtractVolumePatches)(x, a);
}
Tensor patches_gradient(const WindowAttrs& a, const Tensor& dy) { return kPatchesGradient(dy, a); }

Tensor checked_patches(const Op& op, int axes, const Tensor& x, const VolumePatchOptions& o) {
  const Tensor* inputs[] = {&x};
  const Call c{.op = op, .x = {inputs, 1}};
  check_numbers(op, "window is", o.window, axes);
  check_numbers(op, "strides are", o.strides, axes);
  check_numbers(op, "dilation is", o.dilation, axes);
  check_padding(op, o.padding, kMostCells);
  require_rank(c, 0, axes);
  return op(x, checked_window(c, "the window is", axes, o.window, o.strides, o.dilation, o.padding));
}

}   // namespace

Tensor extract_image_patches(const Tensor& x, const PatchOptions& o) {
  return checked_patches(kExtractImagePatches, 2, x,
                         {.window = in_volume(o.window),
                          .strides = in_volume(o.strides),
                          .dilation = in_volume(o.dilation),
                          .padding = in_volume(o.padding)});
}
Tensor extract_volume_patches(const Tensor& x, const VolumePatchOptions& o) {
  return checked_patches(kExtractVolumePatches, 3, x, o);
}

std::span<const Op* const> patches_ops() { return patches_table; }

}   // namespace tapedeck
