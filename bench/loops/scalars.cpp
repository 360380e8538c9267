// Loops whose steps are a few ops on numbers, or many.
#include <cmath>
#include <cstdio>

#include "cases.h"

namespace bench {
namespace {

// 60 numbers in a ring, each drawn to the next one and driven by an input.

constexpr std::size_t kRing = 60, kRingSteps = 614;
constexpr double kRate = 0.05;

double drive(std::size_t step) { return std::sin(0.1 * static_cast<double>(step)); }
double start(std::size_t i) { return 0.1 * static_cast<double>(i + 1) / kRing; }

// x: the weight of the drive, the drive, the numbers. Returns the loss and its gradient.
Tensors ring(const Tensors& x) {
  td::GradientTape tape;
  tape.watch(x[0]);
  const auto step = [w = x[0]](std::span<const td::Tensor> in) {
    const td::Tensor &u = in[kRing], pull = w * u;
    Tensors next;
    for (std::size_t i = 0; i < kRing; ++i)
      next.push_back(in[i] + kRate * td::tanh(pull + in[(i + 1) % kRing] - in[i]));
    next.push_back(td::square(next[0] - u));
    return next;
  };
  const td::Tensor loss = td::sum(td::scan(step, {x.begin() + 2, x.end()}, {x[1]}).back());
  return {loss, tape.gradient(loss, x[0]).dense()};
}

Numbers ring_by_hand(double w) {
  static std::vector<std::array<double, kRing>> c(kRingSteps + 1), t(kRingSteps);
  double loss = 0, dw = 0;
  for (std::size_t i = 0; i < kRing; ++i)
    c[0][i] = start(i);
  static const Numbers u = [] {
    Numbers all;
    for (std::size_t k = 0; k < kRingSteps; ++k)
      all.push_back(drive(k));
    return all;
  }();
  for (std::size_t k = 0; k < kRingSteps; ++k) {
    for (std::size_t i = 0; i < kRing; ++i) {
      t[k][i] = std::tanh(w * u[k] + c[k][i + 1 < kRing ? i + 1 : 0] - c[k][i]);
      c[k + 1][i] = c[k][i] + kRate * t[k][i];
    }
    loss += (c[k + 1][0] - u[k]) * (c[k + 1][0] - u[k]);
  }
  std::array<double, kRing> dc = {}, g;
  for (std::size_t k = kRingSteps; k-- > 0;) {
    dc[0] += 2 * (c[k + 1][0] - u[k]);
    double sum = 0;
    for (std::size_t i = 0; i < kRing; ++i)
      sum += g[i] = kRate * (1 - t[k][i] * t[k][i]) * dc[i];
    dw += sum * u[k];
    dc[0] += g[kRing - 1] - g[0];
    for (std::size_t i = 1; i < kRing; ++i)
      dc[i] += g[i - 1] - g[i];
  }
  return {loss, dw};
}

void run_ring() {
  const std::string name = "scan of 60 numbers, 614 steps, gradient";
  if (!is_chosen(name)) return;
  Numbers u;
  for (std::size_t k = 0; k < kRingSteps; ++k)
    u.push_back(drive(k));
  Tensors x = {number(0.7), td::tensor(u)};
  for (std::size_t i = 0; i < kRing; ++i)
    x.push_back(number(start(i)));
  // Of a loop in NumPy; the derivative by central differences.
  require_close(name, ring(x), {397.85271133820834, 208.19346726530364}, 1e-6);
  const Race r = race({.name = name, .x = x, .f = ring, .by_hand = [] { return ring_by_hand(0.7); }});
  char remark[160];
  std::snprintf(remark, sizeof remark, "%.4g us, by hand %.4g us", r.seconds(replay) * 1e6,
                r.seconds(hand) * 1e6);
  report(name, r.ratio(replay, hand), "times by hand", {.at_most = 2}, remark);
  report(name, r.ratio(eager, replay), "times as fast as eager", {.at_least = 30});
}

// An oscillator: 5 ops a step on numbers.

constexpr std::int64_t kSteps = 1'000'000, kEagerSteps = 10'000;

// x: place, speed, stiffness, time step. Returns the sum of all places.
td::Tensor fori(const Tensors& x, std::int64_t steps) {
  const auto step = [k = x[2], h = x[3]](const td::Tensor&, const td::Tensor& place, const td::Tensor& speed,
                                         const td::Tensor& sum) {
    const td::Tensor next_speed = speed - k * place, next = place + h * next_speed;
    return std::array{next, next_speed, sum + next};
  };
  return td::fori_loop(0, steps, step, {x[0], x[1], number(0)})[2];
}
// Returns the last place; one of the ops counts the steps.
td::Tensor while_counted(const Tensors& x, std::int64_t steps) {
  const auto step = [k = x[2], h = x[3]](const td::Tensor& i, const td::Tensor& place,
                                         const td::Tensor& speed) {
    const td::Tensor next_speed = speed - k * place;
    return std::array{i + 1, place + h * next_speed, next_speed};
  };
  const auto goes_on = [steps](const td::Tensor& i, const td::Tensor&, const td::Tensor&) {
    return i < steps;
  };
  return td::while_loop(goes_on, step, {td::tensor(std::int64_t{0}), x[0], x[1]})[1];
}

Numbers sum_by_hand(const Numbers& x) {
  double place = x[0], speed = x[1], sum = 0;
  for (std::int64_t i = 0; i < kSteps; ++i) {
    speed -= x[2] * place;
    place += x[3] * speed;
    sum += place;
  }
  return {sum};
}
Numbers last_by_hand(const Numbers& x) {
  double place = x[0], speed = x[1];
  for (std::int64_t i = 0; i < kSteps; ++i) {
    speed -= x[2] * place;
    place += x[3] * speed;
  }
  return {place};
}
// dsum: the derivative by each place; dlast: by the last one.
Numbers gradient_by_hand(const Numbers& x, double dsum, double dlast) {
  static Numbers places(kSteps), speeds(kSteps);
  double place = x[0], speed = x[1], sum = 0;
  for (std::size_t i = 0; i < kSteps; ++i) {
    places[i] = place;
    speeds[i] = speed -= x[2] * place;
    place += x[3] * speed;
    sum += place;
  }
  double dplace = dlast, dspeed = 0, dk = 0, dh = 0;
  for (std::size_t i = kSteps; i-- > 0;) {
    dplace += dsum;
    dspeed += x[3] * dplace;
    dh += dplace * speeds[i];
    dplace -= x[2] * dspeed;
    dk -= dspeed * places[i];
  }
  return {dsum * sum + dlast * place, dplace, dspeed, dk, dh};
}

void run_steps(const std::string& name, double at_most, const Loop& l) {
  if (!is_chosen(name)) return;
  Loop own = l;
  own.name = name;
  const Race r = race(own);
  char remark[160];
  std::snprintf(remark, sizeof remark, "by hand %.3g, eager %.4g ns a step", r.seconds(hand) * 1e9 / kSteps,
                r.seconds(eager) * 1e9 / kEagerSteps);
  report(name, r.seconds(replay) * 1e9 / kSteps, "ns a step", {.at_most = at_most}, remark);
  report(name, r.ratio(replay, hand), "times by hand", {});
}

void run_oscillator() {
  const Numbers start = {1, 0.5, 1e-3, 0.02};
  Tensors x;
  for (const double e : start)
    x.push_back(number(e));
  using Sum = td::Tensor (*)(const Tensors&, std::int64_t);
  const auto run = [&](const std::string& name, Sum f, const std::function<Numbers()>& value,
                       const std::function<Numbers()>& gradient) {
    const auto differentiated = [f](const Tensors& in, std::int64_t steps) {
      td::GradientTape tape;
      for (const td::Tensor& t : in)
        tape.watch(t);
      const td::Tensor y = f(in, steps);
      Tensors all = {y};
      for (const td::Gradient& g : tape.gradient(y, td::Sources(in)))
        all.push_back(g.dense());
      return all;
    };
    run_steps(name, 15,
              {.name = {},
               .x = x,
               .f = [f](const Tensors& in) { return Tensors{f(in, kSteps)}; },
               .by_hand = value,
               .tolerance = 1e-6,
               .eager = [f, &x] { (void)f(x, kEagerSteps); }});
    run_steps(name + ", gradient", 45,
              {.name = {},
               .x = x,
               .f = [=](const Tensors& in) { return differentiated(in, kSteps); },
               .by_hand = gradient,
               .tolerance = 1e-6,
               .eager = [=, &x] { (void)differentiated(x, kEagerSteps); }});
  };
  run(
      "fori_loop, 10^6 steps of 5 ops", fori, [&] { return sum_by_hand(start); },
      [&] { return gradient_by_hand(start, 1, 0); });
  run(
      "while_loop, 10^6 steps of 5 ops", while_counted, [&] { return last_by_hand(start); },
      [&] { return gradient_by_hand(start, 0, 1); });
}

}   // namespace

void run_scalars() {
  run_ring();
  run_oscillator();
}

}   // namespace bench
