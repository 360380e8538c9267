// Grid: the partition of a pass over rows that sums gradients. It depends on sizes only, so that sums have
// the same bits on any number of threads.
#pragma once
#include "kernels/elementwise/limits.h"
#include "kernels/elementwise/row.h"

namespace tapedeck::kernels {

/// Cuts rows into bands of whole steps along the outermost axes, and each row into parts. If several bands or
/// parts add to the same elements of a gradient, each has a copy of the gradient, and the copies are added up
/// in order.
class Grid {
 public:
  /// put[i], sizes[i]: destination and number of elements of the gradient of operand i.
  Grid(const Rows& rows, const Put* put, int gradients, const std::int64_t* sizes) : part_(rows.inner) {
    const std::int64_t n = rows.count * rows.inner;
    std::int64_t steps = 1;
    int axis = rows.outer;   // the innermost axis that is cut
    while (axis > 0 && steps < kFewestSteps)
      steps *= rows.dims[--axis];
    rows_of_step_ = rows.count / steps;
    if (rows.inner > 2 * kGradientBand) part_ = kGradientBand;
    parts_ = (rows.inner + part_ - 1) / part_;
    std::int64_t bands = std::min({n / kGradientBand, steps, kMostBands});
    for (int i = 0; i < gradients; ++i) {
      const bool sums = put[i] == Put::sum, adds = put[i] == Put::add;
      for (int d = axis; d < rows.outer; ++d)
        across_bands_[i] |= (sums || adds) && rows.strides[d][static_cast<std::size_t>(i)] == 0;
      across_parts_[i] = sums;
      if (across_bands_[i]) bands = std::min(bands, n / kCopiesShare / sizes[i]);
    }
    steps_of_band_ = bands > 1 ? (steps + bands - 1) / bands : steps;
    bands_ = (steps + steps_of_band_ - 1) / steps_of_band_;
  }

  std::int64_t pieces() const { return bands_ * parts_; }
  std::int64_t copies(int i) const {
    return (across_bands_[i] ? bands_ : 1) * (across_parts_[i] ? parts_ : 1);
  }
  std::int64_t copy_of(int i, std::int64_t piece) const {
    const std::int64_t band = across_bands_[i] ? piece / parts_ : 0,
                       part = across_parts_[i] ? piece % parts_ : 0;
    return across_parts_[i] ? band * parts_ + part : band;
  }
  std::int64_t rows_of_band() const { return steps_of_band_ * rows_of_step_; }
  /// Calls f(row, offsets, begin, end) for the rows of a piece.
  template <class F> void each(const Rows& rows, std::int64_t piece, const F& f) const {
    const std::int64_t band = piece / parts_, begin = piece % parts_ * part_,
                       end = std::min(begin + part_, rows.inner);
    rows.each(band * rows_of_band(), std::min((band + 1) * rows_of_band(), rows.count),
              [&](std::int64_t r, const Offsets& offset) { f(r, offset, begin, end); });
  }

 private:
  std::int64_t part_, parts_, bands_, steps_of_band_, rows_of_step_;
  bool across_bands_[kMaxBroadcast] = {}, across_parts_[kMaxBroadcast] = {};
};

}   // namespace tapedeck::kernels
