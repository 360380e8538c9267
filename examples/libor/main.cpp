// The price of a portfolio of swaptions by Monte Carlo simulation of 80 interest rates, and its derivatives
// with respect to all of them and to all their volatilities. The function of one path is recorded for a
// thousand paths at a time; threads share the replays.
#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <future>
#include <thread>

#include <fmt/format.h>
#include <tapedeck/compile.h>
#include <tapedeck/tapedeck.h>

#include "../common/example.h"
#include "portfolio.h"

namespace td = tapedeck;

namespace {

using libor::kRates;
using Numbers = std::vector<double>;
using Greeks = std::array<td::Tensor, 3>;
constexpr std::int64_t kPaths = 1024;   // in a replay

td::Tensor noise_of(std::size_t replay) {
  return td::random::normal({libor::kSteps, kPaths}, td::random::Key{.seed = 1}.split(replay),
                            td::DType::f64);
}

/// Calls `run` for 0, 1, ..., n - 1, each on one of several threads.
template <class F> void share(std::size_t n, unsigned threads, const F& run) {
  std::atomic<std::size_t> next = 0;
  std::vector<std::future<void>> all;
  for (unsigned t = 0; t < threads; ++t)
    all.push_back(std::async(std::launch::async, [&] {
      for (std::size_t i = next++; i < n; i = next++)
        run(i);
    }));
  for (std::future<void>& thread : all)
    thread.get();
}

/// Infinity if one of the numbers is NaN.
double largest_difference(const Numbers& a, const Numbers& b) {
  double all = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double d = std::abs(a[i] - b[i]);
    all = std::isnan(d) ? HUGE_VAL : std::max(all, d);
  }
  return all;
}

void example(Run& run) {
  const td::Tensor rates = td::full({kRates}, 0.05, td::DType::f64),
                   volatilities = td::full({kRates}, 0.2, td::DType::f64);
  const auto compiled_price = td::compile(libor::price);
  const auto compiled = td::compile(libor::greeks);
  const auto all = [&](unsigned threads) {
    std::vector<Greeks> of(run.quick ? 8 : 256);
    share(of.size(), threads, [&](std::size_t i) { of[i] = compiled(rates, volatilities, noise_of(i)); });
    return of;
  };
  const unsigned threads = std::max(2U, std::thread::hardware_concurrency());
  const std::vector<Greeks> parts = all(threads);

  Numbers prices;
  td::Tensor delta = td::zeros_like(rates), vega = delta;
  for (const Greeks& part : parts) {
    prices.push_back(part[0].item<double>());
    delta = delta + part[1], vega = vega + part[2];
  }
  const auto n = static_cast<double>(parts.size());
  const Numbers deltas = (delta / n).to_vector(), vegas = (vega / n).to_vector();
  double mean = 0, variance = 0;
  for (const double p : prices)
    mean += p / n;
  for (const double p : prices)
    variance += (p - mean) * (p - mean) / (n - 1);
  fmt::print("{} paths: the portfolio is worth {:.2f} ± {:.2f}\n", parts.size() * kPaths, mean,
             std::sqrt(variance / n));
  fmt::print("if all rates rise by a basis point: {:+.3f}; if all volatilities rise by 0.01: {:+.3f}\n",
             1e-4 * td::sum(delta / n).item<double>(), 0.01 * td::sum(vega / n).item<double>());
  run.claim(std::ranges::equal(parts, all(1),
                               [](const Greeks& a, const Greeks& b) {
                                 return std::ranges::equal(a, b,
                                                           [](const td::Tensor& x, const td::Tensor& y) {
                                                             return x.to_vector() == y.to_vector();
                                                           });
                               }),
            fmt::format("one thread computes the same bits as {}", threads));

  // The same paths with one number a little larger, and smaller.
  const td::Tensor noise = noise_of(0);
  const double step = 1e-6;
  const auto differences = [&](bool of_rates) {
    Numbers each;
    const td::Tensor steps = step * td::eye(kRates, td::DType::f64);
    for (const td::Tensor& d : td::unstack(steps, 0)) {
      const auto moved = [&](const td::Tensor& by) {
        return (of_rates ? compiled_price(rates + by, volatilities, noise)
                         : compiled_price(rates, volatilities + by, noise))
            .item<double>();
      };
      each.push_back((moved(d) - moved(-d)) / (2 * step));
    }
    return each;
  };
  const Numbers rate_differences = differences(true), volatility_differences = differences(false);
  // A path whose payoff bends between the two changes a difference by up to 1e-4 of the largest.
  const auto claim_near = [&](const td::Tensor& derivatives, const Numbers& differences, const char* what) {
    const Numbers exact = derivatives.to_vector();
    run.claim(
        largest_difference(exact, differences) < 1e-4 * largest_difference(exact, Numbers(exact.size())),
        fmt::format("all 80 derivatives in {} agree with differences", what));
  };
  claim_near(parts[0][1], rate_differences, "rates");
  claim_near(parts[0][2], volatility_differences, "volatilities");
  const double by_hand = libor::price_by_hand(rates, volatilities, noise);
  run.claim(std::abs(prices[0] - by_hand) < 1e-11 * by_hand, "the price agrees with a loop over paths");

  double with_greeks = 1e9, alone = 1e9, loop = 1e9;   // seconds
  for (int i = 0; i < 10; ++i) {
    alone = std::min(alone, cpu_seconds([&] { compiled_price(rates, volatilities, noise); }));
    with_greeks = std::min(with_greeks, cpu_seconds([&] { compiled(rates, volatilities, noise); }));
    loop = std::min(loop, cpu_seconds([&] { libor::price_by_hand(rates, volatilities, noise); }));
  }
  fmt::print(
      "the price and its 160 derivatives take {:.1f} times as long as the price, which takes {:.2f} of a "
      "loop over paths\n",
      with_greeks / alone, alone / loop);

  Numbers years;
  for (std::size_t i = 0; i < kRates; ++i)
    years.push_back(libor::kQuarter * static_cast<double>(i));
  const auto chart = [&](double left, const char* title, const Axis& x, const char* label, const Numbers& y,
                         const Numbers& part, const Numbers& by_differences) {
    run.picture.chart({.x = left, .width = 450, .height = 360}, title, x, {.label = label},
                      std::vector{Curve{.x = years,
                                        .y = by_differences,
                                        .colour = kOrange,
                                        .name = "differences",
                                        .width = 2.5,
                                        .dots = true},
                                  Curve{years, part, kPaleBlue, fmt::format("{} paths", kPaths)},
                                  Curve{years, y, kBlue, "all paths"}});
  };
  chart(0, "Delta:", {.label = "start of the quarter, years from now"}, "derivative in a rate", deltas,
        parts[0][1].to_vector(), rate_differences);
  chart(450, "Vega:", {.label = "time until the rate is fixed, years"}, "derivative in a volatility", vegas,
        parts[0][2].to_vector(), volatility_differences);
}

}   // namespace

int main(int argc, char** argv) {
  return run_example(argc, argv, "a portfolio of swaptions and its 160 sensitivities, path by path", example);
}
