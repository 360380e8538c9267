// Axes: which dimensions of a tensor an op works on.
#pragma once
#include <initializer_list>
#include <utility>
#include <vector>

namespace tapedeck {

/// The axes to reduce; empty: all axes. Negative axes count from the end.
struct Axes {
  Axes() = default;
  Axes(int axis) : all(false), list{axis} {}
  Axes(std::initializer_list<int> axes) : all(false), list(axes) {}
  Axes(std::vector<int> axes) : all(false), list(std::move(axes)) {}

  bool all = true;
  std::vector<int> list;
};

}   // namespace tapedeck
