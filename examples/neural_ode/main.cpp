// A neural ODE (Chen et al. 2018): the right-hand side of a differential equation is a network, fitted to
// noisy observations of trajectories. Gradients are propagated back through all stages of the Runge–Kutta
// steps between observations, which are ordinary C++. The data come from van der Pol's equation; in the end,
// the network follows its limit cycle from a point that is not in the data.
#include <cmath>

#include <fmt/format.h>
#include <tapedeck/nn.h>
#include <tapedeck/tapedeck.h>

#include "../common/example.h"

namespace td = tapedeck;
namespace nn = tapedeck::nn;

namespace {

constexpr std::int64_t kUnits = 32, kTrajectories = 24, kObservations = 60, kWindow = 10, kBatch = 64;
constexpr double kTimeStep = 0.1, kNoise = 0.02;

/// dy/dt of van der Pol's oscillator, for y [n,2].
td::Tensor van_der_pol(const td::Tensor& y) {
  const std::vector<td::Tensor> part = td::split(y, 2, 1);
  return td::concat({part[1], (1 - td::square(part[0])) * part[1] - part[0]}, 1);
}

struct RightHandSide {
  td::random::Key key;
  nn::Sequential network{nn::Dense(2, kUnits, key.split(0)), td::tanh,
                         nn::Dense(kUnits, kUnits, key.split(1)), td::tanh,
                         nn::Dense(kUnits, 2, key.split(2))};

  td::Tensor operator()(const td::Tensor& y) const { return network(y); }
};

/// The states after each Runge–Kutta step of order 4 from y [n,2]: [n,steps,2].
template <class F> td::Tensor integrate(const F& f, td::Tensor y, std::int64_t steps) {
  std::vector<td::Tensor> states;
  for (std::int64_t i = 0; i < steps; ++i) {
    const td::Tensor k1 = f(y), k2 = f(y + kTimeStep / 2 * k1), k3 = f(y + kTimeStep / 2 * k2),
                     k4 = f(y + kTimeStep * k3);
    y = y + kTimeStep / 6 * (k1 + 2 * k2 + 2 * k3 + k4);
    states.push_back(y);
  }
  return td::stack(states, 1);
}

td::Tensor observations() {
  const td::Tensor start = td::random::uniform({kTrajectories, 2}, {.seed = 1}, -3, 3);
  const td::Tensor truth = integrate(van_der_pol, start, kObservations);
  return truth + kNoise * td::random::normal(truth.shape(), {.seed = 2});
}
/// Windows of kWindow + 1 observations, from random trajectories and times.
td::Tensor windows(const td::Tensor& seen, td::random::Key key) {
  const auto draw = [&](std::int64_t below, std::uint64_t i) {
    const double end = static_cast<double>(below);
    return td::astype(td::random::uniform({kBatch, 1}, key.split(i), 0, end, td::DType::f64), td::DType::i64);
  };
  const td::Tensor first = draw(kTrajectories, 0) * kObservations + draw(kObservations - kWindow, 1);
  return td::gather(td::reshape(seen, {-1, 2}), first + td::arange(kWindow + 1));
}

/// Root mean square difference of trajectories.
double distance(const td::Tensor& a, const td::Tensor& b) {
  return std::sqrt(td::mean(td::square(a - b)).item());
}
Curve path(const td::Tensor& states, const char* colour, const std::string& name, bool dots = false) {
  return {.x = states[{{}, 0}].to_vector(),
          .y = states[{{}, 1}].to_vector(),
          .colour = colour,
          .name = name,
          .dots = dots};
}

void example(Run& run) {
  const td::Tensor seen = observations();
  const RightHandSide f{{.seed = 3}};
  const int steps = run.quick ? 2500 : 12000;
  td::Adam adam({.learning_rate = td::schedule::cosine({.initial = 0.01, .steps = steps, .end = 0.01})});
  const auto step = [&](std::uint64_t i) {
    const td::Tensor window = windows(seen, td::random::Key{.seed = 4}.split(i));
    const td::Tensor start = window[{{}, 0}], after = window[{{}, {1, {}}}];
    return adam.minimize([&] { return td::mean(td::square(integrate(f, start, kWindow) - after)); }).item();
  };
  if (run.only_times([&] { step(0); })) return;

  fmt::print("{}", nn::summary(f.network, td::zeros({1, 2})));
  const td::Tensor place = td::tensor({{0.5, -0.5}, {-1.0, 2.5}});
  const std::int64_t length = run.quick ? 60 : 200;
  const td::Tensor truth = integrate(van_der_pol, place, length);
  const double before = distance(integrate(f, place, length), truth);
  Curve loss{.name = "loss", .width = 1};
  for (int i = 0; i < steps; ++i) {
    const double now = step(static_cast<std::uint64_t>(i));
    if (i % (steps / 300) == 0) loss.x.push_back(i), loss.y.push_back(now);
    if (i % (steps / 10) == 0 || i == steps - 1) fmt::print("step {:>5}: loss {:.2e}\n", i, now);
  }
  const td::Tensor found = integrate(f, place, length);
  const double after = distance(found, truth), limit = run.quick ? 0.5 : 0.2;
  fmt::print("{} steps from unseen places: off by {:.3f} at first, by {:.3f} now\n", length, before, after);
  run.claim(after < limit, fmt::format("the network follows the equation for {:.0f} seconds to {}",
                                       static_cast<double>(length) * kTimeStep, limit));

  run.picture.chart({.width = 480, .height = 420}, "From unseen places:", {.label = "y"}, {.label = "dy/dt"},
                    std::vector{path(td::reshape(seen[{{0, 8}}], {-1, 2}), kPaleBlue, "observations", true),
                                path(truth[0], kPaleOrange, "truth"), path(truth[1], kPaleOrange, ""),
                                path(found[0], kBlue, "network"), path(found[1], kBlue, "")});
  run.picture.chart({.x = 490, .width = 400, .height = 420}, "Training:", {.label = "step"},
                    {.label = "loss", .logarithmic = true}, {&loss, 1});
}

}   // namespace

int main(int argc, char** argv) {
  return run_example(argc, argv, "a differential equation from observations of its solutions", example);
}
