// The difference between two tensors.
#pragma once
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>

#include "core/bytes.h"
#include "tapedeck/tensor.h"

namespace tapedeck {

/// The largest difference between corresponding elements; the shapes must be equal. Two NaN are equal, and
/// one is infinitely far from a number.
inline double worst(const Tensor& a, const Tensor& b) {
  REQUIRE(a.shape() == b.shape());
  const std::vector<double> u = a.to_vector(), v = b.to_vector();
  double w = 0;
  for (std::size_t i = 0; i < u.size(); ++i) {
    const bool equal = u[i] == v[i] || (std::isnan(u[i]) && std::isnan(v[i]));
    const double apart = equal ? 0 : std::abs(u[i] - v[i]);
    w = std::max(w, std::isnan(apart) ? INFINITY : apart);
  }
  return w;
}
/// Whether both have the same spec and the same bytes.
inline bool same_bits(const Tensor& a, const Tensor& b) {
  return a.spec() == b.spec() && std::memcmp(a.raw(), b.raw(), static_cast<std::size_t>(a.nbytes())) == 0;
}

}   // namespace tapedeck
