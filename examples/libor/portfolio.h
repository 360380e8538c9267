// A portfolio of swaptions in the LIBOR market model, as a function of one path of its noise: of doubles, or
// of tensors with an element for each of many paths. The model, the portfolio and its numbers are those of
// M. Giles and P. Glasserman, Smoking adjoints: fast Monte Carlo Greeks, Risk 19 (2006), 88-92, and of the
// test program published with it.
#pragma once
#include <cmath>
#include <vector>

#include <tapedeck/ops.h>

namespace libor {

/// Time runs in quarters of a year. There is a forward rate for each of 80 quarters; after the first 40, all
/// options expire.
inline constexpr std::size_t kRates = 80, kSteps = 40;
inline constexpr double kQuarter = 0.25;   // of a year

/// An option, on 100 units of money, to pay a fixed rate in so many quarters in exchange for the market's.
struct Swaption {
  std::size_t payments;
  double rate;
};
inline constexpr Swaption kPortfolio[] = {{4, .045}, {4, .05},   {4, .055},  {8, .045},  {8, .05},
                                          {8, .055}, {20, .045}, {20, .05},  {20, .055}, {28, .045},
                                          {28, .05}, {28, .055}, {40, .045}, {40, .05},  {40, .055}};

inline double reciprocal(double x) { return 1 / x; }
inline double relu(double x) { return x > 0 ? x : 0; }

/// The value today of what the portfolio pays on a path. `rates`: today's 80 forward rates, each for one
/// year; `volatilities`: of a rate by the quarters that are left until it is fixed, 79 or more, of the square
/// root of a year; `noise`: a standard normal number for each of 40 quarters.
template <class Number> Number value(std::vector<Number> rates, const std::vector<Number>& volatilities,
                                     const std::vector<Number>& noise) {
  using std::exp, std::log;
  std::vector<Number> logarithms, drifts, halves;
  for (const Number& rate : rates)
    logarithms.push_back(log(rate));
  for (const Number& volatility : volatilities) {
    drifts.push_back(kQuarter * volatility);
    halves.push_back(0.5 * volatility * drifts.back());
  }
  for (std::size_t n = 0; n < kSteps; ++n) {
    const Number shock = std::sqrt(kQuarter) * noise[n];
    Number sum = 0.0 * shock;
    for (std::size_t i = n + 1; i < kRates; ++i) {
      const std::size_t left = i - n - 1;
      const Number discount = reciprocal(1.0 + kQuarter * rates[i]);
      sum = sum + (volatilities[left] - volatilities[left] * discount);
      logarithms[i] = logarithms[i] + (drifts[left] * sum + (volatilities[left] * shock - halves[left]));
      rates[i] = exp(logarithms[i]);
    }
  }

  // When the options expire: the price of a bond that ends in so many quarters, and of a payment of 1 a year
  // until then.
  std::vector<Number> bonds, annuities;
  for (std::size_t i = kSteps; i < kRates; ++i) {
    const Number discount = reciprocal(1.0 + kQuarter * rates[i]);
    bonds.push_back(bonds.empty() ? discount : bonds.back() * discount);
    const Number payment = kQuarter * bonds.back();
    annuities.push_back(annuities.empty() ? payment : annuities.back() + payment);
  }
  Number all = 0.0 * bonds[0];
  for (const Swaption& option : kPortfolio)
    all = all + 100.0 * relu(1.0 - bonds[option.payments - 1] - option.rate * annuities[option.payments - 1]);
  for (std::size_t i = 0; i < kSteps; ++i)   // each rate is now what it was when it was fixed
    all = all * reciprocal(1.0 + kQuarter * rates[i]);
  return all;
}

}   // namespace libor
