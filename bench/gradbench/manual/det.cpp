#include "../det.h"

#include <array>
#include <stdexcept>

#include "works.h"

namespace gradbench::GRADBENCH_KIND {
namespace {

/// Returns the minor of m columns of the rows from `a` on, and adds `weight` times its derivative to `da`.
/// One recursion computes both: products of entries on the way down, minors on the way up.
template <int m> double expand(const double* __restrict__ a, double* __restrict__ da, int n,
                               const std::array<int, m>& columns, double weight) {
  if constexpr (m == 1) {
    da[columns[0]] += weight;
    return a[columns[0]];
  } else {
    std::array<int, m - 1> rest;
    for (std::size_t j = 0; j + 1 < m; ++j)
      rest[j] = columns[j + 1];
    double sum = 0;
    for (std::size_t j = 0; j < m; ++j) {
      const int c = columns[j];
      const double entry = j % 2 ? -a[c] : a[c];
      const double minor = expand<m - 1>(a + n, da + n, n, rest, weight * entry);
      da[c] += (j % 2 ? -weight : weight) * minor;
      sum += entry * minor;
      if (j + 1 < m) rest[j] = c;
    }
    return sum;
  }
}

/// A 4 × 4 block, copied, so that the compiler knows all indices.
template <> double expand<4>(const double* __restrict__ a, double* __restrict__ da, int n,
                             const std::array<int, 4>& columns, double weight) {
  double x[4][4], dx[4][4];
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j)
      x[i][j] = a[i * n + columns[static_cast<std::size_t>(j)]];
  const auto block = [&](int r, int s, int p, int q) { return x[r][p] * x[s][q] - x[r][q] * x[s][p]; };
  double value = 0;
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j) {
      const int r0 = i == 0, r1 = i <= 1 ? 2 : 1, r2 = i <= 2 ? 3 : 2, c0 = j == 0, c1 = j <= 1 ? 2 : 1,
                c2 = j <= 2 ? 3 : 2;
      const double minor = x[r0][c0] * block(r1, r2, c1, c2) - x[r0][c1] * block(r1, r2, c0, c2) +
                           x[r0][c2] * block(r1, r2, c0, c1);
      dx[i][j] = (i + j) % 2 ? -minor : minor;
      if (i == 0) value += dx[0][j] * x[0][j];
    }
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j)
      da[i * n + columns[static_cast<std::size_t>(j)]] += weight * dx[i][j];
  return value;
}

/// The minor without its derivative.
template <int m> double minor_of(const double* a, int n, const std::array<int, m>& columns) {
  if constexpr (m == 1) {
    return a[columns[0]];
  } else {
    std::array<int, m - 1> rest;
    for (std::size_t j = 0; j + 1 < m; ++j)
      rest[j] = columns[j + 1];
    double sum = 0;
    for (std::size_t j = 0; j < m; ++j) {
      const double term = a[columns[j]] * minor_of<m - 1>(a + n, n, rest);
      sum += j % 2 ? -term : term;
      if (j + 1 < m) rest[j] = columns[j];
    }
    return sum;
  }
}

constexpr int kMost = 12;
/// Calls f with the numbers 0 … n - 1 as a std::array of n numbers.
template <int m = 1, class F> void with_columns(int n, const F& f) {
  if constexpr (m > kMost) {
    throw std::invalid_argument("det: more than 12 columns");
  } else {
    if (n != m) return with_columns<m + 1>(n, f);
    std::array<int, m> columns;
    for (std::size_t j = 0; j < m; ++j)
      columns[j] = static_cast<int>(j);
    f(columns);
  }
}

void primal(const det::Input& in, Values& out) {
  with_columns(in.n, [&]<std::size_t m>(const std::array<int, m>& columns) {
    out.assign(1, minor_of<static_cast<int>(m)>(in.a.data(), in.n, columns));
  });
}
void gradient(const det::Input& in, Values& out) {
  out.assign(in.a.size(), 0);
  with_columns(in.n, [&]<std::size_t m>(const std::array<int, m>& columns) {
    expand<static_cast<int>(m)>(in.a.data(), out.data(), in.n, columns, 1);
  });
}

/// Computes each entry of the gradient as its cofactor.
void gradient_as_suite(const det::Input& in, Values& out) {
  const auto n = static_cast<std::size_t>(in.n);
  out.assign(in.a.size(), 1);
  if (n == 1) return;
  Values rest;
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j) {
      rest.clear();
      for (std::size_t k = 0; k < n * n; ++k)
        if (k / n != i && k % n != j) rest.push_back(in.a[k]);
      Values value;
      primal({rest, in.n - 1}, value);
      out[i * n + j] = (i + j) % 2 ? -value[0] : value[0];
    }
}

}   // namespace

std::vector<Work> works(const std::shared_ptr<const det::Input>& in) {
  return {work([in](Values& out) { primal(*in, out); }),
          work([in](Values& out) { kSuite ? gradient_as_suite(*in, out) : gradient(*in, out); })};
}

}   // namespace gradbench::GRADBENCH_KIND
