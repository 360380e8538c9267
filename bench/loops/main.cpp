// Loops and branches that compiled functions record, on one thread: replays, eager mode and loops by hand,
// alternately, and the goals.
//   scripts/bench loops [word...]
#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "cases.h"

namespace bench {

td::Tensor number(double x) { return td::tensor(x, td::DType::f64); }

void require_close(const std::string& name, const Tensors& results, const Numbers& by_hand,
                   double tolerance) {
  std::size_t next = 0;
  for (const td::Tensor& t : results) {
    const Numbers ours = t.to_vector();
    if (by_hand.size() < next + ours.size()) break;
    const std::span<const double> wanted(&by_hand[next], ours.size());
    double largest = 0;
    for (const double x : wanted)
      largest = std::max(largest, std::abs(x));
    for (std::size_t i = 0; i < ours.size(); ++i)
      if (!(std::abs(ours[i] - wanted[i]) <= tolerance * largest))
        throw std::runtime_error(name + ": an element of a result is " + std::to_string(ours[i]) +
                                 ", by hand " + std::to_string(wanted[i]));
    next += ours.size();
  }
  if (next != by_hand.size()) throw std::runtime_error(name + ": not as many results as by hand");
}

Race race(const Loop& l) {
  const auto recorded = td::compile(l.f);
  const Numbers wanted = l.by_hand();
  for (int i = 0; i < 2; ++i)   // the recording, and a replay
    require_close(l.name, recorded(l.x), wanted, l.tolerance);
  std::vector<Run> runs = {[&] { (void)recorded(l.x); }, [&] { (void)l.by_hand(); },
                           l.eager ? l.eager : Run([&] { (void)l.f(l.x); })};
  runs.insert(runs.end(), l.more.begin(), l.more.end());
  return Race(runs, 9);
}

}   // namespace bench

int main(int argc, char** argv) {
  bench::choose({argv + 1, argv + argc});
  tapedeck::set_num_threads(1);
  bench::run_scalars();
  bench::run_kalman();
  bench::run_lstm();
  bench::run_branch();
  bench::run_memory();
  bench::run_training();
}
