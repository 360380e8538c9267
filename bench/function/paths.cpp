// Many operations on few elements: the portfolio of examples/libor, on tensors with an element for each path.
#include <cstdio>

#include "../../examples/libor/portfolio.h"
#include "cases.h"
#include "first_call.h"

namespace bench {

void run_paths() {
  const std::string name = "paths, LIBOR portfolio";
  if (!is_chosen(name)) return;
  constexpr std::int64_t kPaths = 1024;
  const td::Tensor rates = td::full({libor::kRates}, 0.05, td::DType::f64),
                   volatilities = td::full({libor::kRates}, 0.2, td::DType::f64),
                   noise = td::random::normal({libor::kSteps, kPaths}, {.seed = 1}, td::DType::f64);
  const auto recorded_price = td::compile(libor::price);
  const auto recorded = td::compile(libor::greeks);
  volatile double out = 0;
  const Run runs[] = {[&] { (void)recorded(rates, volatilities, noise); },
                      [&] { (void)recorded_price(rates, volatilities, noise); },
                      [&] { out = libor::price_by_hand(rates, volatilities, noise); },
                      [&] { (void)libor::greeks(rates, volatilities, noise); }};
  const Race race(runs);
  const auto per_path = [&](int run) { return race.seconds(run) * 1e6 / kPaths; };
  char remark[160];
  std::snprintf(remark, sizeof remark, "price %.3g, a loop over paths %.3g, eager derivatives %.3g",
                per_path(1), per_path(2), per_path(3));
  report(name + ", 160 derivatives", per_path(0), "us a path", {.at_most = 15}, remark);
  report(name + ", with derivatives", race.ratio(0, 1), "times the price", {.at_most = 2.5});
  report(name + ", price alone", race.ratio(2, 1), "times a loop's speed", {.at_least = 1});

  report(name + ", recording", first_call_us_a_node(5, 1, libor::greeks, rates, volatilities, noise),
         "us a node", {.at_most = 5});
}

}   // namespace bench
