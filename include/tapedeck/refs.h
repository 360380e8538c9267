// Refs: the type in which ops and kernels pass lists of tensors.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck {

/// A list of references to tensors that it does not own.
class Refs {
 public:
  constexpr Refs() = default;
  constexpr Refs(const Tensor* const* x, int n) : x_(x), n_(n) {}
  /// The i-th tensor, unchecked, and the number of tensors.
  const Tensor& operator[](int i) const { return *x_[i]; }
  int size() const { return n_; }

 private:
  const Tensor* const* x_ = nullptr;
  int n_ = 0;
};

}   // namespace tapedeck
