// Random numbers from a key. Element i depends on the key and i alone, so threads may fill any part.
#pragma once
#include "tapedeck/random_key.h"
#include "tapedeck/tensor.h"

namespace tapedeck::kernels {

random::Key split(const random::Key& key, std::uint64_t i);
/// Fills y, f32 or f64, with numbers in [low, high).
void uniform(const random::Key& key, double low, double high, Tensor& y);
/// Fills y, f32 or f64, with standard normal numbers.
void normal(const random::Key& key, Tensor& y);
/// The same within two standard deviations, where there are no others.
void truncated_normal(const random::Key& key, Tensor& y);
/// Fills p, f32 or f64, with numbers in (0, 1), and q, of its spec, with 1 - p to its last bit: the parts
/// that the quantiles below are at.
void parts(const random::Key& key, Tensor& p, Tensor& q);
// The distributions fill y, f32 or f64, from parameters of its spec, or of one element.
void gamma(const random::Key& key, const Tensor& alpha, Tensor& y);
void poisson(const random::Key& key, const Tensor& rate, Tensor& y);
void binomial(const random::Key& key, const Tensor& counts, const Tensor& probs, Tensor& y);
void parameterized_truncated_normal(const random::Key& key, const Tensor& mean, const Tensor& stddev,
                                    const Tensor& low, const Tensor& high, Tensor& y);
/// y[r, i] = weights[r, 0] + … + weights[r, i], in f64.
void running_sums(const Tensor& weights, Tensor& y);
/// Fills y, i64 of shape [..., n], with indices of the k weights that sums, of shape [rows, k], are of.
void categorical(const random::Key& key, const Tensor& sums, Tensor& y);
/// Fills y, i64, with 0 … n - 1 in random order.
void permutation(const random::Key& key, Tensor& y);

/// y = x · scale, or 0 where dropped, of one x or of several in front of each other.
void drop(const Tensor& x, const Tensor& dropped, double scale, Tensor& y);

}   // namespace tapedeck::kernels
