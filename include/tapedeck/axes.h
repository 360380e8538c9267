// Axes: the dimensions of a tensor that a reduction reduces, and whether they are kept.
#pragma once
#include <concepts>
#include <initializer_list>
#include <utility>
#include <vector>

namespace tapedeck {

/// The axes to reduce: all axes if omitted or {}; no axis for an empty std::vector. Negative axes count from
/// the end.
struct Axes {
  Axes() = default;
  Axes(int axis) : all(false), list{axis} {}
  template <std::same_as<bool> Wrong>
  Axes(Wrong) = delete;   // axes come before options: sum(x, {}, {.keepdims = true})
  Axes(std::initializer_list<int> axes) : all(false), list(axes) {}
  Axes(std::vector<int> axes) : all(false), list(std::move(axes)) {}

  bool all = true;
  std::vector<int> list;
};

/// Options of reductions.
struct ReduceOptions {
  bool keepdims = false;   // true: reduced axes are kept, with extent 1
};

}   // namespace tapedeck
