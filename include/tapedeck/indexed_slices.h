// IndexedSlices: a sparse gradient, made where rows of a tensor were gathered.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck {

/// Stands for a tensor of dense_shape that is zero but for rows: values[k] is added to row indices[k]. Rows may repeat.
/// values: [k, dense_shape[1:]…]; indices: i32 or i64 [k].
struct IndexedSlices {
  Tensor values, indices;
  Shape dense_shape;
};

}  // namespace tapedeck
