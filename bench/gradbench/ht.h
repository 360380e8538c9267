// Hand tracking: the differences between measured points and points on the triangles of a hand, which 26
// angles and shifts (theta) pose. Each vertex moves with the bones according to its weights. The Jacobian has
// a dense part for the pose, and two entries per row for the point's own position in its triangle.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>

#include "suite.h"

namespace gradbench::ht {

inline constexpr int kPose = 26, kFingers = 5, kColumns = 2 + kPose;   // the own position, then theta
struct Input {
  int bones;
  std::vector<int> parents;     // an earlier bone for each bone, or -1
  Values relatives, inverses;   // [bones, 4, 4]: to the parent's coordinates, and from the hand's at rest
  Values positions, weights;    // [vertices, 4] with a 1 at the end, [vertices, bones]
  std::vector<int> triangles;   // [triangles, 3]
  bool mirrored;
  std::vector<int> triangle_of;   // [points]
  Values points, theta, places;   // [points, 3], [26], [points, 2]

  int vertices() const { return static_cast<int>(positions.size() / 4); }
  int count() const { return static_cast<int>(triangle_of.size()); }
  int corner(int point, int which) const {
    return triangles[static_cast<std::size_t>(3 * triangle_of[static_cast<std::size_t>(point)] + which)];
  }
};
Forms forms(const std::shared_ptr<const Input>& in);
Eval eval();

/// The entries of theta by which a bone turns about x and about z; -1: none. In theta, three entries rotate
/// the hand, three shift it, and four turn three bones of each finger.
struct Turns {
  int x, z;
};
inline Turns turns(int bone) {
  const int finger = (bone - 1) / 4, part = (bone - 1) % 4;
  if (bone < 1 || finger >= kFingers || part == 0) return {-1, -1};
  const int first = 6 + 4 * finger;
  return part == 1 ? Turns{first, first + 1} : Turns{first + part, -1};
}

/// The rotation about r, row by row.
template <class T> static std::array<T, 9> rotation_about(const T* r) {
  using std::cos, std::sin, std::sqrt;
  const T angle = sqrt(r[0] * r[0] + r[1] * r[1] + r[2] * r[2]), c = cos(angle), s = sin(angle);
  const T x = r[0] / angle, y = r[1] / angle, z = r[2] / angle;
  return {x * x + (1 - x * x) * c, x * y * (1 - c) - z * s, x * z * (1 - c) + y * s,
          x * y * (1 - c) + z * s, y * y + (1 - y * y) * c, y * z * (1 - c) - x * s,
          x * z * (1 - c) - y * s, y * z * (1 - c) + x * s, z * z + (1 - z * z) * c};
}

/// Affine maps, [3, 4]: the fourth row is 0 0 0 1.
template <class T> using Affine = std::array<T, 12>;
template <class A, class B> static auto product(const Affine<A>& a, const Affine<B>& b) {
  Affine<std::conditional_t<std::is_same_v<A, double>, B, A>> c;
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 4; ++j) {
      c[4 * i + j] = a[4 * i] * b[j] + a[4 * i + 1] * b[4 + j] + a[4 * i + 2] * b[8 + j];
      if (j == 3) c[4 * i + j] += a[4 * i + 3];
    }
  return c;
}
inline Affine<double> affine(const Values& all, std::size_t which) {
  Affine<double> a;
  std::copy_n(&all[16 * which], 12, a.begin());
  return a;
}

/// x: theta, then places. Computed vertex by vertex, with all bones.
template <class T> static void objective(const Input& in, const T* x, T* error) {
  using std::cos, std::sin;
  const auto bones = static_cast<std::size_t>(in.bones);
  std::vector<Affine<T>> absolute(bones), transform(bones);
  for (std::size_t b = 0; b < bones; ++b) {
    const Turns t = turns(static_cast<int>(b));
    const T ax = t.x < 0 ? T(0) : x[t.x], az = t.z < 0 ? T(0) : x[t.z], cx = cos(ax), sx = sin(ax),
            cz = cos(az), sz = sin(az);
    const Affine<T> turned = {cz, -sz * cx, sz * sx, T(0), sz, cz * cx, -cz * sx, T(0), T(0), sx, cx, T(0)};
    const Affine<T> relative = product(affine(in.relatives, b), turned);
    absolute[b] =
        in.parents[b] < 0 ? relative : product(absolute[static_cast<std::size_t>(in.parents[b])], relative);
    transform[b] = product(absolute[b], affine(in.inverses, b));
  }
  const std::array<T, 9> r = rotation_about(x);
  std::vector<std::array<T, 3>> positions(static_cast<std::size_t>(in.vertices()));
  for (std::size_t v = 0; v < positions.size(); ++v) {
    std::array<T, 3> p = {T(0), T(0), T(0)};
    for (std::size_t b = 0; b < bones; ++b)
      for (std::size_t i = 0; i < 3; ++i)
        for (std::size_t j = 0; j < 4; ++j)
          p[i] += transform[b][4 * i + j] * (in.positions[4 * v + j] * in.weights[v * bones + b]);
    if (in.mirrored) p[0] = -p[0];
    for (std::size_t i = 0; i < 3; ++i)
      positions[v][i] = r[3 * i] * p[0] + r[3 * i + 1] * p[1] + r[3 * i + 2] * p[2] + x[3 + i];
  }
  for (int p = 0; p < in.count(); ++p) {
    const T *place = x + kPose + 2 * p, third = 1 - place[0] - place[1];
    for (std::size_t i = 0; i < 3; ++i) {
      const auto at = [&](int corner) -> const T& {
        return positions[static_cast<std::size_t>(in.corner(p, corner))][i];
      };
      error[3 * static_cast<std::size_t>(p) + i] = in.points[3 * static_cast<std::size_t>(p) + i] -
                                                   (place[0] * at(0) + place[1] * at(1) + third * at(2));
    }
  }
}

}   // namespace gradbench::ht
