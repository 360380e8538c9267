// Sensitivities of option prices. The Black-Scholes price is a few ops: its first and second derivatives, by
// nested tapes, are compared with the textbook formulas. A basket of eight assets has no closed formula: it
// is priced by Monte Carlo simulation, and one backward pass computes all its sensitivities.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <tuple>

#include <fmt/format.h>
#include <tapedeck/debug.h>
#include <tapedeck/gradcheck.h>
#include <tapedeck/tapedeck.h>

#include "../common/example.h"

namespace td = tapedeck;

namespace {

constexpr double kStrike = 100, kVolatility = 0.25, kRate = 0.03, kYears = 1.5;

td::Tensor normal_cdf(const td::Tensor& x) { return 0.5 * td::erfc(x * -std::numbers::sqrt2 / 2); }

/// A call option on an asset without dividends.
td::Tensor black_scholes(const td::Tensor& spot, const td::Tensor& volatility, const td::Tensor& rate,
                         const td::Tensor& years) {
  const td::Tensor deviation = volatility * td::sqrt(years);
  const td::Tensor d1 = (td::log(spot / kStrike) + (rate + 0.5 * td::square(volatility)) * years) / deviation;
  return spot * normal_cdf(d1) - kStrike * td::exp(-rate * years) * normal_cdf(d1 - deviation);
}

struct Formulas {
  double price, delta, vega, rho, theta, gamma, vanna, volga;
};
Formulas formulas(double spot) {
  const double root = std::sqrt(kYears), deviation = kVolatility * root, discount = std::exp(-kRate * kYears);
  const double d1 = (std::log(spot / kStrike) + (kRate + 0.5 * kVolatility * kVolatility) * kYears) /
                    deviation,
               d2 = d1 - deviation;
  const auto cdf = [](double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); };
  const double density = std::exp(-0.5 * d1 * d1) / std::sqrt(2 * std::numbers::pi),
               vega = spot * density * root;
  return {.price = spot * cdf(d1) - kStrike * discount * cdf(d2),
          .delta = cdf(d1),
          .vega = vega,
          .rho = kStrike * kYears * discount * cdf(d2),
          .theta = spot * density * kVolatility / (2 * root) +
                   kRate * kStrike * discount * cdf(d2),   // the derivative with respect to the time to
                                                           // maturity
          .gamma = density / (spot * deviation),
          .vanna = -density * d2 / kVolatility,
          .volga = vega * d1 * d2 / kVolatility};
}

struct Greek {
  const char* name;
  td::Tensor ours;
  double Formulas::*formula;
};

/// One option for each spot price. The prices are independent, so the gradient of their sum contains the
/// derivative of each. Draws delta and gamma.
void compare_with_formulas(Run& run) {
  const td::Tensor spot = td::linspace(50, 170, 121, td::DType::f64);
  const auto everywhere = [&](double value) { return td::full_like(spot, value); };
  const td::Tensor volatility = everywhere(kVolatility), rate = everywhere(kRate), years = everywhere(kYears);

  td::GradientTape outer({.persistent = true}), inner;
  for (const td::Tensor& x : {spot, volatility, rate, years})
    outer.watch(x), inner.watch(x);
  const td::Tensor price = black_scholes(spot, volatility, rate, years);
  const auto [delta, vega, rho, theta] = inner.gradient(price, spot, volatility, rate, years);
  outer.stop();
  const Greek greeks[] = {{"price", price, &Formulas::price},
                          {"delta", delta, &Formulas::delta},
                          {"vega", vega, &Formulas::vega},
                          {"rho", rho, &Formulas::rho},
                          {"theta", theta, &Formulas::theta},
                          {"gamma", outer.gradient(delta, spot), &Formulas::gamma},
                          {"vanna", outer.gradient(delta, volatility), &Formulas::vanna},
                          {"volga", outer.gradient(vega, volatility), &Formulas::volga}};

  const std::vector<double> spots = spot.to_vector();
  double worst = 0;
  fmt::print("Black–Scholes at {} spots   at spot 100   largest error\n", spots.size());
  for (const Greek& greek : greeks) {
    const std::vector<double> ours = greek.ours.to_vector();
    double error = 0;
    for (std::size_t i = 0; i < spots.size(); ++i) {
      const double exact = formulas(spots[i]).*greek.formula;
      error = std::max(error, std::abs(ours[i] - exact) / std::max(1.0, std::abs(exact)));
    }
    worst = std::max(worst, error);
    fmt::print("{:>23} {:>15.6f} {:>15.1e}\n", greek.name, ours[50], error);
  }
  run.claim(worst < 1e-12, "all are within 1e-12 of the formulas, of their size where it is above 1");

  const auto chart = [&](double left, const Greek& greek, const char* title) {
    Curve line{.colour = kPaleBlue, .name = "formula", .width = 5},
        dots{.colour = kBlue, .name = "tape", .width = 1.5, .dots = true};
    line.x = dots.x = spots, dots.y = greek.ours.to_vector();
    for (const double s : spots)
      line.y.push_back(formulas(s).*greek.formula);
    run.picture.chart({.x = left, .width = 400, .height = 340}, title, {.label = "spot"},
                      {.label = greek.name}, std::vector{line, dots});
  };
  chart(0, greeks[1], "First order:");
  chart(400, greeks[5], "Second order:");
}

constexpr std::int64_t kAssets = 8;

/// A call on the mean of eight assets with equal pairwise correlations: the mean over paths. Each row of
/// `noise` (standard normal numbers) is a path.
td::Tensor basket_price(const td::Tensor& noise, const td::Tensor& spots, const td::Tensor& volatilities,
                        const td::Tensor& rate, const td::Tensor& years, const td::Tensor& strike,
                        const td::Tensor& correlation) {
  const td::Tensor correlations = correlation + (1.0 - correlation) * td::eye(kAssets, td::DType::f64);
  const td::Tensor drift = (rate - 0.5 * td::square(volatilities)) * years,
                   deviation = volatilities * td::sqrt(years);
  const td::Tensor ends =
      spots * td::exp(drift + deviation * td::matmul(noise, td::transpose(td::cholesky(correlations))));
  return td::exp(-rate * years) * td::mean(td::relu(td::mean(ends, {1}) - strike));
}

void simulate_basket(Run& run) {
  const std::int64_t paths = run.quick ? 1 << 14 : 1 << 17;
  const td::Tensor noise = td::random::normal({paths, kAssets}, {.seed = 1}, td::DType::f64);
  const auto f64 = [](double value) { return td::tensor(value, td::DType::f64); };
  const std::vector<td::Tensor> parameters = {td::linspace(80, 115, kAssets, td::DType::f64),
                                              td::linspace(0.15, 0.4, kAssets, td::DType::f64),
                                              f64(kRate),
                                              f64(kYears),
                                              f64(kStrike),
                                              f64(0.6)};
  const auto price = [&](std::span<const td::Tensor> p) {
    return basket_price(noise, p[0], p[1], p[2], p[3], p[4], p[5]);
  };

  // Takes the shortest of several alternating runs.
  td::Tensor value;
  std::vector<td::Gradient> sensitivities;
  double alone = 1e9, together = 1e9;
  for (int i = 0; i < 25; ++i) {
    alone = std::min(alone, cpu_seconds([&] { price(parameters); }));
    together = std::min(together, cpu_seconds([&] {
                          std::tie(value, sensitivities) = td::value_and_grad(price, parameters);
                        }));
  }
  const auto bytes_of = [](const auto& f) {
    td::Profile profile;
    f();
    profile.stop();
    std::int64_t bytes = 0;
    for (const td::OpCost& cost : profile.costs())
      bytes += cost.bytes + cost.rule_bytes;
    return bytes;
  };
  const std::int64_t bytes_alone = bytes_of([&] { price(parameters); }),
                     bytes_together = bytes_of([&] { td::value_and_grad(price, parameters); });
  fmt::print("\nbasket of {} assets, {} paths: price {:.4f}\n", kAssets, paths, value.item());
  fmt::print("the price alone {:.2f} ms, with {} sensitivities {:.2f} ms: {:.2f} times\n", 1e3 * alone,
             2 * kAssets + 4, 1e3 * together, together / alone);
  fmt::print("results of ops and rules take {:.2f} times the bytes\n",
             static_cast<double>(bytes_together) / static_cast<double>(bytes_alone));
  run.claim(bytes_together < 3 * bytes_alone,
            "price and all sensitivities write at most 3 times the bytes of the price alone");
  // With such a small step no path crosses the strike.
  run.claim(td::check_vjp(price, parameters, {.step = 1e-7, .tolerance = 1e-6}),
            "the sensitivities agree with differences on the same paths");

  const std::vector<double> delta = sensitivities[0].to_vector(), vega = sensitivities[1].to_vector();
  fmt::print("asset  spot  volatility   delta    vega\n");
  for (std::size_t i = 0; i < delta.size(); ++i)
    fmt::print("{:>5} {:>5.0f} {:>11.3f} {:>7.4f} {:>7.3f}\n", i + 1, parameters[0].to_vector()[i],
               parameters[1].to_vector()[i], delta[i], vega[i]);
  const auto scalar = [&](std::size_t i) { return sensitivities[i].item(); };
  fmt::print("rho {:.4f}, theta {:.4f}, in the strike {:.4f}, in the correlation {:.4f}\n", scalar(2),
             scalar(3), scalar(4), scalar(5));

  run.picture.chart(
      {.x = 800, .width = 400, .height = 340}, "Basket of eight assets:", {.label = "asset", .whole = true},
      {.label = "delta"},
      std::vector<Curve>{{.x = counted(delta.size()), .y = delta, .name = "tape", .width = 5, .dots = true}});
}

void example(Run& run) {
  compare_with_formulas(run);
  simulate_basket(run);
}

}   // namespace

int main(int argc, char** argv) {
  return run_example(argc, argv, "sensitivities of option prices, by formulas and by simulation", example);
}
