// IndexedSlices: a sparse gradient, such as the gradient of gather.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck {

/// Represents a tensor of shape dense_shape that is the sum of rows: values[k] is added to row indices[k],
/// and all other rows are zero. Rows may repeat. values: [k, dense_shape[1:]…]; indices: integers [k].
/// Without dense_shape the number of rows is unknown.
struct IndexedSlices {
  Tensor values, indices;
  std::optional<Shape> dense_shape = {};
};

/// Throws if the members are inconsistent: ArgumentError if one is undefined, DTypeError for indices of
/// another dtype, ShapeError if shapes do not match or an index is out of range. The message begins with
/// `caller` and may name a variable.
TAPEDECK_EXPORT void validate(const IndexedSlices& s, std::string_view caller,
                              std::string_view variable = {});

/// The dense tensor. Throws as validate does, and ArgumentError without dense_shape. Warns before it creates
/// a tensor of 10⁸ elements or more. Recorded on tapes.
TAPEDECK_EXPORT Tensor to_dense(const IndexedSlices& s);

/// Returns the same gradient with each row index once, in order of first occurrence; values of the same row
/// are added in their order. Throws as validate does. Recorded on tapes.
TAPEDECK_EXPORT IndexedSlices sum_duplicates(const IndexedSlices& s);

/// Text of values, indices and dense_shape, each on a new line.
TAPEDECK_EXPORT std::string to_string(const IndexedSlices& s);
TAPEDECK_EXPORT std::ostream& operator<<(std::ostream& out, const IndexedSlices& s);

}   // namespace tapedeck
