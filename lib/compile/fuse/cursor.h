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
  template <class T> [[gnu::always_inline]] void fetch(const T* x, T* y, std::int64_t n) {
    while (n > 0) {
      const std::int64_t rows = whole_rows(n);
      if (rows > 1) {
        fetch_rows(x, y, rows);
        y += rows * inner().extent, n -= rows * inner().extent;
        continue;
      }
      const std::int64_t run = std::min(n, left_);
      const T* const from = take(x, run);
      copy_run(from, y, run);
      y += run, n -= run;
    }
  }

 private:
  static constexpr std::int64_t kFewRows = 4;   // fewer are copied sooner one by one

  // n elements of one run of the inner axis.
  template <class T> void copy_run(const T* from, T* y, std::int64_t n) const { copy_rows(from, 0, y, 1, n); }
  // So many rows of n elements, whose first ones lie `stride` apart.
  template <class T>
  void copy_rows(const T* from, std::int64_t stride, T* y, std::int64_t rows, std::int64_t n) const {
    if (step_ == 1)
      for (; rows > 0; --rows, from += stride, y += n)
        copy(from, y, n);
    else if (step_ == 0)
      for (; rows > 0; --rows, from += stride, y += n)
        std::fill_n(y, n, *from);
    else
      for (; rows > 0; --rows, from += stride)
        for (std::int64_t i = 0; i < n; ++i)
          *y++ = from[i * step_];
  }
  // Runs of the inner axis, as many as lie equally far apart, where the next n begin with one.
  std::int64_t whole_rows(std::int64_t n) const {
    if (n < kFewRows * left_ || left_ != inner().extent || view_->ndim() < 2) return 0;
    const std::size_t d = view_->ndim() - 2;
    return std::min(n / left_, (*view_)[d].extent - index_[d]);
  }
  template <class T> [[gnu::noinline]] void fetch_rows(const T* x, T* y, std::int64_t rows) {
    const std::size_t d = view_->ndim() - 2;
    const std::int64_t width = inner().extent, stride = (*view_)[d].stride, n = rows * width;
    const T* from = x + offset_;
    if (stride == 0 && step_ == 1) {   // one row again and again: what is there is copied behind itself
      copy(from, y, width);
      for (std::int64_t there = width; there < n;) {
        const std::int64_t more = std::min(there, n - there);
        std::memcpy(y + there, y, static_cast<std::size_t>(more) * sizeof(T));
        there += more;
      }
    } else {
      copy_rows(from, stride, y, rows, width);
    }
    index_[d] += rows - 1, offset_ += (rows - 1) * stride;   // to the last of them
    skip(width);
  }

  // By vectors, since most runs are short; the last one overlaps what is copied already.
  template <class T> static void copy(const T* x, T* y, std::int64_t n) {
    constexpr auto size = static_cast<std::int64_t>(sizeof(T)), line = 64 / size;
    const std::int64_t bytes = n * size;
    if (bytes >= 64) {
      for (std::int64_t i = 0; i + line < n; i += line)
        std::memcpy(y + i, x + i, 64);
      return copy_end<64>(x + n, y + n);
    }
    if (bytes >= 32) return copy_both_ends<32>(x, y, n);
    if (bytes >= 16) return copy_both_ends<16>(x, y, n);
    if (bytes >= 8) return copy_both_ends<8>(x, y, n);
    if (n > 0) *y = *x;
  }
  template <std::size_t bytes, class T> static void copy_end(const T* x, T* y) {
    constexpr std::size_t count = bytes / sizeof(T);
    std::memcpy(y - count, x - count, bytes);
  }
  template <std::size_t bytes, class T> static void copy_both_ends(const T* x, T* y, std::int64_t n) {
    std::memcpy(y, x, bytes);
    copy_end<bytes>(x + n, y + n);
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
