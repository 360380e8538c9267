// The time of the gradient of GradBench's lstm by map_scan, divided by the time of derivatives written by
// hand as plain loops. Both run alternately; the minimum of several runs counts.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>

#include "tapedeck/map_scan.h"
#include "tapedeck/tapedeck.h"

namespace {

namespace td = tapedeck;

constexpr int kBits = 14;   // bits of a character

// A step of l layers of cells, and the prediction. s: 2 l states. w: 8 l weights and biases, and three for
// the input and the output.
template <int l> constexpr auto lstm_step = [](const auto& s, const auto& x, const auto& w) {
  auto next = s;
  auto in = x[0] * w[8 * l];
  for (std::size_t k = 0; k < l; ++k) {
    const auto *p = &w[8 * k], *q = p + 4;
    const auto forget = sigmoid(in * p[0] + q[0]), gate = sigmoid(s[2 * k] * p[1] + q[1]),
               out = sigmoid(in * p[2] + q[2]), change = tanh(s[2 * k] * p[3] + q[3]);
    next[2 * k + 1] = s[2 * k + 1] * forget + gate * change;
    next[2 * k] = out * tanh(next[2 * k + 1]);
    in = next[2 * k];
  }
  const auto y = in * w[8 * l + 1] + w[8 * l + 2];
  return std::pair(next, std::array{y});
};

struct Data {
  int layers;
  std::int64_t steps;   // one less than there are characters
  std::vector<double> weights, state, text;
};
Data data_of(int layers, std::int64_t characters) {
  Data d{layers, characters - 1, {}, {}, {}};
  double u = 0.3;
  const auto fill = [&](std::vector<double>& v, std::int64_t n, double low, double high) {
    for (std::int64_t i = 0; i < n; ++i)
      u = std::fmod(u + 0.6180339887498949, 1.0), v.push_back(low + (high - low) * u);
  };
  fill(d.weights, (8 * layers + 3) * kBits, -0.8, 0.9);
  fill(d.state, 2 * layers * kBits, -0.5, 0.5);
  fill(d.text, characters * kBits, 0, 1);
  return d;
}

template <int l> class ByMapScan {
 public:
  explicit ByMapScan(const Data& d) : steps_(d.steps) {
    const auto rows = [](const std::vector<double>& v) {
      return td::unstack(td::tensor(v, {static_cast<std::int64_t>(v.size()) / kBits, kBits}), 0);
    };
    const std::vector<td::Tensor> w = rows(d.weights), s = rows(d.state);
    std::copy(w.begin(), w.end(), weights_.begin());
    std::copy(s.begin(), s.end(), state_.begin());
    const td::Tensor text = td::tensor(d.text, {d.steps + 1, kBits});
    inputs_ = td::slice(text, {0, 0}, {d.steps, kBits});
    gold_ = td::slice(text, {1, 0}, {d.steps, kBits});
  }
  td::Tensor loss() const {
    const auto y = td::map_scan(lstm_step<l>, state_, std::array{inputs_}, weights_).second[0];
    const td::Tensor lse = td::logaddexp(td::logsumexp(y, 1, {.keepdims = true}), std::log(2.0));
    return -td::sum(gold_ * (y - lse)) / static_cast<double>(steps_ * kBits);
  }
  std::vector<double> gradient() const {
    td::GradientTape tape;
    for (const td::Tensor& w : weights_)
      tape.watch(w);
    std::vector<double> all;
    for (td::Gradient& g :
         tape.gradient(loss(), td::Sources(std::vector<td::Tensor>(weights_.begin(), weights_.end())))) {
      const std::vector<double> values = g.to_vector();
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }

 private:
  std::int64_t steps_;
  std::array<td::Tensor, 8 * l + 3> weights_;
  std::array<td::Tensor, 2 * l> state_;
  td::Tensor inputs_, gold_;
};

// The intermediate results of a layer for one element of one step.
struct Cell {
  double in, hidden, cell, forget, gate, out, change, tanh_next;
};
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

std::vector<double> by_hand(const Data& d) {
  const auto l = static_cast<std::size_t>(d.layers), n = static_cast<std::size_t>(kBits),
             steps = static_cast<std::size_t>(d.steps);
  std::vector<double> s = d.state, y(steps * n), dw(d.weights.size());
  std::vector<Cell> cells(steps * l * n);
  const double* w = d.weights.data();
  for (std::size_t t = 0; t < steps; ++t)
    for (std::size_t i = 0; i < n; ++i) {
      double in = d.text[t * n + i] * w[8 * l * n + i];
      for (std::size_t k = 0; k < l; ++k) {
        const double* p = w + 8 * k * n + i;
        Cell& c = cells[(t * l + k) * n + i];
        double &hidden = s[2 * k * n + i], &cell = s[(2 * k + 1) * n + i];
        c = {in,
             hidden,
             cell,
             sigmoid(in * p[0] + p[4 * n]),
             sigmoid(hidden * p[n] + p[5 * n]),
             sigmoid(in * p[2 * n] + p[6 * n]),
             std::tanh(hidden * p[3 * n] + p[7 * n]),
             0};
        cell = cell * c.forget + c.gate * c.change;
        c.tanh_next = std::tanh(cell);
        in = hidden = c.out * c.tanh_next;
      }
      y[t * n + i] = in * w[(8 * l + 1) * n + i] + w[(8 * l + 2) * n + i];
    }
  std::vector<double> ds(2 * l * n);
  const double scale = 1 / static_cast<double>(steps * n);
  for (std::size_t t = steps; t-- > 0;) {
    const double* gold = &d.text[(t + 1) * n];
    double sum = 2, all = 0, e[kBits];
    for (std::size_t i = 0; i < n; ++i)
      sum += e[i] = std::exp(y[t * n + i]), all += gold[i];
    for (std::size_t i = 0; i < n; ++i) {
      const double dy = scale * (all * e[i] / sum - gold[i]);
      const std::size_t o = 8 * l * n + i;
      const Cell& top = cells[(t * l + l - 1) * n + i];
      dw[o + n] += dy * top.out * top.tanh_next;
      dw[o + 2 * n] += dy;
      double dh = dy * w[o + n];   // the cotangent of the output of the layer
      for (std::size_t k = l; k-- > 0;) {
        const double* p = w + 8 * k * n + i;
        double* dp = &dw[8 * k * n + i];
        const Cell& c = cells[(t * l + k) * n + i];
        double &dhidden = ds[2 * k * n + i], &dcell = ds[(2 * k + 1) * n + i];
        dh += dhidden;
        const double dnext = dcell + dh * c.out * (1 - c.tanh_next * c.tanh_next);
        const double dout = dh * c.tanh_next * c.out * (1 - c.out),
                     dforget = dnext * c.cell * c.forget * (1 - c.forget),
                     dgate = dnext * c.change * c.gate * (1 - c.gate),
                     dchange = dnext * c.gate * (1 - c.change * c.change);
        dp[0] += dforget * c.in, dp[4 * n] += dforget;
        dp[n] += dgate * c.hidden, dp[5 * n] += dgate;
        dp[2 * n] += dout * c.in, dp[6 * n] += dout;
        dp[3 * n] += dchange * c.hidden, dp[7 * n] += dchange;
        dcell = dnext * c.forget;
        dhidden = dgate * p[n] + dchange * p[3 * n];
        dh = dforget * p[0] + dout * p[2 * n];
      }
      dw[o] += dh * d.text[t * n + i];
    }
  }
  return dw;
}

template <class F> double milliseconds(const F& run) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  run();
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}
template <int l> void compare(std::int64_t characters) {
  const Data d = data_of(l, characters);
  const ByMapScan<l> scan(d);
  const std::vector<double> a = scan.gradient(), b = by_hand(d);
  double error = 0, size = 0;
  for (std::size_t i = 0; i < b.size(); ++i)
    error = std::max(error, std::abs(a[i] - b[i])), size = std::max(size, std::abs(b[i]));
  double ours = std::numeric_limits<double>::infinity(), hand = ours, value = ours;
  for (int round = 0; round < 30; ++round) {
    ours = std::min(ours, milliseconds([&] { scan.gradient(); }));
    hand = std::min(hand, milliseconds([&] { by_hand(d); }));
    value = std::min(value, milliseconds([&] { scan.loss(); }));
  }
  std::printf(
      "lstm l %d c %5lld: gradient %8.3f ms, loss %8.3f ms, by hand %8.3f ms; gradient / by hand %.3f, error "
      "%.1e\n",
      l, static_cast<long long>(characters), ours, value, hand, ours / hand, error / size);
}

}   // namespace

int main() {
  td::set_num_threads(1);
  compare<2>(1024);
  compare<2>(8192);
  compare<6>(8192);
}
