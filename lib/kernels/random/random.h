// Random numbers from a key (counter-based). Element i of samples depends on the key, i and parameters alone,
// so results do not depend on the number of threads.
#pragma once
#include <optional>

#include "tapedeck/random_key.h"
#include "tapedeck/tensor.h"

namespace tapedeck::kernels {

random::Key split(const random::Key& key, std::uint64_t i);
/// Fills y, f32 or f64, with numbers in [low, high).
void uniform(const random::Key& key, double low, double high, Tensor& y);
/// Fills y, f32 or f64, with standard normal numbers.
void normal(const random::Key& key, Tensor& y);
/// Fills y, f32 or f64, with standard normal numbers truncated to [-2, 2].
void truncated_normal(const random::Key& key, Tensor& y);
/// Fills p, f32 or f64, with numbers in (0, 1) and q, of the same spec, with 1 - p to the last bit: the
/// probabilities that the distributions below invert.
void probabilities(const random::Key& key, Tensor& p, Tensor& q);
// Samples fill y, f32 or f64. Parameters have y's spec or one element.
void gamma(const random::Key& key, const Tensor& alpha, Tensor& y);
void poisson(const random::Key& key, const Tensor& rate, Tensor& y);
void binomial(const random::Key& key, const Tensor& counts, const Tensor& probs, Tensor& y);
void parameterized_truncated_normal(const random::Key& key, const Tensor& mean, const Tensor& stddev,
                                    const Tensor& low, const Tensor& high, Tensor& y);
/// Cumulative sums, in f64: y[r, i] = weights[r, 0] + … + weights[r, i]. Returns the first row whose sum is
/// not above 0, if there is one.
std::optional<std::int64_t> running_sums(const Tensor& weights, Tensor& y);
/// Fills y, i64 of shape [..., n], with category indices drawn by the cumulative weights `sums`, [rows, k].
void categorical(const random::Key& key, const Tensor& sums, Tensor& y);
/// Fills y, i64, with a random permutation of 0 … n - 1.
void permutation(const random::Key& key, Tensor& y);

/// y = x · scale, or 0 where `dropped`. x may have further axes in front, over which `dropped` is broadcast.
void drop(const Tensor& x, const Tensor& dropped, double scale, Tensor& y);

}   // namespace tapedeck::kernels
