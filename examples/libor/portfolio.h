// A portfolio of swaptions in the LIBOR market model: its value on one path of the noise, as a template for
// doubles and for tensors with an element for each of many paths; its mean over paths, by tensors and by a
// loop; and the derivatives of that. Model, portfolio and numbers are those of M. Giles and P. Glasserman,
// Smoking adjoints: fast Monte Carlo Greeks, Risk 19 (2006), 88-92, and of their test program.
#pragma once
#include <array>
#include <cmath>
#include <vector>

#include <tapedeck/tapedeck.h>

namespace libor {

/// Time runs in quarters of a year. There is a forward rate for each of 80 quarters; after the first 40, all
/// options expire.
inline constexpr std::size_t kRates = 80, kSteps = 40;
inline constexpr double kQuarter = 0.25;   // of a year

/// The right to pay a fixed rate on 100 units of money, and receive the market's, for so many quarters.
struct Swaption {
  std::size_t payments;
  double rate;
};
inline constexpr Swaption kPortfolio[] = {{4, .045}, {4, .05},   {4, .055},  {8, .045},  {8, .05},
                                          {8, .055}, {20, .045}, {20, .05},  {20, .055}, {28, .045},
                                          {28, .05}, {28, .055}, {40, .045}, {40, .05},  {40, .055}};

inline double reciprocal(double x) { return 1 / x; }
inline double relu(double x) { return x > 0 ? x : 0; }

/// The value today of what the portfolio pays on a path. `rates`: today's 80 forward rates, each for a year.
/// `volatilities`: number k is that of a rate k quarters before the one in which it is fixed, for the square
/// root of a year; the first 79 are used. `noise`: a standard normal number for each of 40 quarters.
template <class Number> Number value(std::vector<Number> rates, const std::vector<Number>& volatilities,
                                     const std::vector<Number>& noise) {
  using std::exp, std::log;
  std::vector<Number> logarithms, drift_factors, half_variances;
  for (const Number& rate : rates)
    logarithms.push_back(log(rate));
  for (const Number& volatility : volatilities) {
    drift_factors.push_back(kQuarter * volatility);
    half_variances.push_back(0.5 * volatility * drift_factors.back());
  }
  for (std::size_t n = 0; n < kSteps; ++n) {
    const Number shock = std::sqrt(kQuarter) * noise[n];
    Number drift = 0.0 * shock;
    for (std::size_t i = n + 1; i < kRates; ++i) {
      const std::size_t k = i - n - 1;
      const Number discount = reciprocal(1.0 + kQuarter * rates[i]);
      drift = drift + (volatilities[k] - volatilities[k] * discount);
      logarithms[i] =
          logarithms[i] + (drift_factors[k] * drift + (volatilities[k] * shock - half_variances[k]));
      rates[i] = exp(logarithms[i]);
    }
  }

  // When the options expire: the price of a bond that ends after k + 1 quarters, and of a payment of 1 a year
  // until then.
  std::vector<Number> bonds, annuities;
  for (std::size_t i = kSteps; i < kRates; ++i) {
    const Number discount = reciprocal(1.0 + kQuarter * rates[i]);
    bonds.push_back(bonds.empty() ? discount : bonds.back() * discount);
    const Number payment = kQuarter * bonds.back();
    annuities.push_back(annuities.empty() ? payment : annuities.back() + payment);
  }
  Number payoff = 0.0 * bonds[0];
  for (const Swaption& s : kPortfolio)
    payoff = payoff + 100.0 * relu(1.0 - bonds[s.payments - 1] - s.rate * annuities[s.payments - 1]);
  for (std::size_t i = 0; i < kSteps; ++i)   // each rate is now what it was when it was fixed
    payoff = payoff * reciprocal(1.0 + kQuarter * rates[i]);
  return payoff;
}

/// The numbers of a vector, each as often as there are paths.
inline std::vector<tapedeck::Tensor> for_all_paths(const tapedeck::Tensor& numbers, std::int64_t paths) {
  std::vector<tapedeck::Tensor> each;
  for (const tapedeck::Tensor& number : tapedeck::unstack(numbers, 0))
    each.push_back(tapedeck::broadcast_to(number, {paths}));
  return each;
}

/// The mean value on the paths of the noise [40, paths].
inline tapedeck::Tensor price(const tapedeck::Tensor& rates, const tapedeck::Tensor& volatilities,
                              const tapedeck::Tensor& noise) {
  const std::int64_t paths = noise.shape()[1];
  return tapedeck::mean(
      value(for_all_paths(rates, paths), for_all_paths(volatilities, paths), tapedeck::unstack(noise, 0)));
}

/// The price, and its derivatives in all rates (delta) and in all volatilities (vega).
inline std::array<tapedeck::Tensor, 3> greeks(const tapedeck::Tensor& rates,
                                              const tapedeck::Tensor& volatilities,
                                              const tapedeck::Tensor& noise) {
  tapedeck::GradientTape tape;
  tape.watch(rates), tape.watch(volatilities);
  const tapedeck::Tensor mean = price(rates, volatilities, noise);
  const auto [delta, vega] = tape.gradient(mean, rates, volatilities);
  return {mean, delta.dense(), vega.dense()};
}

/// The price by a loop over paths.
inline double price_by_hand(const tapedeck::Tensor& rates, const tapedeck::Tensor& volatilities,
                            const tapedeck::Tensor& noise) {
  using Numbers = std::vector<double>;
  const Numbers r = rates.to_vector(), v = volatilities.to_vector(),
                z = tapedeck::transpose(noise).to_vector();
  double sum = 0;
  for (auto path = z.begin(); path != z.end(); path += kSteps)
    sum += value(r, v, Numbers(path, path + kSteps));
  return sum / static_cast<double>(noise.shape()[1]);
}

}   // namespace libor
