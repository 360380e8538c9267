// IndexedSlices: a sparse gradient, made where rows of a tensor were gathered.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck {

/// Stands for a tensor of dense_shape that is zero but for rows: values[k] is added to row indices[k]. Rows
/// may repeat. values: [k, dense_shape[1:]…]; indices: i32 or i64 [k]. Without a dense_shape the number of
/// rows is open.
struct IndexedSlices {
  Tensor values, indices;
  std::optional<Shape> dense_shape = {};
};

/// Throws where the parts do not fit together: ArgumentError for an undefined one, DTypeError for indices of
/// another dtype, ShapeError for other shapes and an index out of range. The message begins with the caller
/// and may name a variable.
TAPEDECK_EXPORT void validate(const IndexedSlices& s, std::string_view caller,
                              std::string_view variable = {});

/// The tensor that they stand for. Throws as validate, and ArgumentError without a dense_shape; warns before
/// it makes 10⁸ elements or more. Recorded on tapes.
TAPEDECK_EXPORT Tensor to_dense(const IndexedSlices& s);

/// The same gradient with each row once, in the order in which the rows first occur; values of one row are
/// added in their order. Throws as validate. Recorded on tapes.
TAPEDECK_EXPORT IndexedSlices sum_duplicates(const IndexedSlices& s);

/// Values, indices and dense_shape, a line or more each.
TAPEDECK_EXPORT std::string to_string(const IndexedSlices& s);
TAPEDECK_EXPORT std::ostream& operator<<(std::ostream& out, const IndexedSlices& s);

}   // namespace tapedeck
