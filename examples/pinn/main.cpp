// A physics-informed network (Raissi, Perdikaris and Karniadakis 2019): it solves Burgers' equation
// u_t + u u_x = ν u_xx without data, by a loss that is the squared residual of the equation at random points.
// The loss contains derivatives by x and t, up to the second order, and training differentiates it once more.
// The result is compared with the exact solution.
#include <algorithm>
#include <cmath>
#include <numbers>

#include <fmt/format.h>
#include <tapedeck/nn.h>
#include <tapedeck/tapedeck.h>

#include "../common/example.h"

namespace td = tapedeck;
namespace nn = tapedeck::nn;

namespace {

constexpr std::int64_t kUnits = 24, kPoints = 512, kGrid = 33;
constexpr double kViscosity = 0.02;

/// u(x, t) for x [n,1] in [-1, 1] and t [n,1] in [0, 1]. By the factors of the network, u is -sin πx at t = 0
/// and 0 at both ends, for any values of the variables.
struct Solution {
  td::random::Key key;
  nn::Sequential network{
      nn::Dense(2, kUnits, key.split(0)),      td::tanh, nn::Dense(kUnits, kUnits, key.split(1)), td::tanh,
      nn::Dense(kUnits, kUnits, key.split(2)), td::tanh, nn::Dense(kUnits, 1, key.split(3))};

  td::Tensor operator()(const td::Tensor& x, const td::Tensor& t) const {
    return t * (1 - td::square(x)) * network(td::concat({x, t}, 1)) - td::sin(std::numbers::pi * x);
  }
};

/// The residual of the equation: u_x and u_t in reverse mode, u_xx as the tangent of u_x in forward mode.
td::Tensor residual(const Solution& solution, const td::Tensor& x, const td::Tensor& t) {
  const td::ForwardAccumulator along_x(x, td::ones_like(x));
  td::GradientTape tape;
  tape.watch(x), tape.watch(t);
  const td::Tensor u = solution(x, t);
  const auto [by_x, by_t] = tape.gradient(u, x, t);
  const td::Tensor u_x = by_x, u_xx = along_x.jvp(u_x);
  return by_t + u * u_x - kViscosity * u_xx;
}

/// The solution by the Cole–Hopf transformation: a quotient of two integrals over normal distributions around
/// x, which the rectangle rule computes to all printed digits.
double exact(double x, double t) {
  if (t == 0) return -std::sin(std::numbers::pi * x);
  constexpr int kNodes = 400;
  double above = 0, below = 0;
  for (int i = -kNodes; i <= kNodes; ++i) {
    const double s = 8.0 * i / kNodes, y = x - std::sqrt(2 * kViscosity * t) * s;
    const double weight =
        std::exp(-s * s / 2 - (1 + std::cos(std::numbers::pi * y)) / (2 * std::numbers::pi * kViscosity));
    above -= std::sin(std::numbers::pi * y) * weight, below += weight;
  }
  return above / below;
}

/// The exact and the found solution on a grid, time by time.
struct Compared {
  std::vector<double> truth = {}, found = {};
  double error = 0;   // root mean square, relative to the root mean square of the truth
};
Compared compare(const Solution& solution, std::int64_t n) {
  const td::Tensor at = td::linspace(0, 1, n), x = td::tile(2 * at - 1, {n});
  const td::Tensor t = td::reshape(td::broadcast_to(td::expand_dims(at, 1), {n, n}), {n * n});
  Compared c{.found = solution(td::expand_dims(x, 1), td::expand_dims(t, 1)).to_vector()};
  const std::vector<double> xs = x.to_vector(), ts = t.to_vector();
  double off = 0, size = 0;
  for (std::size_t i = 0; i < xs.size(); ++i) {
    c.truth.push_back(exact(xs[i], ts[i]));
    off += std::pow(c.found[i] - c.truth[i], 2), size += std::pow(c.truth[i], 2);
  }
  c.error = std::sqrt(off / size);
  return c;
}

void example(Run& run) {
  const Solution solution{{.seed = 1}};
  const int steps = run.quick ? 1500 : 8000;
  td::Adam adam({.learning_rate = td::schedule::cosine({.initial = 8e-3, .steps = steps, .end = 0.01})});
  const auto step = [&](std::uint64_t i) {
    const td::random::Key key = td::random::Key{.seed = 2}.split(i);
    const td::Tensor x = td::random::uniform({kPoints, 1}, key.split(0), -1, 1),
                     t = td::random::uniform({kPoints, 1}, key.split(1));
    return adam.minimize([&] { return td::mean(td::square(residual(solution, x, t))); }).item();
  };
  if (run.only_times([&] { step(0); })) return;

  fmt::print("{}", nn::summary(solution.network, td::zeros({1, 2})));
  const double before = compare(solution, kGrid).error;
  Curve loss{.name = "loss", .width = 1};
  for (int i = 0; i < steps; ++i) {
    const double now = step(static_cast<std::uint64_t>(i));
    if (i % (steps / 300) == 0) loss.x.push_back(i), loss.y.push_back(now);
    if (i % (steps / 10) == 0 || i == steps - 1) fmt::print("step {:>5}: loss {:.2e}\n", i, now);
  }
  const Compared c = compare(solution, kGrid);
  const double limit = run.quick ? 0.05 : 0.01;
  fmt::print("off from the exact solution by {:.2f} % at first, {:.2f} % now\n", 100 * before, 100 * c.error);
  run.claim(c.error < limit, fmt::format("the solution is found to {:.0f} %", 100 * limit));

  const Box box{.width = 400, .height = 400};
  run.picture.field(box, "u over x (right) and t (down): the truth", c.truth, kGrid, -1, 1);
  run.picture.field({.x = 400, .width = 400, .height = 400}, "and what is found", c.found, kGrid, -1, 1);
  run.picture.chart({.x = 800, .width = 400, .height = 400}, "Training:", {.label = "step"},
                    {.label = "loss", .logarithmic = true}, {&loss, 1});
}

}   // namespace

int main(int argc, char** argv) {
  return run_example(argc, argv, "Burgers' equation by a network that knows the equation", example);
}
