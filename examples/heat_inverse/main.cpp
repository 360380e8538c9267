// An inverse problem: find the conductivity of each point of a plate from the evolution of some temperature
// fields over 200 steps of the heat equation. The gradient is propagated back through all steps. A tape that
// keeps every step needs much memory; the same loop with snapshots keeps few of them and recomputes the
// others, with bitwise equal results.
#include <algorithm>
#include <cmath>
#include <numbers>

#include <fmt/format.h>
#include <tapedeck/gradcheck.h>
#include <tapedeck/minimize.h>
#include <tapedeck/tapedeck.h>

#include "../common/example.h"

namespace td = tapedeck;

namespace {

constexpr std::int64_t kSide = 32, kFields = 6, kSteps = 200,
                       kLooks = 4;                   // observed after each quarter of the steps
constexpr double kTimeStep = 0.1;                    // stable below 0.25 / the largest conductivity
constexpr double kNoise = 1e-3, kSmoothness = 100;   // temperatures are between -1 and 1

// Peak bytes of tensors, and the number of computed steps, since these were set to 0.
std::int64_t most_bytes = 0, steps_computed = 0;

/// Values at pairs of neighboring points, vertical or horizontal: the upper or left points, and the lower or
/// right ones.
struct Neighbours {
  td::Tensor one, other;
};
Neighbours rows(const td::Tensor& u) {
  return {td::strided_slice(u, {td::Slice::ellipsis, {{}, -1}, {}}),
          td::strided_slice(u, {td::Slice::ellipsis, {1, {}}, {}})};
}
Neighbours columns(const td::Tensor& u) {
  return {td::strided_slice(u, {td::Slice::ellipsis, {{}, -1}}),
          td::strided_slice(u, {td::Slice::ellipsis, {1, {}}})};
}
td::Tensor difference(const Neighbours& n) { return n.other - n.one; }
td::Tensor mean(const Neighbours& n) { return 0.5 * (n.one + n.other); }

/// One step of du/dt = div(k grad u) for all fields u, f64[fields,side,side], at once. The boundary is
/// insulated. k between two points is the mean of both.
td::Tensor heat_step(const td::Tensor& u, const td::Tensor& k_down, const td::Tensor& k_right) {
  most_bytes = std::max(most_bytes, td::live_bytes());
  ++steps_computed;
  const td::Tensor down = k_down * difference(rows(u)), right = k_right * difference(columns(u));
  const td::Tensor gain = td::pad(down, {0, 0, 0}, {0, 1, 0}) - td::pad(down, {0, 1, 0}, {0, 0, 0}) +
                          td::pad(right, {0, 0, 0}, {0, 0, 1}) - td::pad(right, {0, 0, 1}, {0, 0, 0});
  return u + kTimeStep * gain;
}

/// The temperatures after each quarter of the steps, for the conductivity exp(log_k).
std::vector<td::Tensor> simulate(const td::Tensor& log_k, const td::Tensor& start, std::int64_t snapshots) {
  const td::Tensor k = td::exp(log_k), k_down = mean(rows(k)), k_right = mean(columns(k));
  std::vector<td::Tensor> seen;
  td::Tensor u = start;
  for (std::int64_t look = 0; look < kLooks; ++look) {
    // k is a loop variable, so that its gradient is summed step by step with and without snapshots; the
    // gradient of a captured tensor would be summed in parts.
    const auto step = [](std::int64_t, const td::Tensor& now, const td::Tensor& down,
                         const td::Tensor& right) {
      return std::tuple(heat_step(now, down, right), down, right);
    };
    u = std::get<0>(td::fori_loop(0, kSteps / kLooks, step, {u, k_down, k_right}, {.snapshots = snapshots}));
    seen.push_back(u);
  }
  return seen;
}

/// Two bumps and a dent.
td::Tensor true_log_conductivity() {
  const td::Tensor at = td::linspace(0, 1, kSide, td::DType::f64), x = td::expand_dims(at, 0),
                   y = td::expand_dims(at, 1);
  const auto bump = [&](double cx, double cy, double width) {
    return td::exp(-(td::square(x - cx) + td::square(y - cy)) / (2 * width * width));
  };
  return 0.7 * bump(0.3, 0.3, 0.12) + 0.5 * bump(0.7, 0.75, 0.15) - 0.9 * bump(0.72, 0.28, 0.13);
}

/// Waves of several directions and lengths: where one is flat and gives no information, another one is steep.
td::Tensor first_temperatures() {
  const td::Tensor at = td::linspace(0, 1, kSide, td::DType::f64), x = td::expand_dims(at, 0),
                   y = td::expand_dims(at, 1);
  std::vector<td::Tensor> fields;
  for (int i = 1; i <= kFields / 2; ++i) {
    fields.push_back(td::cos(i * std::numbers::pi * x) + 0 * y);
    fields.push_back(td::cos(i * std::numbers::pi * y) + 0 * x);
  }
  return td::stack(fields);
}

struct Problem {
  td::Tensor truth = true_log_conductivity(), start = first_temperatures();
  std::vector<td::Tensor> seen = simulate(truth, start, 0);

  Problem() {   // adds measurement noise
    for (std::size_t i = 0; i < seen.size(); ++i)
      seen[i] = seen[i] + kNoise * td::random::normal(seen[i].shape(), {.seed = i}, td::DType::f64);
  }

  /// The mean squared residual in units of the noise, plus a small smoothness penalty.
  td::Tensor loss(const td::Tensor& log_k, std::int64_t snapshots) const {
    const std::vector<td::Tensor> u = simulate(log_k, start, snapshots);
    td::Tensor sum = td::tensor(0.0, td::DType::f64);
    for (std::size_t i = 0; i < u.size(); ++i)
      sum = sum + td::mean(td::square(u[i] - seen[i]));
    const td::Tensor down = difference(rows(log_k)), right = difference(columns(log_k));
    return sum / (kLooks * kNoise * kNoise) +
           kSmoothness * (td::mean(td::square(down)) + td::mean(td::square(right)));
  }
};

struct Cost {
  td::Tensor gradient;
  double seconds = 1e9;
  std::int64_t bytes = 0;   // peak, without the bytes that existed before
  std::int64_t steps = 0;   // computed, recomputed ones included
};
Cost cost_of_gradient(const Problem& problem, std::int64_t snapshots) {
  const td::Tensor log_k = td::zeros({kSide, kSide}, td::DType::f64);
  Cost cost;
  for (int i = 0; i < 3; ++i) {
    const std::int64_t before = td::live_bytes();
    most_bytes = steps_computed = 0;
    cost.seconds = std::min(
        cost.seconds, cpu_seconds([&] {
          cost.gradient =
              td::grad([&](const td::Tensor& k) { return problem.loss(k, snapshots); }, log_k).dense();
        }));
    cost.bytes = most_bytes - before;
    cost.steps = steps_computed;
  }
  return cost;
}

/// The root mean square error of the conductivity, relative to its variation.
double error_of(const Problem& problem, const td::Tensor& log_k) {
  return std::sqrt(td::mean(td::square(log_k - problem.truth)).item() /
                   td::mean(td::square(problem.truth - td::mean(problem.truth))).item());
}

void example(Run& run) {
  const Problem problem;
  constexpr std::int64_t kSnapshots = 9;   // reverse up to 55 steps, each of which runs three times at most

  const Cost full = cost_of_gradient(problem, 0), less = cost_of_gradient(problem, kSnapshots);
  fmt::print("gradient through {} steps of {} fields of {}x{}\n", kSteps, kFields, kSide, kSide);
  fmt::print("  full tape:          {:>7.2f} MB, {:>6.1f} ms\n", static_cast<double>(full.bytes) * 1e-6,
             full.seconds * 1e3);
  fmt::print("  {} snapshots:        {:>7.2f} MB, {:>6.1f} ms\n", kSnapshots,
             static_cast<double>(less.bytes) * 1e-6, less.seconds * 1e3);
  const auto loss = [&](const td::Tensor& log_k) { return problem.loss(log_k, kSnapshots); };
  const td::Tensor flat = td::zeros({kSide, kSide}, td::DType::f64);
  run.claim(td::check_vjp([&](const std::vector<td::Tensor>& x) { return loss(x[0]); }, {flat}),
            "the gradient agrees with differences");
  run.claim(td::sum(td::abs(full.gradient - less.gradient)).item() == 0, "both gradients have the same bits");
  run.claim(4 * less.bytes < full.bytes, "snapshots take less than a quarter of the memory");
  run.claim(less.steps <= 3 * full.steps, "and compute no step more than three times");

  Curve losses{.name = "loss"};
  const int iterations = run.quick ? 20 : 60;
  const auto progress = [&](const td::Minimum& m) {
    losses.x.push_back(m.iterations), losses.y.push_back(std::max(m.value, 1e-16));
    return true;
  };
  const td::Minimum found =
      td::has_lbfgs()
          ? td::minimize_lbfgs(loss, flat,
                               {{.tolerance = 1e-9, .max_iterations = iterations, .progress = progress}, 20})
          : td::minimize_newton(loss, flat, {{.tolerance = 1e-9, .max_iterations = 6, .progress = progress}});
  const double error = error_of(problem, found.x[0]), limit = 0.03;
  fmt::print("{} iterations: loss {:.2e}, conductivity off by {:.1f} % of its variation\n", found.iterations,
             found.value, 100 * error);
  run.claim(error < limit, fmt::format("the conductivity is found to {:.0f} %", 100 * limit));

  const double low = td::min(problem.truth).item(), high = td::max(problem.truth).item();
  run.picture.field({.width = 400, .height = 400}, "Logarithm of the conductivity: the truth",
                    problem.truth.to_vector(), kSide, low, high);
  run.picture.field({.x = 400, .width = 400, .height = 400}, "and what is found", found.x[0].to_vector(),
                    kSide, low, high);
  run.picture.chart({.x = 800, .width = 400, .height = 400},
                    "Minimization:", {.label = "iteration", .whole = true},
                    {.label = "loss", .logarithmic = true, .from = 1}, {&losses, 1});
}

}   // namespace

int main(int argc, char** argv) {
  return run_example(argc, argv, "how a plate conducts heat, from how temperatures change", example);
}
