// Colours, composed of ops. In: three channels, the last axis. Out: the same colours told otherwise.
#include "base/format.h"
#include "tapedeck/ops.h"

namespace tapedeck {
namespace {

std::vector<Tensor> channels_of(std::string_view name, const Tensor& x) {
  if (!is_trainable(x.dtype())) throw_error<DTypeError>("{}: takes f32 or f64, use astype: x is {}", name, x.spec());
  if (x.ndim() == 0 || x.shape()[x.ndim() - 1] != 3) throw_error<ShapeError>("{}: the last axis does not hold three channels: x is {}", name, x.spec());
  return unstack(x, -1);
}

}  // namespace

// Smith 1978, "Color gamut transform pairs": the hue is where between two of the pure colours the largest channel's neighbours lie.
Tensor rgb_to_hsv(const Tensor& x) {
  const std::vector<Tensor> rgb = channels_of("rgb_to_hsv", x);
  const Tensor &r = rgb[0], &g = rgb[1], &b = rgb[2];
  const Tensor value = maximum(maximum(r, g), b), range = value - minimum(minimum(r, g), b), coloured = range > 0;
  const Tensor saturation = where(value > 0, range / where(value > 0, value, 1), 0), sixth = 1 / (6 * where(coloured, range, 1));
  const Tensor hue = where(equal(r, value), sixth * (g - b), where(equal(g, value), sixth * (b - r) + 1.0 / 3, sixth * (r - g) + 2.0 / 3));
  const Tensor of_colours = where(coloured, where(hue < 0, hue + 1, hue), 0);
  return stack({of_colours, saturation, value}, -1);
}

Tensor hsv_to_rgb(const Tensor& x) {
  const std::vector<Tensor> hsv = channels_of("hsv_to_rgb", stop_gradient(x));
  const Tensor turned = hsv[0] * 6, pale = 1 - hsv[1];
  const auto channel = [&](const Tensor& pure) { return (pale + hsv[1] * clip(pure, 0, 1)) * hsv[2]; };
  return stack({channel(abs(turned - 3) - 1), channel(2 - abs(turned - 2)), channel(2 - abs(turned - 4))}, -1);
}

}  // namespace tapedeck
