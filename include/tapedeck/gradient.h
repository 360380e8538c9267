// Gradient: what a tape returns for a source: nothing, a dense tensor, or slices of one.
#pragma once
#include <memory>

#include "tapedeck/indexed_slices.h"

namespace tapedeck {

class TAPEDECK_EXPORT Gradient {
 public:
  /// None: no path leads from the target to the source.
  Gradient() = default;
  Gradient(Tensor dense) noexcept : dense_(std::move(dense)) {}
  Gradient(IndexedSlices slices) : slices_(std::make_shared<const IndexedSlices>(std::move(slices))) {}

  /// False for none.
  bool defined() const { return dense_.defined() || slices_; }
  bool is_dense() const { return dense_.defined(); }
  /// The slices, or null where the gradient is dense or none.
  const IndexedSlices* slices() const { return slices_.get(); }
  /// Bytes of the dense tensor, or of the values of the slices.
  std::int64_t nbytes() const { return slices_ ? slices_->values.nbytes() : dense_.defined() ? dense_.nbytes() : 0; }

  /// The gradient as a tensor of the source's shape; slices are added into zeros. Throws GradientError for none.
  Tensor dense() const&;
  Tensor dense() &&;
  /// The dense tensor as it is; undefined for slices and none.
  const Tensor& tensor() const { return dense_; }

 private:
  Tensor dense_;
  std::shared_ptr<const IndexedSlices> slices_;
};

}  // namespace tapedeck
