// RGB–HSV conversion, pixel by pixel; threads split the pixels.
#include "kernels/image/color_space.h"

#include <algorithm>
#include <cmath>

#include "core/bytes.h"
#include "core/parallel.h"
#include "core/visit.h"
#include "kernels/reduce/fold.h"

namespace tapedeck::kernels {
namespace {

constexpr Cut kColorSpaceCut{1 << 12, 1 << 14};   // pixels

template <class F> void each_pixel(const Tensor& x, Tensor& y, const F& f) {
  visit_floating(x.dtype(), [&](auto one) {
    using T = decltype(one);
    const T* from = elements<T>(x);
    T* to = elements<T>(y);
    parallel_for(x.size() / 3, kColorSpaceCut, [=](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i)
        f(from + 3 * i, to + 3 * i);
    });
  });
}

constexpr Max larger;
constexpr Min smaller;

}   // namespace

// Comparisons are written so that NaN propagates.
void rgb_to_hsv(const Tensor& x, Tensor& y) {
  each_pixel(x, y, []<class T>(const T* c, T* hsv) {
    const T r = c[0], g = c[1], b = c[2], value = larger(larger(r, g), b),
            range = value - smaller(smaller(r, g), b);
    T hue = 0;
    if (!(range <= 0)) {
      const T sixth = 1 / (6 * range);
      hue = r == value   ? sixth * (g - b)
            : g == value ? sixth * (b - r) + T(1.0 / 3)
                         : sixth * (r - g) + T(2.0 / 3);
      if (hue < 0) hue += 1;
    }
    hsv[0] = hue;
    hsv[1] = value <= 0 ? 0 : range / value;
    hsv[2] = value;
  });
}

// Let range = value - least. Hue is a constant plus the difference of the two channels that follow the
// largest one cyclically, divided by 6 range; saturation is 1 - least / value.
void rgb_to_hsv_gradient(const Tensor& x, const Tensor& dy, Tensor& dx) {
  visit_floating(x.dtype(), [&](auto one) {
    using T = decltype(one);
    const T *pixels = elements<T>(x), *cotangents = elements<T>(dy);
    T* gradients = elements<T>(dx);
    parallel_for(dy.size() / 3, kColorSpaceCut, [=, n = x.size() / 3](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const T *c = pixels + 3 * (i % n), *d = cotangents + 3 * i, *largest = std::max_element(c, c + 3),
                *smallest = std::min_element(c, c + 3);
        const std::int64_t top = largest - c, bottom = smallest - c, second = (top + 1) % 3,
                           third = (top + 2) % 3;
        const T value = c[top], least = c[bottom], range = value - least,
                per_range = range <= 0 ? 0 : 1 / range,
                per_value = value <= 0 ? 0 : 1 / value;   // written so that NaN propagates
        const T of_side = d[0] * per_range / 6, of_range = of_side * (c[second] - c[third]) * per_range,
                of_least = d[1] * per_value;
        T* g = gradients + 3 * i;
        g[0] = g[1] = g[2] = 0;
        g[top] += d[2] + of_least * least * per_value - of_range;
        g[bottom] += of_range - of_least;
        g[second] += of_side;
        g[third] -= of_side;
      }
    });
  });
}

void hsv_to_rgb(const Tensor& x, Tensor& y) {
  each_pixel(x, y, []<class T>(const T* c, T* rgb) {
    const T sixths = 6 * (c[0] - std::floor(c[0])), pale = 1 - c[1], saturation = c[1], value = c[2];
    const auto channel = [=](T pure) { return (pale + saturation * std::clamp(pure, T(0), T(1))) * value; };
    rgb[0] = channel(std::abs(sixths - 3) - 1);
    rgb[1] = channel(2 - std::abs(sixths - 2));
    rgb[2] = channel(2 - std::abs(sixths - 4));
  });
}

}   // namespace tapedeck::kernels
