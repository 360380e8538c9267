// Quantiles of distributions, to draw from them: one uniform number gives one number, and the same one for
// the same parameters.
#pragma once

namespace tapedeck::kernels {

/// A number in (0, 1) as its distances from both ends, p from 0 and q = 1 - p from 1, each to its last bit.
struct Probability {
  double p, q;
  Probability complement() const { return {q, p}; }
};

// The number that has p of the distribution below it and q above. NaN for parameters that the distribution
// does not have.

/// Density yᵃ⁻¹ e⁻ʸ / Γ(a); a above 0.
double gamma_quantile(double a, Probability u);
/// Its derivative in a where part stays, at the quantile y.
double gamma_grad(double a, double y);
/// ∂²P(a, y)/∂a² over that density.
double second_igamma_grad_over_density(double a, double y);
/// The smallest number of events that enough of the distribution is at or below; rate at least 0.
double poisson_quantile(double rate, Probability u);
/// The same for successes in n trials, a whole number, of probability prob.
double binomial_quantile(double n, double prob, Probability u);
/// The standard normal distribution's part between low and high, which may be infinite.
double truncated_normal_quantile(double low, double high, Probability u);

}   // namespace tapedeck::kernels
