// Merges several axes into one, for ops along the last axis.
#pragma once
#include <algorithm>

#include "ops/axes.h"
#include "tapedeck/ops/array.h"

namespace tapedeck {

/// The number of elements along the axes in the mask. Throws ShapeError on overflow, which is possible for an
/// empty tensor.
inline std::int64_t size_along(const Shape& x, unsigned axes) { return without(x, ~axes, false).size(); }

/// Transposes and reshapes tensors of one shape so that the reduced axes, given as a mask, become one last
/// axis; split() is the inverse of merge().
class Merged {
 public:
  Merged(const Shape& shape, unsigned axes) : shape_(shape) {
    const auto is_reduced = [&](int d) { return (axes >> (shape.ndim() - 1 - d) & 1) != 0; };
    for (int d = 0; d < shape.ndim(); ++d) {
      order_.push_back(d);
      if (!is_reduced(d)) merged_.push_back(shape[d]);
    }
    merged_.push_back(size_along(shape, axes));
    std::stable_partition(order_.begin(), order_.end(), [&](int d) { return !is_reduced(d); });
    in_place_ = std::is_sorted(order_.begin(), order_.end());
  }
  Tensor merge(const Tensor& x) const {
    const Tensor last = in_place_ ? x : transpose(x, order_);
    return last.shape() == merged_ ? last : reshape(last, merged_);
  }
  Tensor split(const Tensor& y) const {
    if (in_place_) return y.shape() == shape_ ? y : reshape(y, shape_);
    Shape moved;
    std::vector<int> back(order_.size());
    for (std::size_t i = 0; i < order_.size(); ++i) {
      moved.push_back(shape_[order_[i]]);
      back[static_cast<std::size_t>(order_[i])] = static_cast<int>(i);
    }
    return transpose(reshape(y, moved), back);
  }

 private:
  Shape shape_, merged_;
  std::vector<int> order_;
  bool in_place_ = true;
};

}   // namespace tapedeck
