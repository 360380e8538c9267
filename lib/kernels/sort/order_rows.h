// Rows that indices name, brought into order, so that equal ones lie side by side.
#pragma once
#include "core/storage.h"

namespace tapedeck::kernels {

/// The places k of row rows[r] are places[starts[r]] up to places[starts[r + 1]], in ascending order.
struct RowOrder {
  CachedVector<std::int64_t> rows;     // those that are named, once each, ascending
  CachedVector<std::int64_t> starts;   // one more than there are rows
  CachedVector<std::int64_t> places;
};

/// indices: i32 or i64 of rank 1, none negative.
RowOrder order_rows(const Tensor& indices);

}   // namespace tapedeck::kernels
