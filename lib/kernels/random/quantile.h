// Quantiles of distributions, for sampling by inversion: each uniform number yields one sample,
// deterministically.
#pragma once

namespace tapedeck::kernels {

/// A probability p in (0, 1) together with 1 - p, both accurate to the last bit.
struct Probability {
  double p, q;
  Probability complement() const { return {q, p}; }
};

// A quantile function returns the value below which its distribution has probability p. NaN for invalid
// parameters.

/// The gamma distribution, of density yᵃ⁻¹ e⁻ʸ / Γ(a), a > 0.
double gamma_quantile(double a, Probability u);
/// The derivative of the quantile y with respect to a, at fixed probability.
double gamma_grad(double a, double y);
/// ∂²P(a, y)/∂a² divided by the density of gamma_quantile at y.
double second_igamma_grad_over_density(double a, double y);
/// The Poisson distribution, rate >= 0: the smallest count whose cumulative probability reaches p.
double poisson_quantile(double rate, Probability u);
/// The binomial distribution: successes in n trials, n an integer, of probability prob.
double binomial_quantile(double n, double prob, Probability u);
/// The standard normal distribution truncated to [low, high], which may be infinite.
double truncated_normal_quantile(double low, double high, Probability u);

}   // namespace tapedeck::kernels
