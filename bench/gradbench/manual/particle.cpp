#include "../particle.h"

#include "../descent.h"
#include "works.h"

namespace gradbench::GRADBENCH_KIND {
namespace {

/// A number, and its derivative by w where the program asks for it.
struct Path {
  double square, slope;
};

/// The force of the charge at (10, y), which moves by dy with w, on (p, q), which moves by (dp, dq); added to
/// the acceleration a, b and its derivative.
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

/// Where the particle crosses the axis, squared.
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
