// Gradient: what a tape returns for a source: nothing, a dense tensor, or slices of one.
#pragma once
#include <memory>

#include "tapedeck/indexed_slices.h"

namespace tapedeck {

class Variable;

class TAPEDECK_EXPORT Gradient {
 public:
  /// None: no path leads from the target to the source.
  Gradient() = default;
  Gradient(Tensor dense) noexcept : dense_(std::move(dense)) {}
  /// The variable's present value.
  Gradient(const Variable& v);
  Gradient(IndexedSlices slices);

  /// False for none.
  bool defined() const { return dense_.defined() || slices_; }
  bool is_dense() const { return dense_.defined(); }
  /// The slices, or null where the gradient is dense or none.
  const IndexedSlices* slices() const { return slices_.get(); }
  /// Bytes of the dense tensor, or of the values of the slices.
  std::int64_t nbytes() const {
    return slices_ ? slices_->values.nbytes() : dense_.defined() ? dense_.nbytes() : 0;
  }

  /// The gradient as a tensor of the source's shape; slices are added into zeros, by to_dense. Throws
  /// GradientError for none.
  Tensor dense() const&;
  Tensor dense() &&;
  /// The dense tensor as it is; undefined for slices and none.
  const Tensor& tensor() const { return dense_; }

 private:
  Tensor dense_;
  std::shared_ptr<const IndexedSlices> slices_;
};

/// The sum of gradients of one tensor, such as those of several batches. Nones do not count: of nothing else
/// the sum is none, and one other term is returned as it is. Slices are joined where there are slices alone,
/// with i32 indices beside i64 ones promoted; beside a dense term they become dense. Throws ShapeError or
/// DTypeError where the terms differ.
TAPEDECK_EXPORT Gradient aggregate(std::vector<Gradient> terms);

}   // namespace tapedeck
