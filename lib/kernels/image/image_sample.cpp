// Samples images at computed positions. Each position is computed once for all channels, as up to four pixels
// with weights; vectors run along the channels. Threads split the output rows; in the adjoint, they split the
// images and channels, and each adds in the order of output pixels.
#include "kernels/image/image_sample.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/bytes.h"
#include "core/parallel.h"
#include "core/visit.h"
#include "kernels/simd/lanes.h"

namespace tapedeck::kernels {
namespace {

constexpr Cut kImageSampleCut{1 << 13, 1 << 15};   // output elements
constexpr std::int64_t kChannels = 64;             // channels per task of the adjoint

/// The position in its image that an output pixel reads. `hidden`: it reads only Frames::outside.
struct Position {
  double y, x;
  bool hidden = false;
};

/// The pixels that one position reads, with their weights, and the contribution of pixels outside the image.
template <class T> struct Taps {
  int n = 0;
  std::int64_t pixel[4];
  T weight[4], rest = 0;

  Taps(const Frames& f, const Position& p) {
    const auto height = static_cast<double>(f.height), width = static_cast<double>(f.width);
    if (std::isnan(p.y) || std::isnan(p.x))
      rest = std::numeric_limits<T>::quiet_NaN();
    else if (p.hidden || p.y <= -1 || p.x <= -1 || p.y >= height || p.x >= width)
      rest = static_cast<T>(f.outside);
    else if (f.nearest)
      add(f, std::round(p.y), std::round(p.x), 1);
    else {
      const double top = std::floor(p.y), left = std::floor(p.x), down = p.y - top, right = p.x - left;
      add(f, top, left, (1 - down) * (1 - right));
      add(f, top, left + 1, (1 - down) * right);
      add(f, top + 1, left, down * (1 - right));
      add(f, top + 1, left + 1, down * right);
    }
  }

 private:
  void add(const Frames& f, double y, double x, double w) {
    const auto row = static_cast<std::int64_t>(y), column = static_cast<std::int64_t>(x);
    if (w == 0) return;
    if (row < 0 || column < 0 || row >= f.height || column >= f.width)
      rest += static_cast<T>(w * f.outside);
    else
      pixel[n] = row * f.width + column, weight[n++] = static_cast<T>(w);
  }
};

template <class T> struct Boxes {
  const Frames& f;
  const T* boxes;
  std::vector<std::int64_t> images;

  Boxes(const Frames& frames, const Tensor& b, const Tensor& indices)
      : f(frames), boxes(elements<T>(b)), images(indices.to_vector<std::int64_t>()) {}
  std::int64_t image(std::int64_t frame) const { return images[static_cast<std::size_t>(frame)]; }
  Position operator()(std::int64_t frame, std::int64_t row, std::int64_t column) const {
    const T* b = boxes + 4 * frame;
    const double y = between(b[0], b[2], row, f.rows, f.height - 1),
                 x = between(b[1], b[3], column, f.columns, f.width - 1);
    return {y, x,
            y < 0 || x < 0 || y > static_cast<double>(f.height - 1) || x > static_cast<double>(f.width - 1)};
  }

 private:
  // Position i of `count` positions from a to b, which are fractions of `last`; the midpoint if there is one
  // position. The last one is b itself, which rounding would otherwise put past the edge of the image.
  static double between(double a, double b, std::int64_t i, std::int64_t count, std::int64_t last) {
    const auto scale = static_cast<double>(last);
    if (count == 1) return 0.5 * (a + b) * scale;
    if (i == count - 1) return b * scale;
    return a * scale + (b - a) * scale * static_cast<double>(i) / static_cast<double>(count - 1);
  }
};

template <class T> struct Transforms {
  const T* transforms;
  std::int64_t step;   // elements from one frame's transform to the next

  explicit Transforms(const Tensor& t) : transforms(elements<T>(t)), step(t.size() == 8 ? 0 : 8) {}
  std::int64_t image(std::int64_t frame) const { return frame; }
  Position operator()(std::int64_t frame, std::int64_t row, std::int64_t column) const {
    const T* t = transforms + step * frame;
    const auto i = static_cast<double>(row), j = static_cast<double>(column);
    const double scale = t[6] * j + t[7] * i + 1;
    if (scale == 0) return {0, 0, true};
    return {(t[3] * j + t[4] * i + t[5]) / scale, (t[0] * j + t[1] * i + t[2]) / scale};
  }
};

template <class T, class P> void sample(const Frames& f, const P& position, const T* x, T* y) {
  parallel_for(f.stacks * f.frames * f.rows, cut_of(kImageSampleCut, f.columns * f.channels),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t line = begin; line < end; ++line) {
                   const std::int64_t row = line % f.rows, frame = line / f.rows % f.frames,
                                      stack = line / f.rows / f.frames;
                   const T* image =
                       x + (stack * f.images + position.image(frame)) * f.height * f.width * f.channels;
                   for (std::int64_t column = 0; column < f.columns; ++column) {
                     const Taps<T> taps(f, position(frame, row, column));
                     T* to = y + (line * f.columns + column) * f.channels;
                     each_group<T>(f.channels, [&](std::int64_t i, auto one) {
                       using V = decltype(one);
                       V total(taps.rest);
                       for (int k = 0; k < taps.n; ++k)
                         total = detail::multiply_add(V(taps.weight[k]),
                                                      load<V>(image + taps.pixel[k] * f.channels + i), total);
                       store(total, to + i);
                     });
                   }
                 }
               });
}

// A task owns some channels of one image and visits all frames that read it, so that no two tasks write to
// the same elements.
template <class T, class P> void sample_adjoint(const Frames& f, const P& position, const T* dy, T* dx) {
  const std::int64_t parts = (f.channels + kChannels - 1) / kChannels, pixels = f.height * f.width;
  parallel_for(
      f.stacks * f.images * parts,
      cut_of(kImageSampleCut, (pixels + f.frames * f.rows * f.columns / std::max<std::int64_t>(f.images, 1)) *
                                  std::min(f.channels, kChannels)),
      [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t task = begin; task < end; ++task) {
          const std::int64_t image = task / parts % f.images, stack = task / parts / f.images,
                             first = task % parts * kChannels, n = std::min(kChannels, f.channels - first);
          T* to = dx + task / parts * pixels * f.channels + first;
          for (std::int64_t p = 0; p < pixels; ++p)
            std::fill_n(to + p * f.channels, n, T(0));
          for (std::int64_t frame = 0; frame < f.frames; ++frame) {
            if (position.image(frame) != image) continue;
            for (std::int64_t pixel = 0; pixel < f.rows * f.columns; ++pixel) {
              const Taps<T> taps(f, position(frame, pixel / f.columns, pixel % f.columns));
              if (std::isnan(taps.rest))
                for (std::int64_t p = 0; p < pixels; ++p)
                  std::fill_n(to + p * f.channels, n, taps.rest);   // a NaN position may have read any pixel
              const T* from =
                  dy + ((stack * f.frames + frame) * f.rows * f.columns + pixel) * f.channels + first;
              for (int k = 0; k < taps.n; ++k) {
                T* add_to = to + taps.pixel[k] * f.channels;
                each_group<T>(n, [&](std::int64_t i, auto one) {
                  using V = decltype(one);
                  store(load<V>(add_to + i) + V(taps.weight[k]) * load<V>(from + i), add_to + i);
                });
              }
            }
          }
        }
      });
}

}   // namespace

void sample_boxes(const Frames& f, const Tensor& x, const Tensor& boxes, const Tensor& indices, Tensor& y) {
  if (y.size() == 0) return;
  visit_floating(x.dtype(), [&](auto one) {
    using T = decltype(one);
    sample(f, Boxes<T>(f, boxes, indices), elements<T>(x), elements<T>(y));
  });
}
void sample_boxes_adjoint(const Frames& f, const Tensor& dy, const Tensor& boxes, const Tensor& indices,
                          Tensor& dx) {
  if (dx.size() == 0) return;
  visit_floating(dy.dtype(), [&](auto one) {
    using T = decltype(one);
    sample_adjoint(f, Boxes<T>(f, boxes, indices), elements<T>(dy), elements<T>(dx));
  });
}
void sample_transformed(const Frames& f, const Tensor& x, const Tensor& transforms, Tensor& y) {
  if (y.size() == 0) return;
  visit_floating(x.dtype(), [&](auto one) {
    using T = decltype(one);
    sample(f, Transforms<T>(transforms), elements<T>(x), elements<T>(y));
  });
}
void sample_transformed_adjoint(const Frames& f, const Tensor& dy, const Tensor& transforms, Tensor& dx) {
  if (dx.size() == 0) return;
  visit_floating(dy.dtype(), [&](auto one) {
    using T = decltype(one);
    sample_adjoint(f, Transforms<T>(transforms), elements<T>(dy), elements<T>(dx));
  });
}

}   // namespace tapedeck::kernels
