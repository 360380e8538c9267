// Options of sliding-window ops on sequences, images and volumes: convolution, pooling and patches.
#pragma once
#include <tuple>

#include "tapedeck/shape.h"

namespace tapedeck {

/// Two numbers, for rows and columns; converts from one number for both.
struct HeightWidth {
  std::int64_t height, width;

  constexpr HeightWidth(std::int64_t both) : height(both), width(both) {}
  constexpr HeightWidth(std::int64_t h, std::int64_t w) : height(h), width(w) {}
  friend constexpr bool operator==(HeightWidth, HeightWidth) = default;
};

/// Padding of an image. valid: none. same: such that the output's extents are the image's divided by the
/// strides, rounded up; an odd row or column is added at the end. given: explicit numbers of rows and
/// columns.
struct Padding {
  /// The kinds of padding; `given` stands for explicit numbers.
  enum Mode : std::uint8_t { valid, same, given };

  constexpr Padding(Mode m) : mode(m) {}
  constexpr Padding(std::int64_t all) : Padding(all, all, all, all) {}
  constexpr Padding(std::int64_t top_, std::int64_t bottom_, std::int64_t left_, std::int64_t right_)
      : mode(given), top(top_), bottom(bottom_), left(left_), right(right_) {}

  Mode mode;
  std::int64_t top = 0, bottom = 0, left = 0, right = 0;   // for explicit padding
};

/// Three numbers, for planes, rows and columns; converts from one number for all three.
struct DepthHeightWidth {
  std::int64_t depth, height, width;

  constexpr DepthHeightWidth(std::int64_t all) : depth(all), height(all), width(all) {}
  constexpr DepthHeightWidth(std::int64_t d, std::int64_t h, std::int64_t w)
      : depth(d), height(h), width(w) {}
  friend constexpr bool operator==(DepthHeightWidth, DepthHeightWidth) = default;
};
/// Padding of a volume: a mode, or explicit numbers in front, behind and around each plane.
struct Padding3d {
  constexpr Padding3d(Padding::Mode mode) : plane(mode) {}
  constexpr Padding3d(std::int64_t all) : plane(all), front(all), back(all) {}
  constexpr Padding3d(std::int64_t front_, std::int64_t back_, Padding plane_)
      : plane(plane_), front(front_), back(back_) {}

  Padding plane;
  std::int64_t front = 0, back = 0;   // for explicit padding
};
/// ExtentsOf: a number for each of N spatial axes. PaddingOf: their padding, for a sequence at left and
/// right. N is 1 to 3.
template <int N> using ExtentsOf =
    std::tuple_element_t<N - 1, std::tuple<std::int64_t, HeightWidth, DepthHeightWidth>>;
template <int N> using PaddingOf = std::tuple_element_t<N - 1, std::tuple<Padding, Padding, Padding3d>>;
/// Position of the channel axis of a sequence, an image or a volume: last, or before the spatial axes.
enum class Layout : std::uint8_t { nhwc, nchw, ndhwc = nhwc, ncdhw = nchw };

}   // namespace tapedeck
