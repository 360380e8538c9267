// Random numbers from a key. Element i depends on the key and i alone, so threads may fill any part.
#pragma once
#include "tapedeck/ops/random.h"

namespace tapedeck::kernels {

random::Key split(const random::Key& key, std::uint64_t i);
/// Fills y, f32 or f64, with numbers in [low, high).
void uniform(const random::Key& key, double low, double high, Tensor& y);
/// Fills y, f32 or f64, with standard normal numbers.
void normal(const random::Key& key, Tensor& y);
/// The same within two standard deviations, where there are no others.
void truncated_normal(const random::Key& key, Tensor& y);
/// Fills y, i64, with 0 … n - 1 in random order.
void permutation(const random::Key& key, Tensor& y);

/// y = x · scale, or 0 where dropped, of one x or of several in front of each other.
void drop(const Tensor& x, const Tensor& dropped, double scale, Tensor& y);

}  // namespace tapedeck::kernels
