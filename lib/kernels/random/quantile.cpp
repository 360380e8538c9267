// Quantiles of the gamma, Poisson, binomial and truncated normal distributions. All are computed from the
// smaller of the two tail probabilities, to keep full precision.
#include "kernels/random/quantile.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <boost/math/special_functions/beta.hpp>
#include <boost/math/special_functions/gamma.hpp>

#include "kernels/special/boost_math.h"
#include "kernels/special/constants.h"
#include "kernels/special/special.h"

namespace tapedeck::kernels {
namespace {

constexpr double kSqrtTwo = 1.4142135623730951;
// Above this variance the quantile of a discrete distribution is its normal expansion, exact to 10⁻⁷ standard
// deviations.
constexpr double kLargeVariance = 1e5;
// Up to this mean, counts are searched from 0 upward.
constexpr double kSmallMean = 10;

double normal_quantile(Probability u) {
  return u.p < 0.5 ? -kSqrtTwo * erfcinv(2 * u.p) : kSqrtTwo * erfcinv(2 * u.q);
}
double normal_below(double x) { return 0.5 * std::erfc(-x / kSqrtTwo); }

/// The quantile of a distribution of mean 0, variance 1 and the given skewness and excess kurtosis, where z
/// is the normal quantile: Cornish–Fisher expansion, Abramowitz & Stegun 26.2.49.
double expanded(double z, double skewness, double kurtosis) {
  return z + skewness * (z * z - 1) / 6 + kurtosis * z * (z * z - 3) / 24 -
         skewness * skewness * z * (2 * z * z - 5) / 36;
}

/// Mean, variance, skewness and excess kurtosis of a discrete distribution.
struct Moments {
  double mean, variance, skewness, kurtosis;
};

/// The smallest count in [0, most] whose cumulative probability reaches u. density(k) is P(k), ratio(k) is
/// P(k) / P(k - 1), below(k) is the probability of at most k, and above(k) the probability of more than k.
template <class Density, class Ratio, class Below, class Above>
double count_quantile(const Moments& m, double most, Probability u, Density density, Ratio ratio, Below below,
                      Above above) {
  if (m.mean <= kSmallMean) {
    double k = 0, chance = density(0), sum = chance;
    while (sum < u.p && k < most) {
      chance *= ratio(++k);
      if (sum + chance == sum) break;
      sum += chance;
    }
    return k;
  }
  // Continuity correction: count k covers k - 1/2 to k + 1/2 of the expansion.
  const double guess =
      std::ceil(m.mean + std::sqrt(m.variance) * expanded(normal_quantile(u), m.skewness, m.kurtosis) - 0.5);
  double k = std::clamp(guess, 0.0, most);
  if (m.variance > kLargeVariance || k == most) return k;
  double chance = density(k);
  if (u.p <= u.q) {
    double sum = below(k);
    if (sum >= u.p) {
      for (; k > 0 && sum - chance >= u.p; --k)
        sum -= chance, chance /= ratio(k);
      return k;
    }
    while (sum < u.p && k < most)
      sum += chance *= ratio(++k);
    return k;
  }
  double rest = above(k);
  if (rest <= u.q) {
    for (; k > 0 && rest + chance <= u.q; --k)
      rest += chance, chance /= ratio(k);
    return k;
  }
  while (rest > u.q && k < most)
    rest -= chance *= ratio(++k);
  return k;
}

/// Mills' ratio, the normal tail probability above t divided by the density at t, for t >= 5: the continued
/// fraction of DLMF 7.9.3.
double mills(double t) {
  double tail = t;
  for (int k = 20; k > 0; --k)
    tail = t + k / tail;
  return 1 / tail;
}

/// The quantile of the normal distribution truncated to [t, far], for t >= 5.
double tail_quantile(double t, double far, Probability u) {
  const double at_t = mills(t),
               beyond = std::isinf(far) ? 0 : std::exp((t - far) * (t + far) / 2) * mills(far) / at_t;
  // log of the ratio of the tail probabilities above the quantile and above t
  const double wanted = u.p < 0.5 ? std::log1p(-u.p * (1 - beyond)) : std::log(u.q + u.p * beyond);
  double y = std::sqrt(t * t - 2 * wanted);
  for (int i = 0; i < 8; ++i) {
    const double at_y = mills(y), step = ((t - y) * (t + y) / 2 + std::log(at_y / at_t) - wanted) * at_y;
    y += step;
    if (std::fabs(step) <= 1e-16 * y) break;
  }
  return std::clamp(y, t, far);
}

/// The quantile of the gamma distribution, by an expansion for χ² with n = 2a degrees of freedom in the
/// normal quantile z: Goldberg & Levine 1946. Exact to rounding for a >= 10⁵.
double large_gamma_quantile(double a, double z) {
  const double n = 2 * a, r = std::sqrt(2 * n), z2 = z * z;
  const double rest = (z2 - 1) * 2 / 3 + z * (z2 - 7) / (9 * r) - (z2 * (6 * z2 + 14) - 32) / (405 * n) +
                      z * (z2 * (9 * z2 + 256) - 433) / (4860 * n * r) +
                      (z2 * (z2 * (12 * z2 - 243) - 923) + 1472) / (25515 * n * n);
  return (n + (r * z + rest)) / 2;
}

}   // namespace

double gamma_quantile(double a, Probability u) {
  if (!(a > 0) || std::isinf(a)) return kNaN;
  if (a >= 1e5) return large_gamma_quantile(a, normal_quantile(u));
  return u.p < 0.5 ? boost::math::gamma_p_inv(a, u.p, Quiet()) : boost::math::gamma_q_inv(a, u.q, Quiet());
}

double poisson_quantile(double rate, Probability u) {
  if (!(rate >= 0) || std::isinf(rate)) return kNaN;
  return count_quantile(
      {rate, rate, 1 / std::sqrt(rate), 1 / rate}, std::numeric_limits<double>::max(), u,
      [=](double k) { return k == 0 ? std::exp(-rate) : gamma_density(k + 1, rate); },
      [=](double k) { return rate / k; }, [=](double k) { return igammac(k + 1, rate); },
      [=](double k) { return igamma(k + 1, rate); });
}

double binomial_quantile(double n, double prob, Probability u) {
  if (!(n >= 0 && prob >= 0 && prob <= 1) || std::isinf(n) || n != std::floor(n)) return kNaN;
  // For prob > 1/2 counts failures: the smallest count of successes that reaches probability p belongs to the
  // largest count of failures.
  const bool mirrored = prob > 0.5;
  const double p = mirrored ? 1 - prob : prob, q = mirrored ? prob : 1 - prob, variance = n * p * q;
  const double k = count_quantile(
      {n * p, variance, (q - p) / std::sqrt(variance), (1 - 6 * p * q) / variance}, n,
      mirrored ? u.complement() : u,
      [=](double i) {
        return i == 0 ? std::exp(n * std::log1p(-p))
                      : boost::math::ibeta_derivative(i + 1, n - i + 1, p, Quiet()) / (n + 1);
      },
      [=](double i) { return (n - i + 1) / i * (p / q); },
      [=](double i) { return boost::math::ibetac(i + 1, n - i, p, Quiet()); },
      [=](double i) { return boost::math::ibeta(i + 1, n - i, p, Quiet()); });
  return mirrored ? n - k : k;
}

double truncated_normal_quantile(double low, double high, Probability u) {
  if (!(low < high)) return kNaN;
  if (low > 0) return -truncated_normal_quantile(-high, -low, u.complement());
  if (high < -5) return -tail_quantile(-high, -low, u.complement());
  const double below = normal_below(low) * u.q + normal_below(high) * u.p;
  const double above = normal_below(-low) * u.q + normal_below(-high) * u.p;
  return std::clamp(normal_quantile({below, above}), low, high);
}

}   // namespace tapedeck::kernels
