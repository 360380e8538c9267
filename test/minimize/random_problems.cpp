// The pendulum and the random problems. scipy_counts.py draws the same numbers in the same order.
#include <cmath>
#include <cstdint>
#include <numbers>

#include "minimize/problems.h"
#include "tapedeck/tapedeck.h"

namespace tapedeck::test {
namespace {

using Values = std::vector<double>;

/// SplitMix64.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  double uniform(double low, double high) {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return low + (high - low) * std::ldexp(static_cast<double>((z ^ (z >> 31)) >> 11), -53);
  }
  int count(int low, int high) { return low + static_cast<int>(uniform(0, high - low + 1)); }
  Values values(int n, double low, double high) {
    Values x;
    for (int i = 0; i < n; ++i)
      x.push_back(uniform(low, high));
    return x;
  }
  Tensor matrix(int rows, int columns, double low, double high) {
    return reshape(tensor(values(rows * columns, low, high)), {rows, columns});
  }

 private:
  std::uint64_t state_;
};

Tensor swing_up(const Tensor& u, double pull, double cost, double speed_at_start) {
  Tensor angle = tensor(0.0, DType::f64), speed = tensor(speed_at_start, DType::f64);
  for (std::int64_t i = 0; i < u.size(); ++i) {
    speed = speed + 0.05 * (reshape(slice(u, {i}, {1}), {}) - pull * sin(angle));
    angle = angle + 0.05 * speed;
  }
  return 100.0 * square(angle - std::numbers::pi) + 100.0 * square(speed) + cost * sum(square(u));
}

Tensor column(const Tensor& x) { return reshape(x, {x.size(), 1}); }

Problem waves(Random& r) {
  const int n = r.count(2, 20);
  const Tensor w = r.matrix(2 * n, n, -2, 2), a = r.matrix(2 * n, 1, 0, 1),
               b = r.matrix(2 * n, 1, 0, 2 * std::numbers::pi);
  return {"waves",
          [=](const Tensor& x) { return 0.05 * sum(square(x)) + sum(a * sin(matmul(w, column(x)) + b)); },
          r.values(n, -3, 3),
          {}};
}

// The numbers are the weights of two inputs, the biases, and the weights of the sum, of each of the units.
Problem layer(Random& r) {
  const int units = r.count(1, 5);
  const Tensor z = r.matrix(2, 20, -2, 2), y = r.matrix(1, 20, -1, 1);
  const auto f = [=](const Tensor& x) {
    const Tensor rows = reshape(x, {4, units}), w = slice(rows, {0, 0}, {2, units}),
                 b = reshape(slice(rows, {2, 0}, {1, units}), {units, 1}),
                 v = slice(rows, {3, 0}, {1, units});
    return mean(square(matmul(v, tanh(matmul(transpose(w), z) + b)) - y)) + 1e-3 * sum(square(x));
  };
  return {"layer", f, r.values(4 * units, -1, 1), {}};
}

Problem valleys(Random& r) {
  const int n = r.count(2, 20);
  const Tensor steep = pow(10.0, tensor(r.values(n - 1, 0, 3))), bend = tensor(r.values(n - 1, -1, 1)),
               middle = tensor(r.values(n, -1, 1));
  const auto f = [=](const Tensor& x) {
    const Tensor a = slice(x, {0}, {n - 1}), b = slice(x, {1}, {n - 1});
    return sum(steep * square(b - bend * square(a))) + sum(square(x - middle));
  };
  return {"valleys", f, r.values(n, -2, 2), {}};
}

Problem wells(Random& r) {
  const int n = r.count(2, 20);
  const Tensor a = tensor(r.values(n, .1, 2)), c = r.matrix(n, n, -.5, .5);
  const auto f = [=](const Tensor& x) {
    return sum(a * square(square(x) - 1.0)) + sum(column(x) * matmul(c, column(x)));
  };
  return {"wells", f, r.values(n, -2, 2), {}};
}

// Half a second or more of a pendulum of any length and weight of the control.
Problem swing(Random& r) {
  const int n = r.count(10, 25);
  const double pull = r.uniform(1, 20), cost = r.uniform(1e-3, .1), speed = r.uniform(-3, 3);
  return {"swing", [=](const Tensor& u) { return swing_up(u, pull, cost, speed); }, r.values(n, -1, 1), {}};
}

}   // namespace

std::vector<Problem> random_problems() {
  std::vector<Problem> all;
  Random r(1);
  for (const auto kind : {waves, layer, valleys, wells, swing})
    for (int i = 0; i < 40; ++i) {
      all.push_back(kind(r));
      all.back().name += " " + std::to_string(i + 1);
    }
  return all;
}

Problem pendulum() {
  return {"pendulum", [](const Tensor& u) { return swing_up(u, 9.81, .01, 0); }, Values(60, 0.0), {}};
}

}   // namespace tapedeck::test
