// Many operations on few elements: the portfolio of examples/libor, on tensors with an element for each path.
#include <chrono>
#include <cstdio>

#include "../../examples/libor/portfolio.h"
#include "../median.h"
#include "cases.h"

namespace bench {
namespace {

using libor::kRates, libor::kSteps;
constexpr std::int64_t kPaths = 1024;
using Tensors = std::vector<td::Tensor>;

Tensors for_all_paths(const td::Tensor& numbers) {
  Tensors each;
  for (const td::Tensor& number : td::unstack(numbers, 0))
    each.push_back(td::broadcast_to(number, {kPaths}));
  return each;
}
td::Tensor price(const td::Tensor& rates, const td::Tensor& volatilities, const td::Tensor& noise) {
  return td::mean(libor::value(for_all_paths(rates), for_all_paths(volatilities), td::unstack(noise, 0)));
}
Tensors all(const td::Tensor& rates, const td::Tensor& volatilities, const td::Tensor& noise) {
  td::GradientTape tape;
  tape.watch(rates), tape.watch(volatilities);
  const td::Tensor mean = price(rates, volatilities, noise);
  const auto [delta, vega] = tape.gradient(mean, rates, volatilities);
  return {mean, delta.dense(), vega.dense()};
}
double by_hand(const td::Tensor& rates, const td::Tensor& volatilities, const td::Tensor& paths) {
  const std::vector<double> r = rates.to_vector(), v = volatilities.to_vector(), z = paths.to_vector();
  double sum = 0;
  for (auto path = z.begin(); path != z.end(); path += kSteps)
    sum += libor::value(r, v, std::vector<double>(path, path + kSteps));
  return sum / kPaths;
}

}   // namespace

void run_paths() {
  const std::string name = "paths, LIBOR portfolio";
  if (!is_chosen(name)) return;
  const td::Tensor rates = td::full({kRates}, 0.05, td::DType::f64),
                   volatilities = td::full({kRates}, 0.2, td::DType::f64),
                   noise = td::random::normal({kSteps, kPaths}, {.seed = 1}, td::DType::f64),
                   paths = td::transpose(noise);
  const auto recorded_price = td::compile(price);
  const auto recorded = td::compile(all);
  volatile double out = 0;
  const Run runs[] = {[&] { (void)recorded(rates, volatilities, noise); },
                      [&] { (void)recorded_price(rates, volatilities, noise); },
                      [&] { out = by_hand(rates, volatilities, paths); },
                      [&] { (void)all(rates, volatilities, noise); }};
  const Race race(runs);
  const auto per_path = [&](int run) { return race.seconds(run) * 1e6 / kPaths; };
  char remark[160];
  std::snprintf(remark, sizeof remark, "price %.3g, a loop over paths %.3g, eager derivatives %.3g",
                per_path(1), per_path(2), per_path(3));
  report(name + ", 160 derivatives", per_path(0), "us a path", {.at_most = 15}, remark);
  report(name + ", with derivatives", race.ratio(0, 1), "times the price", {.at_most = 2.5});
  report(name + ", price alone", race.ratio(2, 1), "times a loop's speed", {.at_least = 1});

  const auto seconds = [](const auto& run) {
    const auto begin = std::chrono::steady_clock::now();
    run();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  std::vector<double> a_node;
  for (int round = 0; round < 5; ++round) {
    const auto again = td::compile(all);
    const double eager = seconds([&] { (void)all(rates, volatilities, noise); }),
                 first = seconds([&] { (void)again(rates, volatilities, noise); });
    a_node.push_back((first - eager) / static_cast<double>(again.programs()[0].nodes));
  }
  report(name + ", recording", median(a_node) * 1e6, "us a node", {.at_most = 5});
}

}   // namespace bench
