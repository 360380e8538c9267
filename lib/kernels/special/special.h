// Scalar special functions in double. NaN outside of a function's domain, and for NaN.
#pragma once
#include <complex>

namespace tapedeck::kernels {

// gamma.cpp
double erfinv(double x);
double erfcinv(double x);
double ndtri(double x);
double lgamma(double x);
double digamma(double x);
double igamma(double a, double x);
double igammac(double a, double x);
/// igamma and igammac to the precision of f32.
double short_igamma(double a, double x);
double short_igammac(double a, double x);
double betainc(double a, double b, double x);
/// The gamma density xᵃ⁻¹ e⁻ˣ / Γ(a), for a > 0 and x ≥ 0.
double gamma_density(double a, double x);

// zeta.cpp
double zeta(double s, double q);
double trigamma(double x);
double polygamma(double n, double x);

// igamma_grad.cpp
inline constexpr int kLargestOrder = 8;
/// The derivative of igamma with respect to a, of an order up to kLargestOrder.
double igamma_grad(double a, double x, int order);

// integrals.cpp
double dawsn(double x);
double expint(double x);
double fresnel_sin(double x);
double fresnel_cos(double x);
double spence(double x);
/// Dawson's integral by its power series, and exp(i πx²/2), for derivatives (derivative.h).
long double dawsn_series(double x);
std::complex<long double> fresnel_phase(double x);

// bessel.cpp
double bessel_i0(double x);
double bessel_i0e(double x);
double bessel_i1(double x);
double bessel_i1e(double x);
double bessel_j0(double x);
double bessel_j1(double x);
double bessel_k0(double x);
double bessel_k0e(double x);
double bessel_k1(double x);
double bessel_k1e(double x);
double bessel_y0(double x);
double bessel_y1(double x);

}   // namespace tapedeck::kernels
