#include "../particle.h"

#include "../descent.h"
#include "works.h"

namespace gradbench::GRADBENCH_KIND {
namespace {

/// A number, and its derivative by w if it is requested.
struct Path {
  double square, slope;
};

/// Adds the force of the charge at (10, y) on (p, q) to the acceleration, a[0] and a[1], and its derivative
/// by w to a[2] and a[3]. The derivatives of y, p and q by w are dy, dp and dq.
template <bool slope>
void attract(double p, double q, double dp, double dq, double y, double dy, double (&a)[4]) {
  const double x = p - 10, z = q - y, square = x * x + z * z, cube = 1 / (square * std::sqrt(square));
  a[0] += x * cube;
  a[1] += z * cube;
  if constexpr (slope) {
    const double dz = dq - dy, along = 3 * (x * dp + z * dz) / square;
    a[2] += (dp - along * x) * cube;
    a[3] += (dz - along * z) * cube;
  }
}

/// The square of the position at which the particle crosses the axis.
template <bool slope> Path fly(double w) {
  constexpr double dt = 0.1;
  double p = 0, q = 8, u = 0.75, v = 0, dp = 0, dq = 0, du = 0, dv = 0;
  while (true) {
    double a[4] = {};
    attract<slope>(p, q, dp, dq, 10 - w, -1, a);
    attract<slope>(p, q, dp, dq, 0, 0, a);
    p += dt * u, q += dt * v;
    if constexpr (slope) dp += dt * du, dq += dt * dv;
    if (q <= 0) {
      const double left = -q / v, at = p + left * u;
      const double d_left = -(dq + left * dv) / v;
      return {at * at, 2 * at * (dp + d_left * u + left * du)};
    }
    u += dt * a[0], v += dt * a[1];
    if constexpr (slope) du += dt * a[2], dv += dt * a[3];
  }
}

void search(double w, Values& out) {
  out.assign(1, argmin([](double x) { return fly<false>(x).square; },
                       [](double x) { return fly<true>(x).slope; }, w));
}

}   // namespace

std::vector<Work> works(const std::shared_ptr<const particle::Input>& in) {
  return std::vector<Work>(4, work([in](Values& out) { search(in->w, out); }));
}

}   // namespace gradbench::GRADBENCH_KIND
