// Refs: the type in which ops and kernels pass lists of tensors.
#pragma once
#include "tapedeck/tensor.h"

namespace tapedeck {

namespace detail {
[[noreturn]] TAPEDECK_EXPORT void throw_no_tensor(int i, int n);
}

/// A list of references to tensors that it does not own.
class Refs {
 public:
  constexpr Refs() = default;
  constexpr Refs(const Tensor* const* x, int n) : x_(x), n_(n) {}
  /// The i-th tensor. Throws ArgumentError if there are not so many.
  const Tensor& operator[](int i) const {
    if (i < 0 || i >= n_) [[unlikely]]
      detail::throw_no_tensor(i, n_);
    return *x_[i];
  }
  /// The number of tensors.
  int size() const { return n_; }

 private:
  const Tensor* const* x_ = nullptr;
  int n_ = 0;
};

}   // namespace tapedeck
