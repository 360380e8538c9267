// Cursor: the elements of a view, in order, some at a time.
#pragma once
#include <algorithm>
#include <cstring>

#include "kernels/layout/strided_view.h"

namespace tapedeck::program {

class Cursor {
 public:
  Cursor(const kernels::StridedView& view, std::int64_t position) : view_(&view), offset_(view.offset()) {
    for (std::size_t d = view.ndim(); d-- > 0; position /= view[d].extent) {
      index_[d] = position % view[d].extent;
      offset_ += index_[d] * view[d].stride;
    }
  }

  /// The next n of x to y.
  template <class T> void fetch(const T* x, T* y, std::int64_t n) {
    const std::int64_t step = view_->ndim() ? (*view_)[view_->ndim() - 1].stride : 0;
    while (n > 0) {
      const std::int64_t run = run_of(n);
      const T* from = x + offset_;
      if (step == 1)
        std::memcpy(y, from, static_cast<std::size_t>(run) * sizeof(T));
      else if (step == 0)
        std::fill_n(y, run, *from);
      else
        for (std::int64_t i = 0; i < run; ++i)
          y[i] = from[i * step];
      skip(run);
      y += run, n -= run;
    }
  }

 private:
  // How many of the next n lie along the inner axis.
  std::int64_t run_of(std::int64_t n) const {
    const std::size_t inner = view_->ndim() - 1;
    return view_->ndim() ? std::min(n, (*view_)[inner].extent - index_[inner]) : n;
  }
  void skip(std::int64_t n) {
    for (std::size_t d = view_->ndim(); d-- > 0; n = 1) {
      index_[d] += n;
      offset_ += n * (*view_)[d].stride;
      if (index_[d] < (*view_)[d].extent) return;
      offset_ -= index_[d] * (*view_)[d].stride;
      index_[d] = 0;
    }
  }

  const kernels::StridedView* view_;
  std::int64_t offset_, index_[2 * Shape::kMaxRank];
};

}   // namespace tapedeck::program
