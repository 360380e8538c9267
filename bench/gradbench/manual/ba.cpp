#include "../ba.h"

#include <array>

#include "works.h"

namespace gradbench::GRADBENCH_KIND {
namespace {

using Vector = std::array<double, 3>;
using Matrix = std::array<Vector, 3>;   // rows

Vector cross(const Vector& a, const Vector& b) {
  return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}
double dot(const Vector& a, const Vector& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

/// The rotation R about r, and J with d(R x)/dr_k = J_k × (R x) for its columns J_k, here rows:
/// f(θ) I + g(θ) [r]× + h(θ) r rᵀ with, for R, cos θ, sin θ / θ, (1 - cos θ) / θ², and, for J,
/// sin θ / θ, (1 - cos θ) / θ², (θ - sin θ) / θ³.
struct Rotation {
  explicit Rotation(const double* r) {
    const double square = r[0] * r[0] + r[1] * r[1] + r[2] * r[2], angle = std::sqrt(square);
    const double cosine = std::cos(angle), sine = std::sin(angle);
    const double a = sine / angle, b = (1 - cosine) / square, c = (1 - a) / square;
    for (std::size_t i = 0; i < 3; ++i)
      for (std::size_t j = 0; j < 3; ++j) {
        rotation[i][j] = (i == j ? cosine : 0) + b * r[i] * r[j];
        columns[j][i] = (i == j ? a : 0) + c * r[i] * r[j];
      }
    const auto skew = [&](std::size_t i, std::size_t j, double x) {
      rotation[i][j] += a * x, rotation[j][i] -= a * x;
      columns[j][i] += b * x, columns[i][j] -= b * x;
    };
    skew(0, 1, -r[2]), skew(0, 2, r[1]), skew(1, 2, -r[0]);
  }
  Matrix rotation, columns;
};

/// Computes the two rows of 15 entries.
void rows(const Rotation& r, const double* camera, const double* point, double weight, const double* feature,
          double* out) {
  const Vector from = {point[0] - camera[3], point[1] - camera[4], point[2] - camera[5]};
  const Vector x = {dot(r.rotation[0], from), dot(r.rotation[1], from), dot(r.rotation[2], from)};
  const double focal = camera[6], k1 = camera[9], k2 = camera[10], one_over = 1 / x[2];
  const double u = x[0] * one_over, v = x[1] * one_over, q = u * u + v * v;
  const double scale = 1 + k1 * q + k2 * q * q, slope = 2 * (k1 + 2 * k2 * q), f = weight * focal;
  const double uu = f * (scale + slope * u * u), uv = f * slope * u * v, vv = f * (scale + slope * v * v);
  const Vector by_x[] = {{uu * one_over, uv * one_over, -(uu * u + uv * v) * one_over},
                         {uv * one_over, vv * one_over, -(uv * u + vv * v) * one_over}};
  const double at[] = {u, v};
  for (int row = 0; row < 2; ++row, out += ba::kColumns) {
    const Vector &b = by_x[row], turned = cross(x, b);   // b · (J_k × x) = J_k · (x × b)
    for (std::size_t k = 0; k < 3; ++k) {
      out[k] = dot(r.columns[k], turned);
      const double by_point = b[0] * r.rotation[0][k] + b[1] * r.rotation[1][k] + b[2] * r.rotation[2][k];
      out[3 + k] = -by_point;
      out[11 + k] = by_point;
    }
    out[6] = weight * at[row] * scale;
    out[7] = row == 0 ? weight : 0;
    out[8] = row == 1 ? weight : 0;
    out[9] = f * at[row] * q;
    out[10] = f * at[row] * q * q;
    out[14] = at[row] * scale * focal + camera[7 + row] - feature[row];
  }
}

void objective(const ba::Input& in, Values& out) {
  const auto p = static_cast<std::size_t>(in.p);
  out.resize(3 * p);
  for (std::size_t i = 0; i < p; ++i) {
    const int at = static_cast<int>(i);
    ba::residual(&in.cameras[static_cast<std::size_t>(in.camera(at) * ba::kCamera)],
                 &in.points[static_cast<std::size_t>(in.point(at) * 3)], in.weights[i], &in.features[2 * i],
                 &out[2 * i]);
    out[2 * p + i] = 1 - in.weights[i] * in.weights[i];
  }
}

void jacobian(const ba::Input& in, Values& out) {
  const auto p = static_cast<std::size_t>(in.p);
  constexpr std::size_t entries = 2 * ba::kColumns;
  out.resize((entries + 1) * p);
  std::vector<Rotation> rotations;   // by camera
  for (int c = 0; c < in.n && !kSuite; ++c)
    rotations.emplace_back(&in.cameras[static_cast<std::size_t>(c * ba::kCamera)]);
  for (std::size_t i = 0; i < p; ++i) {
    const int at = static_cast<int>(i);
    const auto c = static_cast<std::size_t>(in.camera(at));
    const double* camera = &in.cameras[c * ba::kCamera];
    rows(kSuite ? Rotation(camera) : rotations[c], camera,
         &in.points[static_cast<std::size_t>(in.point(at) * 3)], in.weights[i], &in.features[2 * i],
         &out[entries * i]);
  }
  for (std::size_t i = 0; i < p; ++i)
    out[entries * p + i] = -2 * in.weights[i];
}

}   // namespace

std::vector<Work> works(const std::shared_ptr<const ba::Input>& in) {
  return {work([in](Values& out) { objective(*in, out); }), work([in](Values& out) { jacobian(*in, out); })};
}

}   // namespace gradbench::GRADBENCH_KIND
