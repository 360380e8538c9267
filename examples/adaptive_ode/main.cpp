// Fits the parameters of a differential equation through a solver that chooses its own steps. A while_loop
// repeats steps until the next measurement; each estimates its error, and cond accepts or rejects it. So the
// number of steps depends on the parameters. Nevertheless the loss and its gradient are recorded only once:
// each replay takes as many steps as its parameters need.
#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <tapedeck/compile.h>
#include <tapedeck/gradcheck.h>
#include <tapedeck/tapedeck.h>

#include "../common/example.h"

namespace td = tapedeck;

namespace {

constexpr std::int64_t kMeasurements = 40;
constexpr double kInterval = 0.5, kNoise = 0.05;   // the time between measurements, and their noise
constexpr double kTolerance = 1e-5;                // of a step of the solver

/// dy/dt of a nerve cell by FitzHugh and Nagumo: a voltage v that jumps, and a slow recovery r. The larger c,
/// the faster the jumps.
td::Tensor cell(const td::Tensor& p, const td::Tensor& y) {
  const td::Tensor a = p[0], b = p[1], c = p[2], v = y[0], r = y[1];
  return td::stack({c * (v - v * v * v / 3 + r), (a - v - b * r) / c});
}

/// One step of length h by the method of Bogacki and Shampine: the next state, of order 3, and its difference
/// from that of order 2 in units of the tolerance, as an estimate of the error.
std::array<td::Tensor, 2> runge_kutta(const td::Tensor& p, const td::Tensor& y, const td::Tensor& h) {
  const td::Tensor k1 = cell(p, y), k2 = cell(p, y + h / 2 * k1), k3 = cell(p, y + 0.75 * h * k2),
                   next = y + h / 9 * (2 * k1 + 3 * k2 + 4 * k3), k4 = cell(p, next),
                   off = h / 72 * (-5 * k1 + 6 * k2 + 8 * k3 - 9 * k4) / (kTolerance * (1 + td::abs(y)));
  return {next, td::sqrt(td::mean(td::square(off)) + 1e-12)};   // not 0, where sqrt has no derivative
}

/// The state y, the length h of the next step, the time left until the next measurement, and the number of
/// steps tried since the last one.
using State = std::array<td::Tensor, 4>;

/// The function that tries one step, for a cell with the parameters p.
auto try_step(const td::Tensor& p) {
  return [p](const td::Tensor& y, const td::Tensor& h, const td::Tensor& left, const td::Tensor& tried) {
    const td::Tensor step = td::minimum(h, left);
    const std::array<td::Tensor, 2> result = runge_kutta(p, y, step);
    const td::Tensor next = result[0], error = result[1],
                     better = step * td::clip(0.9 * td::pow(error, -1.0 / 3), 0.2, 5.0),
                     kept = td::where(step < h, h, better);   // a step cut short keeps h
    const auto accept = [=] { return State{next, kept, left - step, tried + 1}; };
    const auto reject = [=] { return State{y, better, left, tried + 1}; };
    return td::cond(error <= 1.0, {}, accept, reject);
  };
}

State start() { return {td::tensor({-1.0, 1.0}), td::tensor(0.1), td::tensor(kInterval), td::tensor(0)}; }

/// The states at all measurements [n,2], and the numbers of steps tried in between [n].
std::array<td::Tensor, 2> solve(const td::Tensor& p) {
  const auto time_is_left = [](std::span<const td::Tensor> s) { return s[2] > 0.0; };
  const auto to_measurement = [=](const td::Tensor& y, const td::Tensor& h) {
    const State end = td::while_loop(time_is_left, try_step(p), {y, h, start()[2], start()[3]},
                                     {.maximum_iterations = 1000});
    return State{end[0], end[1], end[0], end[3]};
  };
  const State all = td::scan(to_measurement, {start()[0], start()[1]}, {}, {.length = kMeasurements});
  return {all[2], all[3]};
}

/// The same steps in plain C++, for the picture: the voltage after each accepted step, and the next length.
struct Path {
  std::vector<double> time, voltage, length;
  explicit Path(const td::Tensor& p) {
    State s = start();
    for (std::int64_t i = 1; i <= kMeasurements; ++i, s[2] = td::tensor(kInterval))
      for (double left = kInterval, rest = 0; left > 0; left = rest) {
        s = try_step(p)(s[0], s[1], s[2], s[3]);
        rest = s[2].item();
        if (rest == left) continue;   // the step was rejected
        time.push_back(static_cast<double>(i) * kInterval - rest);
        voltage.push_back(s[0][0].item()), length.push_back(s[1].item());
      }
  }
};

double distance(const td::Tensor& a, const td::Tensor& b) { return td::max(td::abs(a - b)).item(); }

void example(Run& run) {
  td::set_default_dtype(td::DType::f64);
  const td::Tensor truth = td::tensor({0.2, 0.2, 3.0}), guess = td::tensor({0.5, 0.5, 1.0}),
                   noise = kNoise * td::random::normal({kMeasurements, 2}, {.seed = 1}),
                   seen = solve(truth)[0] + noise;
  const auto loss_of = [=](const td::Tensor& y) { return td::mean(td::square((y - seen) / kNoise)); };
  run.claim(td::check_vjp([&](const auto& p) { return loss_of(solve(p[0])[0]); }, {guess}),
            "the gradient agrees with differences");

  const auto evaluate = [=](const td::Tensor& p) {
    td::GradientTape tape;
    tape.watch(p);
    const auto [states, tried] = solve(p);
    const td::Tensor loss = loss_of(states);
    return std::array{loss, tape.gradient(loss, p).dense(), tried};
  };
  const auto compiled = td::compile(evaluate);

  td::Variable p(guess);
  td::Adam adam({.learning_rate = 0.1});
  for (int i = 0, updates = run.quick ? 200 : 300; i < updates; ++i) {
    const auto [loss, gradient, tried] = compiled(p.value());
    if (i % 50 == 0)
      fmt::print("update {:>3}: loss {:>6.2f}, {} steps\n", i, loss.item(), td::sum(tried).item());
    adam.apply_gradients({{gradient, p}});
  }
  const td::Tensor found = p.value();
  fmt::print("a, b, c: guess {:.3f}, found {:.3f}, true {:.3f}\n", fmt::join(guess.to_vector(), " "),
             fmt::join(found.to_vector(), " "), fmt::join(truth.to_vector(), " "));
  double eager = 1e9, replay = 1e9;   // seconds
  for (const td::Tensor& at : {guess, found}) {
    std::array<td::Tensor, 3> a, b;
    for (int i = 0; i < 5; ++i) {
      eager = std::min(eager, cpu_seconds([&] { a = evaluate(at); }));
      replay = std::min(replay, cpu_seconds([&] { b = compiled(at); }));
    }
    fmt::print("steps between measurements: {}\n", fmt::join(b[2].to_vector(), " "));
    run.claim(distance(a[0], b[0]) + distance(a[2], b[2]) == 0 && distance(a[1], b[1]) < 1e-9,
              fmt::format("a replay with {} steps agrees with the function itself", td::sum(b[2]).item()));
  }
  fmt::print("without compile, this takes {:.1f} times as long\n", eager / replay);
  run.claim(compiled.programs().size() == 1, "one program was recorded, for all numbers of steps");
  run.claim(distance(found, truth) < (run.quick ? 0.1 : 0.02), "the parameters are found");
  if (run.failed) return;   // without finite numbers, the steps below would not end

  const Path before(guess), after(found);
  const std::vector<double> times = (kInterval * (td::arange(kMeasurements) + 1)).to_vector();
  run.picture.chart({.width = 900, .height = 340}, "A nerve cell:", {.label = "time"}, {.label = "voltage"},
                    std::vector{Curve{before.time, before.voltage, kPaleOrange, "guess"},
                                Curve{after.time, after.voltage, kBlue, "fit"},
                                Curve{times, seen[{{}, 0}].to_vector(), kOrange, "measurements", 3, true}});
  run.picture.chart({.y = 340, .width = 900, .height = 300}, "Its solver's steps:", {.label = "time"},
                    {.label = "length", .logarithmic = true},
                    std::vector{Curve{before.time, before.length, kPaleOrange, "guess"},
                                Curve{after.time, after.length, kBlue, "fit"}});
}

}   // namespace

int main(int argc, char** argv) {
  return run_example(argc, argv, "parameters found through a solver that chooses its steps", example);
}
