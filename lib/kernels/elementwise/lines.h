// Lines: the last axis of a pass, along which operands may be shifted. A pass is cut into inner parts, in
// which every element of a shifted operand is in memory, and edges, at the ends of lines.
#pragma once
#include <algorithm>
#include <limits>

#include "tapedeck/shape.h"
#include "tapedeck/simd/pass.h"

namespace tapedeck::kernels {

class Lines {
 public:
  /// shifts: by operand; null if none is shifted.
  Lines(const Shape& shape, const Shift* shifts, int operands) : shifts_(shifts) {
    if (!shifts) return;
    length_ = shape[shape.ndim() - 1];
    for (int i = 0; i < operands; ++i) {
      head_ = std::max(head_, shifts[i].by);
      tail_ = std::max(tail_, -shifts[i].by);
    }
  }

  bool moved() const { return shifts_ != nullptr; }
  std::int64_t by(int i) const { return shifts_ ? shifts_[i].by : 0; }
  double fill(int i) const { return shifts_ ? shifts_[i].fill : 0; }
  /// The position of element i of the pass in its line.
  std::int64_t position(std::int64_t i) const { return moved() ? i % length_ : 0; }

  /// The subrange of elements [begin, end) of a line for which operand i has elements; `begin` is at
  /// `position`.
  std::pair<std::int64_t, std::int64_t> inside(int i, std::int64_t begin, std::int64_t end,
                                               std::int64_t position) const {
    if (!by(i)) return {begin, end};
    // The element for which the first element of the line is read.
    const std::int64_t first = begin + by(i) - position;
    return {std::clamp(first, begin, end), std::clamp(first + length_, begin, end)};
  }
  /// The elements of a line of operand i that are never read.
  std::pair<std::int64_t, std::int64_t> unread(int i) const {
    return by(i) > 0 ? std::pair(length_ - by(i), length_) : std::pair(std::int64_t{0}, -by(i));
  }
  std::int64_t length() const { return length_; }

  /// Cuts n elements, the first of which is at `position`: calls inner(begin, end, position) for parts in
  /// which all operands have elements, and edge(begin, end, position) for the others.
  template <class Inner, class Edge>
  void each(std::int64_t position, std::int64_t n, const Inner& inner, const Edge& edge) const {
    for (std::int64_t done = 0; done < n; position = 0) {
      const std::int64_t line = done - position, end = std::min(n, line + length_),
                         from = std::clamp(line + head_, done, end),
                         to = std::clamp(line + length_ - tail_, from, end);
      if (from > done) edge(done, from, position);
      if (to > from) inner(from, to, position + from - done);
      if (end > to) edge(to, end, position + to - done);
      done = end;
    }
  }

 private:
  const Shift* shifts_;
  std::int64_t length_ = std::numeric_limits<std::int64_t>::max(), head_ = 0, tail_ = 0;
};

}   // namespace tapedeck::kernels
