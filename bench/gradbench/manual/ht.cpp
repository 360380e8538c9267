#include "../ht.h"

#include <algorithm>

#include "works.h"

namespace gradbench::GRADBENCH_KIND {
namespace {

using Affine = ht::Affine<double>;
constexpr std::size_t kPose = ht::kPose;

/// The derivative of a bone's transform by one entry of theta.
struct Slope {
  std::size_t theta;
  Affine transform;
};

Affine turned(const Affine& a, const double* r) {
  const Affine rotation = {r[0], r[1], r[2], 0, r[3], r[4], r[5], 0, r[6], r[7], r[8], 0};
  return ht::product(rotation, a);
}
/// The rotation about r, and its derivatives by r.
void rotation_slopes(const double* r, double (&to)[3][9]) {
  const double square = r[0] * r[0] + r[1] * r[1] + r[2] * r[2], angle = std::sqrt(square);
  const double cosine = std::cos(angle), a = std::sin(angle) / angle, b = (1 - cosine) / square;
  // R = cos I + a [r]× + b r rᵀ; a and b have the derivatives da, db times r.
  const double da = (cosine - a) / square, db = (a - 2 * b) / square;
  for (std::size_t k = 0; k < 3; ++k)
    for (std::size_t i = 0; i < 3; ++i)
      for (std::size_t j = 0; j < 3; ++j)
        to[k][3 * i + j] =
            (i == j ? -a * r[k] : 0) + db * r[k] * r[i] * r[j] + b * ((i == k) * r[j] + (j == k) * r[i]);
  for (std::size_t k = 0; k < 3; ++k) {
    const auto skew = [&](std::size_t i, std::size_t j, std::size_t axis, double sign) {
      const double x = sign * (da * r[k] * r[axis] + (axis == k ? a : 0));
      to[k][3 * i + j] += x, to[k][3 * j + i] -= x;
    };
    skew(0, 1, 2, -1), skew(0, 2, 1, 1), skew(1, 2, 0, -1);
  }
}

class Ht {
 public:
  explicit Ht(const std::shared_ptr<const ht::Input>& in)
      : in_(*in),
        keep_(in),
        bones_(static_cast<std::size_t>(in->bones)),
        transforms_(bones_),
        slopes_(bones_) {
    choose_vertices();
    positions_.resize(3 * vertices_.size());
    by_theta_.resize(positions_.size() * kPose);
  }

  void objective(Values& out) {
    pose(false);
    for (std::size_t v = 0; v < vertices_.size(); ++v)
      skin(v);
    out.resize(3 * points());
    for (std::size_t p = 0; p < points(); ++p) {
      const double *place = &in_.places[2 * p], third = 1 - place[0] - place[1];
      for (std::size_t i = 0; i < 3; ++i)
        out[3 * p + i] = in_.points[3 * p + i] - (place[0] * positions_[3 * corners_[3 * p] + i] +
                                                  place[1] * positions_[3 * corners_[3 * p + 1] + i] +
                                                  third * positions_[3 * corners_[3 * p + 2] + i]);
    }
  }

  /// [points, 3, 28]
  void jacobian(Values& out) {
    pose(true);
    for (std::size_t v = 0; v < vertices_.size(); ++v) {
      skin(v);
      skin_slopes(v);
    }
    out.resize(3 * points() * ht::kColumns);
    for (std::size_t p = 0; p < points(); ++p)
      for (std::size_t i = 0; i < 3; ++i)
        row(p, i, &out[(3 * p + i) * ht::kColumns]);
  }

 private:
  std::size_t points() const { return in_.triangle_of.size(); }

  /// Chooses the vertices that points need and, for each, the bones that it moves with; for the suite, all.
  void choose_vertices() {
    std::vector<std::size_t> place(static_cast<std::size_t>(in_.vertices()), kSuite ? 0 : SIZE_MAX);
    for (std::size_t v = 0; v < place.size() && kSuite; ++v) {
      place[v] = v;
      vertices_.push_back(v);
    }
    for (int p = 0; p < in_.count(); ++p)
      for (int which = 0; which < 3; ++which) {
        const auto v = static_cast<std::size_t>(in_.corner(p, which));
        if (place[v] == SIZE_MAX) {
          place[v] = vertices_.size();
          vertices_.push_back(v);
        }
        corners_.push_back(place[v]);
      }
    for (const std::size_t v : vertices_) {
      shares_.emplace_back();
      for (std::size_t b = 0; b < bones_; ++b)
        if (kSuite || in_.weights[v * bones_ + b] != 0)
          shares_.back().push_back({b, in_.weights[v * bones_ + b]});
    }
  }

  void pose(bool with_slopes) {
    const double* theta = in_.theta.data();
    const std::array<double, 9> r = ht::rotation_about(theta);
    for (std::size_t i = 0; i < 9; ++i)
      rotation_[i] = in_.mirrored && i % 3 == 0 ? -r[i] : r[i];
    std::vector<Affine> absolute(bones_);
    std::vector<std::vector<Slope>> by(bones_);   // derivatives of `absolute`
    for (std::size_t b = 0; b < bones_; ++b) {
      const ht::Turns t = ht::turns(static_cast<int>(b));
      const double x = t.x < 0 ? 0 : theta[t.x], z = t.z < 0 ? 0 : theta[t.z], cx = std::cos(x),
                   sx = std::sin(x), cz = std::cos(z), sz = std::sin(z);
      const bool root = in_.parents[b] < 0;
      const auto parent = static_cast<std::size_t>(root ? 0 : in_.parents[b]);
      const Affine own = ht::affine(in_.relatives, b),
                   before = root ? own : ht::product(absolute[parent], own);
      const Affine turn = {cz, -sz * cx, sz * sx, 0, sz, cz * cx, -cz * sx, 0, 0, sx, cx, 0};
      absolute[b] = ht::product(before, turn);
      if (with_slopes) {
        if (!root)
          for (const Slope& s : by[parent])
            by[b].push_back({s.theta, ht::product(ht::product(s.transform, own), turn)});
        if (t.x >= 0)
          by[b].push_back({static_cast<std::size_t>(t.x), linear(before, {0, sz * sx, sz * cx, 0, 0, -cz * sx,
                                                                          -cz * cx, 0, 0, cx, -sx, 0})});
        if (t.z >= 0)
          by[b].push_back(
              {static_cast<std::size_t>(t.z),
               linear(before, {-sz, -cz * cx, cz * sx, 0, cz, -sz * cx, sz * sx, 0, 0, 0, 0, 0})});
      }
      finish(b, absolute[b], by[b]);
    }
    if (with_slopes) rotation_slopes(theta, rotation_slopes_);
  }
  /// `before` times a derivative of a turn, which has no shift.
  static Affine linear(Affine before, const Affine& turn) {
    for (const std::size_t i : {3, 7, 11})
      before[i] = 0;
    return ht::product(before, turn);
  }
  void finish(std::size_t b, const Affine& absolute, const std::vector<Slope>& by) {
    const Affine inverse = ht::affine(in_.inverses, b);
    transforms_[b] = ht::product(absolute, inverse);
    slopes_[b].clear();
    for (const Slope& s : by)
      slopes_[b].push_back({s.theta, turned(ht::product(s.transform, inverse), rotation_)});
  }

  static void add_moved(const Affine& a, const double* x, double weight, double* to, std::size_t stride = 1) {
    for (std::size_t i = 0; i < 3; ++i)
      to[i * stride] += weight * (a[4 * i] * x[0] + a[4 * i + 1] * x[1] + a[4 * i + 2] * x[2] + a[4 * i + 3]);
  }
  void skin(std::size_t v) {
    const double* x = &in_.positions[4 * vertices_[v]];
    std::fill(skinned_, skinned_ + 3, 0);
    for (const Share& s : shares_[v])
      add_moved(transforms_[s.bone], x, s.weight, skinned_);
    for (std::size_t i = 0; i < 3; ++i)
      positions_[3 * v + i] = rotation_[3 * i] * skinned_[0] + rotation_[3 * i + 1] * skinned_[1] +
                              rotation_[3 * i + 2] * skinned_[2] + in_.theta[3 + i];
  }
  /// Precondition: skin(v) was called.
  void skin_slopes(std::size_t v) {
    double* to = &by_theta_[3 * v * kPose];
    std::fill(to, to + 3 * kPose, 0);
    if (in_.mirrored) skinned_[0] = -skinned_[0];
    for (std::size_t i = 0; i < 3; ++i) {
      for (std::size_t k = 0; k < 3; ++k) {
        const double* d = &rotation_slopes_[k][3 * i];
        to[i * kPose + k] = d[0] * skinned_[0] + d[1] * skinned_[1] + d[2] * skinned_[2];
      }
      to[i * kPose + 3 + i] = 1;
    }
    const double* x = &in_.positions[4 * vertices_[v]];
    for (const Share& s : shares_[v])
      for (const Slope& slope : slopes_[s.bone])
        add_moved(slope.transform, x, s.weight, to + slope.theta, kPose);
  }

  void row(std::size_t p, std::size_t i, double* out) const {
    const std::size_t* corner = &corners_[3 * p];
    const double *place = &in_.places[2 * p], third = 1 - place[0] - place[1];
    const double last = positions_[3 * corner[2] + i];
    *out++ = last - positions_[3 * corner[0] + i];
    *out++ = last - positions_[3 * corner[1] + i];
    const auto slopes = [&](int which) { return &by_theta_[(3 * corner[which] + i) * kPose]; };
    const double *a = slopes(0), *b = slopes(1), *c = slopes(2);
    for (std::size_t k = 0; k < kPose; ++k)
      out[k] = -(place[0] * a[k] + place[1] * b[k] + third * c[k]);
  }

  struct Share {
    std::size_t bone;
    double weight;
  };
  const ht::Input& in_;
  std::shared_ptr<const ht::Input> keep_;
  std::size_t bones_;
  std::vector<std::size_t> vertices_, corners_;
  std::vector<std::vector<Share>> shares_;
  std::vector<Affine> transforms_;
  std::vector<std::vector<Slope>> slopes_;   // by bone, after the rotation of the hand
  double rotation_[9], rotation_slopes_[3][9], skinned_[3];
  Values positions_, by_theta_;
};

}   // namespace

std::vector<Work> works(const std::shared_ptr<const ht::Input>& in) {
  const auto ht = std::make_shared<Ht>(in);
  return {work([ht](Values& out) { ht->objective(out); }), work([ht](Values& out) { ht->jacobian(out); })};
}

}   // namespace gradbench::GRADBENCH_KIND
