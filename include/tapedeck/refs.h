// Refs: how ops and kernels pass lists of tensors.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck {

/// A list of tensors that somebody else holds.
class Refs {
 public:
  constexpr Refs() = default;
  constexpr Refs(const Tensor* const* x, int n) : x_(x), n_(n) {}
  /// The i-th tensor, unchecked, and how many there are.
  const Tensor& operator[](int i) const { return *x_[i]; }
  int size() const { return n_; }

 private:
  const Tensor* const* x_ = nullptr;
  int n_ = 0;
};

}   // namespace tapedeck
