// The problems of Moré, Garbow and Hillstrom: sums of squares of residuals, with their names.
#include <cmath>
#include <numbers>

#include "minimize/problems.h"
#include "tapedeck/tapedeck.h"

namespace tapedeck::test {
namespace {

using Values = std::vector<double>;

Tensor at(const Tensor& x, std::int64_t i) { return slice(x, {i}, {1}); }
Tensor range(const Tensor& x, std::int64_t begin, std::int64_t end) {
  return slice(x, {begin}, {end - begin});
}
Tensor squares(const Tensor& r) { return sum(square(r)); }
Tensor squares(std::initializer_list<Tensor> r) { return sum(square(concat(r, 0))); }

/// f of 1, 2, …, n.
template <class F> Tensor each(int n, F f) {
  Values y;
  for (int i = 1; i <= n; ++i)
    y.push_back(f(i));
  return tensor(y);
}
Tensor counted(int n) {
  return each(n, [](int i) { return double(i); });
}
Values filled(int n, double value) { return Values(static_cast<std::size_t>(n), value); }
template <class F> Values start_of(int n, F f) {
  Values y;
  for (int i = 1; i <= n; ++i)
    y.push_back(f(i));
  return y;
}

/// Entry (i, j), from 1 on, is f(i, j).
template <class F> Tensor matrix(int rows, int columns, F f) {
  Values y;
  for (int i = 1; i <= rows; ++i)
    for (int j = 1; j <= columns; ++j)
      y.push_back(f(i, j));
  return reshape(tensor(y), {rows, columns});
}
Tensor times(const Tensor& a, const Tensor& x) {
  return reshape(matmul(a, reshape(x, {x.shape()[0], 1})), {a.shape()[0]});
}

Tensor freudenstein_roth(const Tensor& x) {
  const Tensor a = at(x, 0), b = at(x, 1);
  return squares({a - 13.0 + ((5.0 - b) * b - 2.0) * b, a - 29.0 + ((b + 1.0) * b - 14.0) * b});
}

Tensor powell_badly_scaled(const Tensor& x) {
  const Tensor a = at(x, 0), b = at(x, 1);
  return squares({1e4 * a * b - 1.0, exp(-a) + exp(-b) - 1.0001});
}

Tensor brown_badly_scaled(const Tensor& x) {
  const Tensor a = at(x, 0), b = at(x, 1);
  return squares({a - 1e6, b - 2e-6, a * b - 2.0});
}

Tensor beale(const Tensor& x) {
  const Tensor a = at(x, 0), b = at(x, 1);
  return squares({1.5 - a * (1.0 - b), 2.25 - a * (1.0 - b * b), 2.625 - a * (1.0 - b * b * b)});
}

Tensor jennrich_sampson(const Tensor& x) {
  const Tensor i = counted(10);
  return squares(2.0 + 2.0 * i - exp(i * at(x, 0)) - exp(i * at(x, 1)));
}

Tensor helical_valley(const Tensor& x) {
  const Tensor a = at(x, 0), b = at(x, 1), c = at(x, 2);
  // The angle in turns, from -1/4 to 3/4; atan2 has the cut elsewhere.
  const double whole = a.at<double>({0}) < 0 && b.at<double>({0}) < 0 ? 1.0 : 0.0;
  const Tensor turns = atan2(b, a) / (2 * std::numbers::pi) + whole;
  return squares({10.0 * (c - 10.0 * turns), 10.0 * (sqrt(a * a + b * b) - 1.0), c});
}

Tensor bard(const Tensor& x) {
  const Tensor y =
      tensor({.14, .18, .22, .25, .29, .32, .35, .39, .37, .58, .73, .96, 1.34, 2.10, 4.39}, DType::f64);
  const Tensor u = counted(15), v = 16.0 - u, w = minimum(u, v);
  return squares(y - at(x, 0) - u / (v * at(x, 1) + w * at(x, 2)));
}

Tensor gaussian(const Tensor& x) {
  const Tensor y = tensor({.0009, .0044, .0175, .0540, .1295, .2420, .3521, .3989, .3521, .2420, .1295, .0540,
                           .0175, .0044, .0009},
                          DType::f64);
  const Tensor t = (8.0 - counted(15)) / 2.0;
  return squares(at(x, 0) * exp(-at(x, 1) * square(t - at(x, 2)) / 2.0) - y);
}

Tensor meyer(const Tensor& x) {
  const Tensor y = tensor(
      {34780, 28610, 23650, 19630, 16370, 13720, 11540, 9744, 8261, 7030, 6005, 5147, 4427, 3820, 3307, 2872},
      DType::f64);
  const Tensor t = 45.0 + 5.0 * counted(16);
  return squares(at(x, 0) * exp(at(x, 1) / (t + at(x, 2))) - y);
}

// As corrected later: the paper's own formula has a product in place of the difference.
Tensor gulf(const Tensor& x) {
  const Tensor t = counted(99) / 100.0, y = 25.0 + pow(-50.0 * log(t), 2.0 / 3.0);
  return squares(exp(-pow(abs(y - at(x, 1)), at(x, 2)) / at(x, 0)) - t);
}

Tensor box(const Tensor& x) {
  const Tensor t = 0.1 * counted(10);
  return squares(exp(-t * at(x, 0)) - exp(-t * at(x, 1)) - at(x, 2) * (exp(-t) - exp(-10.0 * t)));
}

Tensor powell_singular(const Tensor& x) {
  const Tensor rows = reshape(x, {x.shape()[0] / 4, 4});
  const auto part = [&](std::int64_t i) { return slice(rows, {0, i}, {rows.shape()[0], 1}); };
  const Tensor a = part(0), b = part(1), c = part(2), d = part(3);
  return sum(square(a + 10.0 * b) + 5.0 * square(c - d) + square(square(b - 2.0 * c)) +
             10.0 * square(square(a - d)));
}

Tensor wood(const Tensor& x) {
  const Tensor a = at(x, 0), b = at(x, 1), c = at(x, 2), d = at(x, 3);
  return squares({10.0 * (b - a * a), 1.0 - a, std::sqrt(90.0) * (d - c * c), 1.0 - c,
                  std::sqrt(10.0) * (b + d - 2.0), (b - d) / std::sqrt(10.0)});
}

Tensor kowalik_osborne(const Tensor& x) {
  const Tensor y =
      tensor({.1957, .1947, .1735, .1600, .0844, .0627, .0456, .0342, .0323, .0235, .0246}, DType::f64);
  const Tensor u = tensor({4.0, 2.0, 1.0, .5, .25, .167, .125, .1, .0833, .0714, .0625}, DType::f64);
  return squares(y - at(x, 0) * (u * u + u * at(x, 1)) / (u * u + u * at(x, 2) + at(x, 3)));
}

Tensor brown_dennis(const Tensor& x) {
  const Tensor t = counted(20) / 5.0;
  return squares(square(at(x, 0) + t * at(x, 1) - exp(t)) + square(at(x, 2) + at(x, 3) * sin(t) - cos(t)));
}

Tensor osborne_1(const Tensor& x) {
  const Tensor y = tensor(
      {.844, .908, .932, .936, .925, .908, .881, .850, .818, .784, .751, .718, .685, .658, .628, .603, .580,
       .558, .538, .522, .506, .490, .478, .467, .457, .448, .438, .431, .424, .420, .414, .411, .406},
      DType::f64);
  const Tensor t = 10.0 * (counted(33) - 1.0);
  return squares(y - at(x, 0) - at(x, 1) * exp(-t * at(x, 3)) - at(x, 2) * exp(-t * at(x, 4)));
}

Tensor biggs_exp6(const Tensor& x) {
  const Tensor t = 0.1 * counted(13), y = exp(-t) - 5.0 * exp(-10.0 * t) + 3.0 * exp(-4.0 * t);
  return squares(at(x, 2) * exp(-t * at(x, 0)) - at(x, 3) * exp(-t * at(x, 1)) +
                 at(x, 5) * exp(-t * at(x, 4)) - y);
}

Tensor osborne_2(const Tensor& x) {
  const Tensor y = tensor({1.366, 1.191, 1.112, 1.013, .991, .885, .831, .847, .786, .725, .746, .679, .608,
                           .655,  .616,  .606,  .602,  .626, .651, .724, .649, .649, .694, .644, .624, .661,
                           .612,  .558,  .533,  .495,  .500, .423, .395, .375, .372, .391, .396, .405, .428,
                           .429,  .523,  .562,  .607,  .653, .672, .708, .633, .668, .645, .632, .591, .559,
                           .597,  .625,  .739,  .710,  .729, .720, .636, .581, .428, .292, .162, .098, .054},
                          DType::f64);
  const Tensor t = (counted(65) - 1.0) / 10.0;
  const auto peak = [&](int height, int width, int middle) {
    return at(x, height) * exp(-square(t - at(x, middle)) * at(x, width));
  };
  return squares(y - at(x, 0) * exp(-t * at(x, 4)) - peak(1, 5, 8) - peak(2, 6, 9) - peak(3, 7, 10));
}

Tensor watson(const Tensor& x) {
  const int n = static_cast<int>(x.shape()[0]);
  static const auto slopes = [](int i, int j) { return j < 2 ? 0.0 : (j - 1) * std::pow(i / 29.0, j - 2); };
  static const auto powers = [](int i, int j) { return std::pow(i / 29.0, j - 1); };
  const Tensor r = times(matrix(29, n, slopes), x) - square(times(matrix(29, n, powers), x)) - 1.0;
  return squares({r, at(x, 0), at(x, 1) - square(at(x, 0)) - 1.0});
}

Tensor extended_rosenbrock(const Tensor& x) {
  const Tensor rows = reshape(x, {x.shape()[0] / 2, 2});
  const Tensor a = slice(rows, {0, 0}, {rows.shape()[0], 1}), b = slice(rows, {0, 1}, {rows.shape()[0], 1});
  return sum(100.0 * square(b - square(a)) + square(1.0 - a));
}

Tensor penalty_1(const Tensor& x) { return 1e-5 * squares(x - 1.0) + square(sum(square(x)) - 0.25); }

Tensor penalty_2(const Tensor& x) {
  const int n = static_cast<int>(x.shape()[0]);
  const Tensor e = exp(x / 10.0), weights = double(n) + 1.0 - counted(n);
  const Tensor y = each(n - 1, [](int i) { return std::exp((i + 1) / 10.0) + std::exp(i / 10.0); });
  return sum(square(at(x, 0) - 0.2)) + 1e-5 * squares(range(e, 1, n) + range(e, 0, n - 1) - y) +
         1e-5 * squares(range(e, 1, n) - std::exp(-0.1)) + square(sum(weights * square(x)) - 1.0);
}

Tensor variably_dimensioned(const Tensor& x) {
  const Tensor s = sum(counted(static_cast<int>(x.shape()[0])) * (x - 1.0));
  return squares(x - 1.0) + square(s) + square(square(s));
}

Tensor trigonometric(const Tensor& x) {
  const int n = static_cast<int>(x.shape()[0]);
  return squares(double(n) - sum(cos(x)) + counted(n) * (1.0 - cos(x)) - sin(x));
}

Tensor brown_almost_linear(const Tensor& x) {
  const std::int64_t n = x.shape()[0];
  return squares(range(x, 0, n - 1) + sum(x) - double(n + 1)) + square(prod(x) - 1.0);
}

Tensor discrete_boundary_value(const Tensor& x) {
  const int n = static_cast<int>(x.shape()[0]);
  const double h = 1.0 / (n + 1);
  const Tensor zero = zeros({1}, DType::f64);
  const Tensor before = concat({zero, range(x, 0, n - 1)}, 0), after = concat({range(x, 1, n), zero}, 0);
  return squares(2.0 * x - before - after + h * h / 2 * pow(x + h * counted(n) + 1.0, 3.0));
}

Tensor discrete_integral_equation(const Tensor& x) {
  const int n = static_cast<int>(x.shape()[0]);
  const double h = 1.0 / (n + 1);
  const Tensor kernel =
      matrix(n, n, [h](int i, int j) { return j <= i ? (1 - i * h) * j * h : i * h * (1 - j * h); });
  return squares(x + h / 2 * times(kernel, pow(x + h * counted(n) + 1.0, 3.0)));
}

Tensor broyden_tridiagonal(const Tensor& x) {
  const std::int64_t n = x.shape()[0];
  const Tensor zero = zeros({1}, DType::f64);
  const Tensor before = concat({zero, range(x, 0, n - 1)}, 0), after = concat({range(x, 1, n), zero}, 0);
  return squares((3.0 - 2.0 * x) * x - before - 2.0 * after + 1.0);
}

Tensor broyden_banded(const Tensor& x) {
  const int n = static_cast<int>(x.shape()[0]);
  const Tensor band =
      matrix(n, n, [](int i, int j) { return j != i && j >= i - 5 && j <= i + 1 ? 1.0 : 0.0; });
  return squares(x * (2.0 + 5.0 * square(x)) + 1.0 - times(band, x * (1.0 + x)));
}

Tensor linear_full_rank(const Tensor& x) {
  const Tensor s = 2.0 / 20 * sum(x);
  return squares(x - s - 1.0) + 10.0 * square(s + 1.0);
}

Tensor linear_rank_1(const Tensor& x) { return squares(counted(20) * sum(counted(10) * x) - 1.0); }

Tensor linear_rank_1_with_zeros(const Tensor& x) {
  const Tensor j = counted(9);
  const Tensor s = sum(range(j, 1, 9) * range(x, 1, 9));
  return squares((counted(19) - 1.0) * s - 1.0) + 1.0;
}

Tensor chebyquad(const Tensor& x) {
  const int n = static_cast<int>(x.shape()[0]);
  const Tensor y = 2.0 * x - 1.0;
  Tensor before = ones({n}, DType::f64), t = y, f = square(mean(t));
  for (int i = 2; i <= n; ++i) {
    const Tensor next = 2.0 * y * t - before;
    before = t, t = next;
    f = f + square(mean(t) + (i % 2 ? 0.0 : 1.0 / (i * i - 1)));
  }
  return f;
}

}   // namespace

std::vector<Problem> published_problems() {
  const auto boundary = [](int n) {
    return start_of(n, [n](int i) { return i * (i - n - 1.0) / (n + 1) / (n + 1); });
  };
  return {
      {"Rosenbrock", extended_rosenbrock, {-1.2, 1}, {0}},
      {"Freudenstein and Roth", freudenstein_roth, {.5, -2}, {0, 48.98425}},
      {"Powell badly scaled", powell_badly_scaled, {0, 1}, {0}},
      {"Brown badly scaled", brown_badly_scaled, {1, 1}, {0}},
      {"Beale", beale, {1, 1}, {0}},
      {"Jennrich and Sampson", jennrich_sampson, {.3, .4}, {124.362}},
      {"Helical valley", helical_valley, {-1, 0, 0}, {0}},
      {"Bard", bard, {1, 1, 1}, {8.21487e-3, 17.4286}},
      {"Gaussian", gaussian, {.4, 1, 0}, {1.12793e-8}},
      {"Meyer", meyer, {.02, 4000, 250}, {87.9458}},
      {"Gulf", gulf, {5, 2.5, .15}, {0}},
      {"Box", box, {0, 10, 20}, {0}},
      {"Powell singular", powell_singular, {3, -1, 0, 1}, {0}},
      {"Wood", wood, {-3, -1, -3, -1}, {0}},
      {"Kowalik and Osborne", kowalik_osborne, {.25, .39, .415, .39}, {3.07505e-4, 1.02734e-3}},
      {"Brown and Dennis", brown_dennis, {25, 5, -5, -1}, {85822.2}},
      {"Osborne 1", osborne_1, {.5, 1.5, -1, .01, .02}, {5.46489e-5}},
      {"Biggs EXP6", biggs_exp6, {1, 2, 1, 1, 1, 1}, {0, 5.65565e-3}},
      {"Osborne 2", osborne_2, {1.3, .65, .65, .7, .6, 3, 5, 7, 2, 4.5, 5.5}, {4.01377e-2}},
      {"Watson 6", watson, filled(6, 0), {2.28767e-3}},
      {"Watson 9", watson, filled(9, 0), {1.39976e-6}},
      {"Watson 12", watson, filled(12, 0), {4.72238e-10}},
      {"Extended Rosenbrock", extended_rosenbrock, start_of(10, [](int i) { return i % 2 ? -1.2 : 1; }), {0}},
      {"Extended Powell singular", powell_singular, {3, -1, 0, 1, 3, -1, 0, 1, 3, -1, 0, 1}, {0}},
      {"Penalty I", penalty_1, start_of(10, [](int i) { return i; }), {7.08765e-5}},
      {"Penalty II", penalty_2, filled(10, .5), {2.93660e-4}},
      {"Variably dimensioned", variably_dimensioned, start_of(10, [](int i) { return 1 - i / 10.0; }), {0}},
      {"Trigonometric", trigonometric, filled(10, .1), {0, 2.79506e-5}},
      {"Brown almost linear", brown_almost_linear, filled(10, .5), {0, 1}},
      {"Discrete boundary value", discrete_boundary_value, boundary(10), {0}},
      {"Discrete integral equation", discrete_integral_equation, boundary(10), {0}},
      {"Broyden tridiagonal", broyden_tridiagonal, filled(10, -1), {0}},
      {"Broyden banded", broyden_banded, filled(10, -1), {0}},
      {"Linear, full rank", linear_full_rank, filled(10, 1), {10}},
      {"Linear, rank 1", linear_rank_1, filled(10, 1), {380.0 / 82}},
      {"Linear, rank 1 with zeros", linear_rank_1_with_zeros, filled(10, 1), {454.0 / 74}},
      {"Chebyquad", chebyquad, start_of(8, [](int i) { return i / 9.0; }), {3.51687e-3}},
  };
}

bool is_minimum(const Problem& p, double value) {
  for (const double least : p.minima)
    if (std::abs(value - least) <= (least == 0 ? 1e-8 : 1e-5 * least)) return true;
  return false;
}

}   // namespace tapedeck::test
