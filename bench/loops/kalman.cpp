// The negative log-likelihood of a Kalman filter with four states, two of them observed, and its gradient in
// the logarithms of both noise levels.
#include <chrono>
#include <cmath>
#include <cstdio>

#include "../median.h"
#include "cases.h"

namespace bench {
namespace {

constexpr double kStep = 0.1;   // between two observations

// x: the noise levels of the motion and of the observations, the observations [steps, 2, 1].
Tensors filter(const Tensors& in) {
  const auto f64 = td::DType::f64;
  const td::Tensor motion = td::tensor(
      {{1.0, 0.0, kStep, 0.0}, {0.0, 1.0, 0.0, kStep}, {0.0, 0.0, 1.0, 0.0}, {0.0, 0.0, 0.0, 1.0}}, f64);
  const td::Tensor seen = td::tensor({{1.0, 0.0, 0.0, 0.0}, {0.0, 1.0, 0.0, 0.0}}, f64);
  const td::Tensor one = td::eye(4, 4, f64);
  td::GradientTape tape;
  tape.watch(in[0]), tape.watch(in[1]);
  const td::Tensor q = td::exp(in[0]) * one, r = td::exp(in[1]) * td::eye(2, 2, f64);
  const auto step = [=, to = td::transpose(motion), back = td::transpose(seen)](
                        const td::Tensor& last, const td::Tensor& cov, const td::Tensor& sum,
                        const td::Tensor& z) {
    const td::Tensor x = td::matmul(motion, last);
    const td::Tensor p = td::matmul(td::matmul(motion, cov), to) + q;
    const td::Tensor y = z - td::matmul(seen, x);
    const td::Tensor s = td::matmul(td::matmul(seen, p), back) + r;
    const td::Tensor a = s[0][0], b = s[0][1], c = s[1][0], d = s[1][1], det = a * d - b * c;
    const td::Tensor inverse = td::stack({td::stack({d, -b}, 0), td::stack({-c, a}, 0)}, 0) / det;
    const td::Tensor gain = td::matmul(td::matmul(p, back), inverse);
    return std::array{x + td::matmul(gain, y), td::matmul(one - td::matmul(gain, seen), p),
                      sum + td::log(det) + td::sum(y * td::matmul(inverse, y))};
  };
  const td::Tensor loss = td::scan(step, {td::zeros({4, 1}, f64), one, number(0)}, {in[2]})[2];
  const auto [dq, dr] = tape.gradient(loss, in[0], in[1]);
  return {loss, dq.dense(), dr.dense()};
}

template <int m, int n> struct Matrix {
  double at[m][n] = {};

  Matrix& operator+=(const Matrix& b) {
    for (int i = 0; i < m; ++i)
      for (int j = 0; j < n; ++j)
        at[i][j] += b.at[i][j];
    return *this;
  }
  Matrix<n, m> transposed() const {
    Matrix<n, m> t;
    for (int i = 0; i < m; ++i)
      for (int j = 0; j < n; ++j)
        t.at[j][i] = at[i][j];
    return t;
  }
};
template <int m, int n> Matrix<m, n> operator+(Matrix<m, n> a, const Matrix<m, n>& b) { return a += b; }
template <int m, int n> Matrix<m, n> operator*(double a, Matrix<m, n> b) {
  for (auto& row : b.at)
    for (double& e : row)
      e *= a;
  return b;
}
template <int m, int n> Matrix<m, n> operator-(const Matrix<m, n>& a, const Matrix<m, n>& b) {
  return a + -1.0 * b;
}
template <int m, int k, int n> Matrix<m, n> operator*(const Matrix<m, k>& a, const Matrix<k, n>& b) {
  Matrix<m, n> c;
  for (int i = 0; i < m; ++i)
    for (int l = 0; l < k; ++l)
      for (int j = 0; j < n; ++j)
        c.at[i][j] += a.at[i][l] * b.at[l][j];
  return c;
}
template <int n> Matrix<n, n> diagonal(double value) {
  Matrix<n, n> a;
  for (int i = 0; i < n; ++i)
    a.at[i][i] = value;
  return a;
}
template <int n> double trace(const Matrix<n, n>& a) {
  double sum = 0;
  for (int i = 0; i < n; ++i)
    sum += a.at[i][i];
  return sum;
}

// What the gradient of a step reads.
struct Kept {
  Matrix<4, 4> p;
  Matrix<4, 2> gain, seen_p;   // seen_p: p seen^T
  Matrix<2, 2> inverse;
  Matrix<2, 1> y;
};

Numbers filter_by_hand(double log_q, double log_r, const Numbers& z) {
  const Matrix<4, 4> motion = {{{1, 0, kStep, 0}, {0, 1, 0, kStep}, {0, 0, 1, 0}, {0, 0, 0, 1}}},
                     to = motion.transposed(), one = diagonal<4>(1), q = diagonal<4>(std::exp(log_q));
  const Matrix<2, 4> seen = {{{1, 0, 0, 0}, {0, 1, 0, 0}}};
  const Matrix<4, 2> back = seen.transposed();
  const Matrix<2, 2> r = diagonal<2>(std::exp(log_r));
  static std::vector<Kept> kept;
  kept.resize(z.size() / 2);
  Matrix<4, 1> x;
  Matrix<4, 4> cov = one;
  double loss = 0;
  for (std::size_t k = 0; k < kept.size(); ++k) {
    Kept& s = kept[k];
    x = motion * x;
    s.p = motion * cov * to + q;
    s.y = Matrix<2, 1>{{{z[2 * k]}, {z[2 * k + 1]}}} - seen * x;
    s.seen_p = s.p * back;
    const Matrix<2, 2> sum = seen * s.seen_p + r;
    const double det = sum.at[0][0] * sum.at[1][1] - sum.at[0][1] * sum.at[1][0];
    s.inverse = 1 / det * Matrix<2, 2>{{{sum.at[1][1], -sum.at[0][1]}, {-sum.at[1][0], sum.at[0][0]}}};
    s.gain = s.seen_p * s.inverse;
    loss += std::log(det) + (s.y.transposed() * (s.inverse * s.y)).at[0][0];
    x += s.gain * s.y;
    cov = (one - s.gain * seen) * s.p;
  }
  Matrix<4, 1> dx;
  Matrix<4, 4> dcov;
  double dq = 0, dr = 0;
  for (std::size_t k = kept.size(); k-- > 0;) {
    const Kept& s = kept[k];
    const Matrix<2, 2> inverse_t = s.inverse.transposed();
    Matrix<4, 4> dp = (one - s.gain * seen).transposed() * dcov;
    const Matrix<4, 2> dgain = dx * s.y.transposed() - dcov * s.p.transposed() * back;
    const Matrix<2, 1> dy = s.gain.transposed() * dx + (s.inverse + inverse_t) * s.y;
    const Matrix<2, 2> dinverse = s.y * s.y.transposed() + s.seen_p.transposed() * dgain;
    const Matrix<2, 2> dsum = inverse_t - inverse_t * dinverse * inverse_t;
    dp += (dgain * inverse_t + back * dsum) * seen;
    dx = to * (dx - back * dy);
    dq += trace(dp), dr += trace(dsum);
    dcov = to * dp * motion;
  }
  return {loss, dq * std::exp(log_q), dr * std::exp(log_r)};
}

double first_call_seconds(const Tensors& x) {
  Numbers times;
  for (int i = 0; i < 9; ++i) {
    const auto recorded = td::compile(filter);
    const auto begin = std::chrono::steady_clock::now();
    (void)recorded(x);
    times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return median(times);
}

}   // namespace

void run_kalman() {
  for (const std::int64_t steps : {300, 3000}) {
    const std::string name = "Kalman filter, " + std::to_string(steps) + " steps, gradient";
    if (!is_chosen(name)) continue;
    const td::Tensor z = td::random::normal({steps, 2, 1}, {.seed = 1}, td::DType::f64);
    const Tensors x = {number(-1), number(-2), z};
    const Numbers seen = z.to_vector();
    const Race r =
        race({.name = name, .x = x, .f = filter, .by_hand = [&] { return filter_by_hand(-1, -2, seen); }});
    char remark[160];
    std::snprintf(remark, sizeof remark, "%.4g us, %.3g times by hand", r.seconds(replay) * 1e6,
                  r.ratio(replay, hand));
    report(name, r.ratio(eager, replay), "times as fast as eager", {.at_least = 5}, remark);
    const double first = first_call_seconds(x);
    std::snprintf(remark, sizeof remark, "a first call takes %.3g ms", first * 1e3);
    report(name + ", recording", (first - r.seconds(replay)) * 1e3, "ms", {.at_most = 3}, remark);
  }
}

}   // namespace bench
