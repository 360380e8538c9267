// Cursor: the elements of a view, in order, some at a time.
#pragma once
#include <algorithm>
#include <cstring>
#include <limits>

#include "kernels/layout/strided_view.h"

namespace tapedeck::compiled {

class Cursor {
 public:
  Cursor(const kernels::StridedView& view, std::int64_t position) : view_(&view), offset_(view.offset()) {
    for (std::size_t d = view.ndim(); d-- > 0; position /= view[d].extent) {
      index_[d] = position % view[d].extent;
      offset_ += index_[d] * view[d].stride;
    }
    if (view.ndim() == 0) return;
    step_ = inner().stride;
    left_ = inner().extent - index_[view.ndim() - 1];
  }

  /// From one element to the next, for so many that the inner axis ends.
  std::int64_t step() const { return step_; }
  std::int64_t left() const { return left_; }
  /// Where the next n of x begin, of which so many are left.
  template <class T> const T* take(const T* x, std::int64_t n) {
    const T* const from = x + offset_;
    skip(n);
    return from;
  }

  /// The next n of x to y.
  template <class T> void fetch(const T* x, T* y, std::int64_t n) {
    while (n > 0) {
      const std::int64_t run = std::min(n, left_);
      const T* const from = take(x, run);
      if (step_ == 1)
        copy(from, y, run);
      else if (step_ == 0)
        std::fill_n(y, run, *from);
      else
        for (std::int64_t i = 0; i < run; ++i)
          y[i] = from[i * step_];
      y += run, n -= run;
    }
  }

 private:
  // By vectors, since most runs are short.
  template <class T> static void copy(const T* x, T* y, std::int64_t n) {
    constexpr std::int64_t line = 64 / sizeof(T);
    std::int64_t i = 0;
    for (; i + line <= n; i += line)
      std::memcpy(y + i, x + i, 64);
    for (; i < n; ++i)
      y[i] = x[i];
  }
  const kernels::StridedView::Axis& inner() const { return (*view_)[view_->ndim() - 1]; }
  void skip(std::int64_t n) {
    offset_ += n * step_;
    left_ -= n;
    if (left_ == 0) next_run();
  }
  void next_run() {
    left_ = inner().extent;
    offset_ -= left_ * step_;
    for (std::size_t d = view_->ndim() - 1; d-- > 0;) {
      offset_ += (*view_)[d].stride;
      if (++index_[d] < (*view_)[d].extent) return;
      offset_ -= index_[d] * (*view_)[d].stride;
      index_[d] = 0;
    }
  }

  const kernels::StridedView* view_;
  std::int64_t offset_, step_ = 0, left_ = std::numeric_limits<std::int64_t>::max();
  std::int64_t index_[2 * Shape::kMaxRank];   // of the inner axis: where the first run began
};

}   // namespace tapedeck::compiled
