// Functions for which FastAD has published times of value and gradient, and of the value alone by Eigen.
// Times are compared as multiples of the value alone, here by plain loops and matrix products.
#include <cblas.h>

#include <cmath>

#include "../known_functions.h"
#include "cases.h"
#include "tapedeck/simd/elementary.h"

namespace bench {
namespace {

using Vector = xsimd::batch<double>;
constexpr auto kWidth = static_cast<std::int64_t>(Vector::size);
using Doubles = const double*;
using Sizes = std::vector<std::int64_t>;

volatile double sink;

/// Combines f of all vectors of x by `combine`, beginning with `first`.
template <class F, class Combine> Vector fold(Doubles x, std::int64_t n, double first, F f, Combine combine) {
  Vector s[4] = {Vector(first), Vector(first), Vector(first), Vector(first)};
  std::int64_t i = 0;
  for (; i + 4 * kWidth <= n; i += 4 * kWidth)
    for (int k = 0; k < 4; ++k)
      s[k] = combine(s[k], f(Vector::load_unaligned(x + i + k * kWidth)));
  for (; i + kWidth <= n; i += kWidth)
    s[0] = combine(s[0], f(Vector::load_unaligned(x + i)));
  return combine(combine(s[0], s[1]), combine(s[2], s[3]));
}
constexpr auto itself = [](const Vector& v) { return v; };
constexpr auto plus = [](const Vector& a, const Vector& b) { return a + b; };
constexpr auto times = [](const Vector& a, const Vector& b) { return a * b; };
constexpr auto larger = [](const Vector& a, const Vector& b) { return xsimd::max(a, b); };

double sum_of_squares(Doubles x, std::int64_t n, double mean, double deviation) {
  const Vector m(mean), inverse(1 / deviation);
  return xsimd::hadd(fold(
      x, n, 0,
      [&](const Vector& v) {
        const Vector z = (v - m) * inverse;
        return z * z;
      },
      plus));
}

// The values without gradients.
void sum_value(const Sizes& n, const std::vector<Doubles>& x) {
  sink = xsimd::hadd(fold(x[0], n[0], 0, itself, plus));
}
void prod_value(const Sizes& n, const std::vector<Doubles>& x) {
  double lanes[kWidth], all = 1;
  fold(x[0], n[0], 1, itself, times).store_unaligned(lanes);
  for (const double v : lanes)
    all *= v;
  sink = all;
}
void log_sum_exp_value(const Sizes& n, const std::vector<Doubles>& x) {
  double lanes[kWidth], most = -INFINITY;
  fold(x[0], n[0], -INFINITY, itself, larger).store_unaligned(lanes);
  for (const double v : lanes)
    most = std::max(most, v);
  const Vector m(most);
  sink = most + std::log(xsimd::hadd(fold(
                    x[0], n[0], 0, [&](const Vector& v) { return td::exp(v - m); }, plus)));
}
void matrix_product_value(const Sizes& n, const std::vector<Doubles>& x) {
  const auto side = static_cast<blasint>(std::lround(std::sqrt(n[0])));
  static std::vector<double> y;
  y.resize(static_cast<std::size_t>(n[0]));
  cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, side, side, side, 1, x[0], side, x[1], side, 0,
              y.data(), side);
  sink = xsimd::hadd(fold(y.data(), n[0], 0, itself, plus));
}
void normal_log_pdf_value(const Sizes& n, const std::vector<Doubles>& x) {
  sink = -0.5 * sum_of_squares(x[0], n[0], *x[1], *x[2]) - static_cast<double>(n[0]) * std::log(*x[2]);
}
void regression_value(const Sizes& n, const std::vector<Doubles>& x) {
  const auto rows = static_cast<blasint>(n[4]), features = static_cast<blasint>(n[0]);
  static std::vector<double> y;
  y.assign(x[4], x[4] + rows);
  cblas_dgemv(CblasRowMajor, CblasNoTrans, rows, features, -1, x[3], features, x[0], 1, 1, y.data(), 1);
  sink = -0.5 * (sum_of_squares(y.data(), n[4], *x[1], *x[2]) + sum_of_squares(x[0], n[0], 0, 1)) -
         static_cast<double>(n[4]) * std::log(*x[2]);
}

struct Published {
  std::string name;
  std::int64_t n;
  double value_alone, fastad;   // ns
  known::Function (*make)(std::int64_t);
  void (*value)(const Sizes& n, const std::vector<Doubles>& x);
};

void run(const Published& p) {
  const std::string name = p.name + ", n=" + std::to_string(p.n);
  if (!is_chosen(name)) return;
  const known::Function k = p.make(p.n);
  Sizes sizes;
  std::vector<Doubles> x;
  for (const known::Tensors* list : {&k.variables, &k.data})
    for (const td::Tensor& t : *list)
      x.push_back(t.data<double>().data()), sizes.push_back(t.size());
  const auto f = [&](const known::Tensors& variables) { return known::differentiate(k, variables); };
  const auto recorded = td::compile(f);
  known::Tensors mine;
  const Run runs[] = {[&] { (void)f(k.variables); }, [&] { recorded.into(mine, k.variables); },
                      [&] { p.value(sizes, x); }};
  const Race race(runs);
  report(name, p.fastad / p.value_alone * race.ratio(2, 1), "of FastAD's speed", {.at_least = 1},
         beside_eager(race, 1, 0));
}

}   // namespace

void run_published() {
  using namespace known;
  const auto log_pdf = static_cast<Function (*)(std::int64_t)>(normal_log_pdf);
  const Published all[] = {
      {"sum", 1024, 31, 119, sum, sum_value},
      {"sum", 16384, 852, 5065, sum, sum_value},
      {"product", 1024, 32, 1204, prod, prod_value},
      {"product", 16384, 914, 22900, prod, prod_value},
      {"log of a sum of exponentials", 1024, 992, 1159, log_sum_exp, log_sum_exp_value},
      {"log of a sum of exponentials", 16384, 15800, 23300, log_sum_exp, log_sum_exp_value},
      {"product of matrices", 4050, 3400, 11700, matrix_product, matrix_product_value},
      {"product of matrices", 65522, 138000, 455000, matrix_product, matrix_product_value},
      {"log of a normal density", 1024, 54, 184, log_pdf, normal_log_pdf_value},
      {"log of a normal density", 16384, 1126, 5767, log_pdf, normal_log_pdf_value},
      {"regression", 12, 669, 1919, regression, regression_value},
      {"regression", 62, 2997, 6772, regression, regression_value},
      {"regression", 152, 8029, 16200, regression, regression_value}};
  for (const Published& p : all)
    run(p);
}

}   // namespace bench
