// Groups row indices, so that equal ones are adjacent.
#pragma once
#include "core/storage.h"

namespace tapedeck::kernels {

/// The positions k at which row rows[r] occurs are places[starts[r]] to places[starts[r + 1] - 1], ascending.
struct RowOrder {
  CachedVector<std::int64_t> rows;     // the distinct rows, ascending
  CachedVector<std::int64_t> starts;   // one more than there are rows
  CachedVector<std::int64_t> places;
};

/// indices: integers of rank 1, none negative.
RowOrder order_rows(const Tensor& indices);

}   // namespace tapedeck::kernels
