// Inputs for samples: f64, deterministic, named after their domain.
#pragma once
#include <algorithm>
#include <cmath>
#include <complex>

#include "tapedeck/gradcheck.h"

namespace tapedeck::samples {

inline Tensor f64(const Shape& shape, const std::vector<double>& values) { return tensor(values, shape); }
inline Tensor i64(std::initializer_list<std::int64_t> values) { return tensor(values); }
inline Tensor i64(detail::List2<std::int64_t> rows) { return tensor(rows); }

/// Irregular values spread over [low, high]; another `which` gives another set.
inline Tensor uniform(const Shape& shape, double low, double high, int which = 0) {
  std::vector<double> v(static_cast<std::size_t>(shape.size()));
  double u = 0.5 + 0.3 * which;
  for (double& e : v) {
    u = std::fmod(u + 0.6180339887498949, 1.0);   // the golden ratio's multiples fill the interval evenly
    e = low + (high - low) * u;
  }
  return tensor(v, shape);
}
/// Values at least 0.1 apart, unsorted: for max, sorting and choices that must not change under a small step.
inline Tensor distinct(const Shape& shape, int which = 0) {
  const Tensor order = uniform(shape, 0, 1, which);
  const std::vector<double> key = order.to_vector();
  std::vector<double> sorted = key, v;
  std::sort(sorted.begin(), sorted.end());
  for (const double k : key)
    v.push_back(0.1 *
                    static_cast<double>(std::lower_bound(sorted.begin(), sorted.end(), k) - sorted.begin()) -
                0.05 * static_cast<double>(key.size()) + 0.03);
  return tensor(v, shape);
}
/// Square matrices with a dominant diagonal, so that they are far from singular.
inline Tensor regular(const Shape& shape, int which = 0) {
  std::vector<double> v = uniform(shape, -1, 1, which).to_vector();
  const std::int64_t n = shape[shape.ndim() - 1];
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(v.size()); ++i)
    if (i / n % n == i % n) v[static_cast<std::size_t>(i)] += 1 + 0.5 * static_cast<double>(n);
  return tensor(v, shape);
}
/// Such matrices that are also symmetric, and so positive definite.
inline Tensor spd(const Shape& shape, int which = 0) {
  const std::vector<double> x = regular(shape, which).to_vector();
  std::vector<double> v = x;
  const std::int64_t n = shape[shape.ndim() - 1];
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(v.size()); ++i) {
    const std::int64_t matrix = i / (n * n), row = i / n % n, column = i % n;
    v[static_cast<std::size_t>(i)] =
        (x[static_cast<std::size_t>(i)] + x[static_cast<std::size_t>((matrix * n + column) * n + row)]) / 2;
  }
  return tensor(v, shape);
}
/// f64 from nested braces or numbers.
inline Tensor f64(std::initializer_list<double> v) { return tensor(v, DType::f64); }
inline Tensor f64(detail::List2<double> v) { return tensor(v, DType::f64); }
inline Tensor f64(detail::List3<double> v) { return tensor(v, DType::f64); }
inline Tensor f64(double v) { return tensor(v, DType::f64); }

/// c128 tensors: from pairs of parts; and with values spread over a square around 0, without 0.
inline Tensor c128(detail::List2<double> parts) {
  std::vector<std::complex<double>> v;
  for (const detail::List1<double>& p : parts)
    v.emplace_back(*p.begin(), *(p.end() - 1));
  return tensor(v);
}
inline Tensor spread(const Shape& shape, int which = 0) {
  const std::vector<double> re = uniform(shape, -2, 2, which).to_vector(),
                            im = uniform(shape, -2, 2, which + 7).to_vector();
  std::vector<std::complex<double>> v;
  for (std::size_t i = 0; i < re.size(); ++i)
    v.emplace_back(re[i], im[i]);
  return tensor(v, shape);
}

/// Samples of an elementwise op with one input: one for the domain, one with expected values. The test adds
/// other shapes.
inline Tensor signs() { return f64({-1.5, -0.25, 0.5, 2}); }
inline Tensor positive() { return f64({0.25, 1, 2.5, 9}); }
inline std::vector<Sample> of_one(double low, double high, Tensor x, Tensor y, std::string_view oracle) {
  return {{.inputs = {uniform({2, 3}, low, high)}, .oracle = oracle},
          {.inputs = {std::move(x)}, .expected = {std::move(y)}, .oracle = oracle}};
}

}   // namespace tapedeck::samples
