// Cursor: iterates over the elements of a view in order, some at a time. If a view repeats a row, the row is
// written several times to the cursor's own memory, so that blocks can be read there as contiguous elements.
#pragma once
#include <algorithm>
#include <cstring>
#include <limits>

#include "kernels/layout/strided_view.h"

namespace tapedeck::compiled {

/// The layout of a repeated row: `elements` of its repetitions are written to memory. A block that would go
/// beyond them is read `span` elements earlier, which is a whole number of rows.
struct RepeatedRow {
  std::int64_t span = 0, elements = 0;   // 0: no layout

  /// The layout for a view of which n elements are read in blocks; none if it does not pay.
  static RepeatedRow of(const kernels::StridedView& view, std::int64_t n, std::int64_t block) {
    constexpr std::int64_t most = 512;   // the largest row, in elements
    if (view.ndim() != 2 || view[0].stride != 0 || view[1].stride == 0 || view[1].extent > most) return {};
    const std::int64_t extent = view[1].extent, span = (2 * block + extent - 1) / extent * extent;
    return 8 * (span + block) <= n ? RepeatedRow{span, span + block} : RepeatedRow{};
  }
};

class Cursor {
 public:
  /// room: memory for row.elements elements.
  Cursor(const kernels::StridedView& view, std::int64_t position, const RepeatedRow& row, std::byte* room)
      : view_(&view), offset_(view.offset()), row_(row), room_(row.span ? room : nullptr) {
    for (std::size_t d = view.ndim(); d-- > 0; position /= view[d].extent) {
      index_[d] = position % view[d].extent;
      offset_ += index_[d] * view[d].stride;
    }
    if (view.ndim() == 0) return;
    step_ = inner().stride;
    left_ = inner().extent - index_[view.ndim() - 1];
  }

  /// The stride to the next element, and the number of elements left in the current run of the inner axis.
  std::int64_t step() const { return step_; }
  std::int64_t left() const { return left_; }
  /// The array from which elements are read: x, or the memory in which its row is laid out.
  template <class T> const T* source(const T* x) {
    if (!room_) return x;
    T* const y = reinterpret_cast<T*>(room_);
    if (least_ == 1) lay_out(x, y);
    return y;
  }
  /// Returns a pointer to the next n elements of the source x, and skips these. Precondition: n <= left().
  template <class T> const T* take(const T* x, std::int64_t n) {
    const T* const from = x + offset_;
    skip(n);
    return from;
  }

  /// Copies the next n elements of the source x to y.
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
  // Repeats the first `there` elements of y until it has n elements.
  template <class T> static void repeat(T* y, std::int64_t there, std::int64_t n) {
    while (there < n) {
      const std::int64_t more = std::min(there, n - there);
      std::memcpy(y + there, y, static_cast<std::size_t>(more) * sizeof(T));
      there += more;
    }
  }
  template <class T> [[gnu::noinline]] void lay_out(const T* x, T* y) {
    const std::int64_t extent = inner().extent;
    copy_run(x + view_->offset(), y, extent);
    repeat(y, extent, row_.elements);
    step_ = 1;
    offset_ = index_[1];
    left_ = row_.elements - offset_;
    least_ = row_.elements - row_.span;
  }

  static constexpr std::int64_t kFewRows = 4;   // fewer rows are copied faster one by one

  // Copies n elements of one run of the inner axis.
  template <class T> void copy_run(const T* from, T* y, std::int64_t n) const { copy_rows(from, 0, y, 1, n); }
  // Copies `rows` rows of n elements, whose first elements are `stride` apart.
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
  // The number of whole, equally spaced runs of the inner axis with which the next n elements begin.
  std::int64_t whole_rows(std::int64_t n) const {
    if (n / kFewRows < left_ || left_ != inner().extent || view_->ndim() < 2) return 0;
    const std::size_t d = view_->ndim() - 2;
    return std::min(n / left_, (*view_)[d].extent - index_[d]);
  }
  template <class T> [[gnu::noinline]] void fetch_rows(const T* x, T* y, std::int64_t rows) {
    const std::size_t d = view_->ndim() - 2;
    const std::int64_t width = inner().extent, stride = (*view_)[d].stride, n = rows * width;
    const T* from = x + offset_;
    if (stride == 0 && step_ == 1) {
      copy(from, y, width);
      repeat(y, width, n);
    } else {
      copy_rows(from, stride, y, rows, width);
    }
    index_[d] += rows - 1, offset_ += (rows - 1) * stride;   // to the last of these rows
    skip(width);
  }

  // Copies by vectors, since most runs are short. The last vector overlaps elements that are copied already.
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
    if (left_ < least_) next_run();
  }
  void next_run() {
    if (room_) {
      offset_ -= row_.span, left_ += row_.span;
      return;
    }
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
  std::int64_t least_ = 1;   // the next run begins if fewer elements are left
  RepeatedRow row_;
  std::byte* room_;
  std::int64_t index_[2 * Shape::kMaxRank];   // for the inner axis: where the first run began
};

}   // namespace tapedeck::compiled
