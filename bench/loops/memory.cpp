// The memory of gradients of long loops that keep few snapshots.
#include <cmath>
#include <cstdio>

#include "cases.h"
#include "tapedeck/memory.h"

namespace bench {
namespace {

constexpr std::size_t kExtent = 100;
constexpr std::int64_t kSnapshots = 20, kFewSteps = 10'000, kManySteps = 1'000'000;

// x: a vector, and what it would become in the end. Returns a loss and its gradients.
Tensors approach(const Tensors& x, std::int64_t steps) {
  td::GradientTape tape;
  tape.watch(x[0]), tape.watch(x[1]);
  const auto step = [limit = x[1], h = 1.0 / static_cast<double>(steps)](
                        const td::Tensor&, const td::Tensor& y) { return y + h * (limit - y * y); };
  const td::Tensor loss = td::sum(td::fori_loop(0, steps, step, {x[0]}, {.snapshots = kSnapshots}));
  const auto [dx, dlimit] = tape.gradient(loss, x[0], x[1]);
  return {loss, dx.dense(), dlimit.dense()};
}

// Keeps the vector at the first step of each stretch, and those of one stretch.
Numbers approach_by_hand(const Numbers& x, const Numbers& limit, std::int64_t steps) {
  using Vector = std::array<double, kExtent>;
  const auto n = static_cast<std::size_t>(steps),
             stretch = static_cast<std::size_t>(std::ceil(std::sqrt(static_cast<double>(steps))));
  const double h = 1.0 / static_cast<double>(steps);
  const auto advance = [&](const Vector& y, Vector& next) {
    for (std::size_t i = 0; i < kExtent; ++i)
      next[i] = y[i] + h * (limit[i] - y[i] * y[i]);
  };
  std::vector<Vector> first, inside(stretch);
  Vector y, next;
  std::copy(x.begin(), x.end(), y.begin());
  for (std::size_t k = 0; k < n; ++k) {
    if (k % stretch == 0) first.push_back(y);
    advance(y, next);
    y = next;
  }
  Numbers all = {0}, dy(kExtent, 1), dlimit(kExtent);
  for (const double e : y)
    all[0] += e;
  for (std::size_t s = first.size(); s-- > 0;) {
    const std::size_t own = std::min(stretch, n - s * stretch);
    inside[0] = first[s];
    for (std::size_t k = 1; k < own; ++k)
      advance(inside[k - 1], inside[k]);
    for (std::size_t k = own; k-- > 0;)
      for (std::size_t i = 0; i < kExtent; ++i) {
        dlimit[i] += h * dy[i];
        dy[i] -= 2 * h * inside[k][i] * dy[i];
      }
  }
  all.insert(all.end(), dy.begin(), dy.end());
  all.insert(all.end(), dlimit.begin(), dlimit.end());
  return all;
}

struct Memory {
  double most, kept;   // kB beside arguments and results: during a second call, and kept between calls
  Tensors results;
};
// make() returns the function.
template <class F> Memory memory_of(const F& make, const Tensors& x) {
  td::release_buffers();
  const std::int64_t before = td::live_bytes();
  const auto f = make();
  (void)f(x);
  const std::int64_t kept = td::live_bytes() - before;
  td::reset_peak_memory();
  const Tensors y = f(x);
  std::int64_t most = td::peak_memory() - before;
  for (const td::Tensor& t : y)
    most -= t.nbytes();
  return {static_cast<double>(most) / 1e3, static_cast<double>(kept) / 1e3, y};
}

}   // namespace

void run_memory() {
  const Tensors x = {numbers({kExtent}, 1, 0.5, 1.5, td::DType::f64),
                     numbers({kExtent}, 2, 0.5, 1.5, td::DType::f64)};
  const Numbers start = x[0].to_vector(), limit = x[1].to_vector();
  for (const std::int64_t steps : {kFewSteps, kManySteps}) {
    const std::string name = "20 snapshots of 100 numbers, " + std::to_string(steps) + " steps";
    if (!is_chosen(name)) continue;
    const auto f = [steps](const Tensors& in) { return approach(in, steps); };
    const auto by_hand = [&] { return approach_by_hand(start, limit, steps); };
    const Memory memory = memory_of([&] { return td::compile(f); }, x);
    require_close(name, memory.results, by_hand(), 1e-10);
    char kept[160], times[160] = "";
    std::snprintf(kept, sizeof kept, "%.3g kB of them between calls", memory.kept);
    report(name, memory.most, "kB", {.at_most = 40}, kept);
    if (steps != kFewSteps) continue;   // a call takes seconds
    const Race r = race({.name = name, .x = x, .f = f, .by_hand = by_hand});
    std::snprintf(times, sizeof times, "%.4g ms, %.3g times as fast as eager, which takes %.3g kB",
                  r.seconds(replay) * 1e3, r.ratio(eager, replay), memory_of([&] { return f; }, x).most);
    report(name, r.ratio(replay, hand), "times by hand", {}, times);
  }
}

}   // namespace bench
