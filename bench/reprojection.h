// Shared by the benchmarks of maps and by GradBench's bundle adjustment.
#pragma once
#include <utility>

namespace bench {

/// The difference between where a camera sees a point and where it was observed, times a weight. Camera:
/// rotation r (an axis times an angle), centre c, focal length f, principal point minus the observation (u0,
/// v0), radial distortion k. The point is x.
constexpr auto reprojection = [](auto r0, auto r1, auto r2, auto c0, auto c1, auto c2, auto f, auto u0,
                                 auto v0, auto k1, auto k2, auto x0, auto x1, auto x2, auto weight) {
  const auto a0 = x0 - c0, a1 = x1 - c1, a2 = x2 - c2;
  const auto angle = sqrt(r0 * r0 + r1 * r1 + r2 * r2), cosine = cos(angle), sine = sin(angle);
  const auto w0 = r0 / angle, w1 = r1 / angle, w2 = r2 / angle;
  const auto along = (w0 * a0 + w1 * a1 + w2 * a2) * (1 - cosine);
  const auto b0 = a0 * cosine + (w1 * a2 - w2 * a1) * sine + w0 * along,
             b1 = a1 * cosine + (w2 * a0 - w0 * a2) * sine + w1 * along,
             b2 = a2 * cosine + (w0 * a1 - w1 * a0) * sine + w2 * along;
  const auto p = b0 / b2, q = b1 / b2, square = p * p + q * q,
             radial = f * (1 + k1 * square + k2 * square * square);
  return std::pair(weight * (p * radial + u0), weight * (q * radial + v0));
};

}   // namespace bench
