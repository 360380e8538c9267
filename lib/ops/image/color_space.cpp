// RGB–HSV conversion. In: colours, whose three channels are the last axis. Out: the same colours in the other
// colour space.
#include "kernels/image/color_space.h"

#include "ops/infer.h"
#include "ops/pull_back_by_ops.h"
#include "tapedeck/ops.h"

namespace tapedeck {
namespace {

Spec infer_pixels(const Call& c) {
  require_floating(c, 0);
  if (c.x[0].ndim() == 0 || c.x[0].shape()[c.x[0].ndim() - 1] != 3)
    c.throw_shape_error("the last axis does not hold three channels");
  return c.x[0].spec();
}

// The gradient of rgb_to_hsv by the formulas of its kernel, built from ops.
Tensor gradient_by_ops(const Tensor& x, const Tensor& dy) {
  const Tensor top = one_hot(argmax(x, -1), 3, x.dtype()), bottom = one_hot(argmin(x, -1), 3, x.dtype()),
               behind = roll(top, 1, -1) - roll(top, 2, -1);
  const auto chosen = [&](const Tensor& which) { return sum(x * which, -1, {.keepdims = true}); };
  const auto inverse = [](const Tensor& t) {
    return where(t > 0, 1 / where(t > 0, t, 1), 0);   // otherwise no output depends on it
  };
  const Tensor value = chosen(top), least = chosen(bottom), per_value = inverse(value),
               per_range = inverse(value - least);
  const std::vector<Tensor> d = split(dy, 3, -1);
  const Tensor of_side = d[0] * per_range / 6, of_range = of_side * chosen(behind) * per_range,
               of_least = d[1] * per_value;
  return top * (d[2] + of_least * least * per_value - of_range) + bottom * (of_range - of_least) +
         behind * of_side;
}

Tensor rgb_gradient(const Tensor& x, const Tensor& dy);

constexpr Op kRgbToHsv = {
    .name = "rgb_to_hsv",
    .doc =
        "Hue, saturation and value of red, green and blue (Smith 1978): value = max, saturation = 1 - "
        "min / max, and hue is the position between two pure colors, given by the other channels.",
    .tensorflow = "RGBToHSV",
    .args = {"x"},
    .infer = infer_pixels,
    .forward = [](const Call& c, std::span<Tensor> y) { kernels::rgb_to_hsv(c.x[0], y[0]); },
    .rule = Rule::custom({.x = 1},
                         [](const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
                           dx[0] = rgb_gradient(c.x[0], std::move(dy[0]).dense());
                         }),
};

constexpr Op kRgbToHsvGradient = {
    .name = "rgb_to_hsv_gradient",
    .doc =
        "The gradient of rgb_to_hsv with respect to x, from the derivatives of max, 1 - min / max, and the "
        "difference of the two other channels over 6 (max - min).",
    .args = {"x", "dy"},
    .infer =
        [](const Call& c) {
          const Tensor &x = c.x[0], &dy = c.x[1];
          infer_pixels(c);
          require_one_dtype(c);
          if (dy.ndim() < x.ndim() ||
              Shape(dy.shape().dims().last(static_cast<std::size_t>(x.ndim()))) != x.shape())
            c.throw_shape_error("the last axes of dy must match x");
          return dy.spec();
        },
    .forward = [](const Call& c, std::span<Tensor> y) { kernels::rgb_to_hsv_gradient(c.x[0], c.x[1], y[0]); },
    .rule = unstacked(Rule::custom({.x = 0b11},
                                   [](const Call& c, std::span<Gradient> dy, std::span<Gradient> dx) {
                                     pull_back_by_ops(c, dy, dx, [](const std::vector<Tensor>& x) {
                                       return std::vector<Tensor>{gradient_by_ops(x[0], x[1])};
                                     });
                                   })),
};

constexpr Op kHsvToRgb = {
    .name = "hsv_to_rgb",
    .doc = "Red, green and blue from hue, saturation and value.",
    .tensorflow = "HSVToRGB",
    .args = {"x"},
    .infer = infer_pixels,
    .forward = [](const Call& c, std::span<Tensor> y) { kernels::hsv_to_rgb(c.x[0], y[0]); },
    .rule = Rule::none(),
};

constexpr const Op* color_space_table[] = {&kRgbToHsv, &kRgbToHsvGradient, &kHsvToRgb};

Tensor rgb_gradient(const Tensor& x, const Tensor& dy) {
  const Tensor* inputs[] = {&x, &dy};
  return kRgbToHsvGradient({inputs, 2});
}

}   // namespace

Tensor rgb_to_hsv(const Tensor& x) { return kRgbToHsv(Operand(x)); }
Tensor hsv_to_rgb(const Tensor& x) { return kHsvToRgb(Operand(x)); }

std::span<const Op* const> color_space_ops() { return color_space_table; }

}   // namespace tapedeck
