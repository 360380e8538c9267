// Bundle adjustment: the distances, times weights, between the points that cameras see and their observed
// positions; and 1 - weight². The sparse Jacobian has, for each observation, two rows of 15 entries and a row
// of one entry, at positions that depend on the observations alone.
#pragma once
#include <cmath>

#include "suite.h"

namespace gradbench::ba {

inline constexpr int kCamera = 11, kColumns = kCamera + 3 + 1;
struct Input {
  int n, m, p;                                 // cameras, points, observations
  Values cameras, points, weights, features;   // [n, 11], [m, 3], [p], [p, 2]
  int camera(int observation) const { return observation % n; }
  int point(int observation) const { return observation % m; }
};
Forms forms(const std::shared_ptr<const Input>& in);
Eval eval();

/// camera: rotation (axis times angle, which is not 0), centre, focal length, principal point, distortion.
template <class T, class F>
static void residual(const T* camera, const T* point, const T& weight, const F* feature, T* error) {
  using std::cos, std::sin, std::sqrt;
  const T *r = camera, *centre = camera + 3;
  const T x = point[0] - centre[0], y = point[1] - centre[1], z = point[2] - centre[2];
  const T angle = sqrt(r[0] * r[0] + r[1] * r[1] + r[2] * r[2]), c = cos(angle), s = sin(angle);
  const T a0 = r[0] / angle, a1 = r[1] / angle, a2 = r[2] / angle;
  const T along = (a0 * x + a1 * y + a2 * z) * (1 - c);
  const T cx = x * c + (a1 * z - a2 * y) * s + a0 * along;
  const T cy = y * c + (a2 * x - a0 * z) * s + a1 * along;
  const T cz = z * c + (a0 * y - a1 * x) * s + a2 * along;
  const T u = cx / cz, v = cy / cz, square = u * u + v * v;
  const T scale = (1 + camera[9] * square + camera[10] * square * square) * camera[6];
  error[0] = weight * (u * scale + camera[7] - feature[0]);
  error[1] = weight * (v * scale + camera[8] - feature[1]);
}

}   // namespace gradbench::ba
