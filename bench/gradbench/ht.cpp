#include "ht.h"

#include <algorithm>
#include <numeric>

#include "random.h"
#include "tapedeck/map.h"
#include "tensors.h"

namespace gradbench::ht {
namespace {

/// The hand, and its pose computed by ops: the transforms of all bones, [bones, 3, 4].
class Hand {
 public:
  explicit Hand(const Input& in)
      : parents_(in.parents),
        mirrored_(in.mirrored),
        relatives_(td::tensor(in.relatives, {in.bones, 4, 4})),
        inverses_(td::tensor(in.inverses, {in.bones, 4, 4})) {
    std::vector<std::int64_t> x, z;
    for (int b = 0; b < in.bones; ++b) {
      const Turns t = turns(b);
      x.push_back(t.x < 0 ? kPose : t.x);   // a 0 follows theta
      z.push_back(t.z < 0 ? kPose : t.z);
    }
    x_ = td::tensor(x), z_ = td::tensor(z);
  }

  Tensor transforms(const Tensor& theta) const {
    const Tensor all = td::matmul(absolute(theta), inverses_);
    return td::slice(all, {0, 0, 0}, {all.shape()[0], 3, 4});
  }
  /// The transforms from each bone's own coordinates, [bones, 4, 4].
  Tensor absolute(const Tensor& theta) const {
    const Tensor angles = td::concat({theta, td::zeros({1}, td::DType::f64)}, 0);
    const Tensor x = td::gather(angles, x_), z = td::gather(angles, z_);
    const Tensor cx = td::cos(x), sx = td::sin(x), cz = td::cos(z), sz = td::sin(z), no = td::zeros_like(x),
                 one = td::ones_like(x);
    const Tensor turned = td::reshape(
        td::stack({cz, -sz * cx, sz * sx, no, sz, cz * cx, -cz * sx, no, no, sx, cx, no, no, no, no, one}, 1),
        relatives_.shape());
    const Tensors relative = td::unstack(td::matmul(relatives_, turned));
    Tensors absolute;
    for (std::size_t b = 0; b < relative.size(); ++b)
      absolute.push_back(parents_[b] < 0
                             ? relative[b]
                             : td::matmul(absolute[static_cast<std::size_t>(parents_[b])], relative[b]));
    return td::stack(absolute);
  }

  /// Mirroring, then the rotation of the whole hand, [3, 3].
  Tensor rotation(const Tensor& theta) const {
    const Tensor r = td::slice(theta, {0}, {3}), angle = td::euclidean_norm(r), axis = r / angle;
    const Tensors a = td::unstack(axis);
    const Tensor no = td::zeros_like(angle);
    const Tensor skew = td::reshape(td::stack({no, -a[2], a[1], a[2], no, -a[0], -a[1], a[0], no}), {3, 3});
    const Tensor outer = td::outer(axis, axis), one = td::eye(3, td::DType::f64), cosine = td::cos(angle);
    const Tensor turned = outer + (one - outer) * cosine + td::sin(angle) * skew;
    return mirrored_ ? turned * td::tensor(Values{-1, 1, 1}) : turned;
  }

 private:
  std::vector<int> parents_;
  bool mirrored_;
  Tensor relatives_, inverses_, x_, z_;
};

/// The corners of the triangles that points are on: three lists of vertices.
Tensors corners(const Input& in) {
  Tensors all;
  for (int which = 0; which < 3; ++which) {
    std::vector<std::int32_t> at;
    for (int p = 0; p < in.count(); ++p)
      at.push_back(in.corner(p, which));
    all.push_back(td::tensor(at));
  }
  return all;
}

struct Data {
  explicit Data(const Input& in)
      : hand(in),
        positions(td::tensor(in.positions, {in.vertices(), 4})),
        weights(td::tensor(in.weights, {in.vertices(), in.bones})),
        points(td::tensor(in.points, {in.count(), 3})),
        corners(ht::corners(in)) {}
  Hand hand;
  Tensor positions, weights, points;
  Tensors corners;
};

/// The points from their corners, [points, 3] each, and places, [points, 2].
Tensor place_on(const Tensors& corners, const Tensor& places) {
  const Tensor u = td::slice(places, {0, 0}, {places.shape()[0], 1}),
               v = td::slice(places, {0, 1}, {places.shape()[0], 1});
  return u * corners[0] + v * corners[1] + (1 - u - v) * corners[2];
}

/// The positions of all vertices, moved by their bones.
Tensor vertices(const Data& d, const Tensor& theta) {
  const Tensor skinned = td::einsum("vb,vj,bij->vi", {d.weights, d.positions, d.hand.transforms(theta)});
  return td::matmul(skinned, d.hand.rotation(theta), {.transpose_b = true}) + td::slice(theta, {3}, {3});
}
Tensor natural_error(const Data& d, const Tensor& theta, const Tensor& places) {
  const Tensor all = vertices(d, theta);
  Tensors at;
  for (const Tensor& corner : d.corners)
    at.push_back(td::gather(all, corner));
  return d.points - place_on(at, places);
}
auto natural(const Data& d) {
  return [d](Inputs x) { return natural_error(d, x[0], x[1]); };
}
/// [points, 3, 28]: a point depends on its own place, not on others.
auto natural_jacobian(const Data& d) {
  return [d](Inputs x) {
    const Tensor own =
        td::batch_jacobian([&](const Tensor& places) { return natural_error(d, x[0], places); }, x[1]);
    const Tensor pose =
        td::jacobian([&](const Tensor& theta) { return natural_error(d, theta, x[1]); }, x[0]);
    return td::concat({own, pose}, 2);
  };
}

/// Vertices are linear in the transforms: their product with a matrix of weights times positions in the
/// bones' coordinates, and of 1 for the hand's shift. The matrix has rows only for the vertices that points
/// need.
struct Skin {
  explicit Skin(const Input& in) : hand(in), points(td::tensor(in.points, {in.count(), 3})) {
    std::vector<int> used;
    for (int p = 0; p < in.count(); ++p)
      for (int which = 0; which < 3; ++which)
        used.push_back(in.corner(p, which));
    std::sort(used.begin(), used.end());
    used.erase(std::unique(used.begin(), used.end()), used.end());
    for (int which = 0; which < 3; ++which) {
      std::vector<std::int32_t> at;
      for (int p = 0; p < in.count(); ++p)
        at.push_back(static_cast<std::int32_t>(
            std::lower_bound(used.begin(), used.end(), in.corner(p, which)) - used.begin()));
      corners.push_back(td::tensor(at));
    }
    const auto bones = static_cast<std::size_t>(in.bones);
    Values rows;
    for (const int vertex : used) {
      const auto v = static_cast<std::size_t>(vertex);
      for (std::size_t b = 0; b < bones; ++b)
        for (std::size_t j = 0; j < 4; ++j)
          rows.push_back(in.weights[v * bones + b] * std::inner_product(&in.positions[4 * v],
                                                                        &in.positions[4 * v] + 4,
                                                                        &in.inverses[16 * b + 4 * j], 0.0));
      rows.push_back(1);
    }
    matrix = td::tensor(rows, {static_cast<std::int64_t>(used.size()), 4 * in.bones + 1});
  }
  /// [4 bones + 1, 3]
  Tensor pose(const Tensor& theta) const {
    const Tensor above = td::slice(hand.absolute(theta), {0, 0, 0}, {(matrix.shape()[1] - 1) / 4, 3, 4});
    const Tensor columns = td::reshape(td::transpose(above, {1, 0, 2}), {3, matrix.shape()[1] - 1});
    const Tensor shift = td::reshape(td::slice(theta, {3}, {3}), {3, 1});
    return td::transpose(td::concat({td::matmul(hand.rotation(theta), columns), shift}, 1));
  }
  Tensors corners_of(const Tensor& vertices) const {
    Tensors at;
    for (const Tensor& corner : corners)
      at.push_back(td::gather(vertices, corner));
    return at;
  }
  Hand hand;
  Tensor points, matrix;
  Tensors corners;
};
auto expert(const Skin& s) {
  return
      [s](Inputs x) { return s.points - place_on(s.corners_of(td::matmul(s.matrix, s.pose(x[0]))), x[1]); };
}
/// Differentiates the pose; the rest is linear in it. Vertices have rows like the Jacobian's: the value of a
/// coordinate, twice, then its derivatives. Processes blocks of points that stay in the cache.
auto expert_jacobian(const Skin& s) {
  constexpr std::int64_t kRows = 256;
  Values column;
  for (int i = 0; i < 3 * kColumns; ++i)
    column.push_back(i % kColumns);
  std::vector<Tensors> blocks;   // the corners of each block of points
  for (std::int64_t first = 0; first < s.points.shape()[0]; first += kRows) {
    blocks.emplace_back();
    for (const Tensor& corner : s.corners)
      blocks.back().push_back(td::slice(corner, {first}, {std::min(kRows, corner.size() - first)}));
  }
  return [s, blocks, column = td::tensor(column)](Inputs x) {
    const std::int64_t rows = s.matrix.shape()[1];
    const Tensor pose = td::expand_dims(s.pose(x[0]), 2);
    const Tensor slopes =
        td::jacobian([&](const Tensor& theta) { return s.pose(theta); }, x[0]);   // [rows, 3, 26]
    const Tensor vertices =
        td::matmul(s.matrix, td::reshape(td::concat({pose, pose, slopes}, 2), {rows, 3 * kColumns}));
    Tensors all;
    std::int64_t first = 0;
    for (const Tensors& corners : blocks) {
      const std::int64_t count = corners[0].size();
      all.push_back(td::map<"place">(
          [](auto at, auto u, auto v, auto a, auto b, auto c) {
            const auto by_theta = -(u * a + v * b + (1 - u - v) * c);
            return where(equal(at, 0), c - a, where(equal(at, 1), c - b, by_theta));
          },
          column, td::slice(x[1], {first, 0}, {count, 1}), td::slice(x[1], {first, 1}, {count, 1}),
          td::gather(vertices, corners[0]), td::gather(vertices, corners[1]),
          td::gather(vertices, corners[2])));
      first += count;
    }
    return all;
  };
}

constexpr int kBones = 22;   // the wrist, four in each finger, and the forearm

/// A rotation and a shift of up to `shift`, as [4, 4].
Values random_transform(Random& random, double shift) {
  const Values r = random.uniforms(3, 0.1, 1);
  const std::array<double, 9> turn = rotation_about(r.data());
  Values m;
  for (std::size_t i = 0; i < 3; ++i) {
    m.insert(m.end(), &turn[3 * i], &turn[3 * i] + 3);
    m.push_back(random.uniform(-shift, shift));
  }
  m.insert(m.end(), {0, 0, 0, 1});
  return m;
}
Affine<double> inverse(const Affine<double>& a) {
  Affine<double> b;
  for (std::size_t i = 0; i < 3; ++i) {
    b[4 * i + 3] = 0;
    for (std::size_t j = 0; j < 3; ++j) {
      b[4 * i + j] = a[4 * j + i];
      b[4 * i + 3] -= a[4 * j + i] * a[4 * j + 3];
    }
  }
  return b;
}

void add_bones(Input& in, Random& random) {
  std::vector<Affine<double>> at_rest;
  for (int b = 0; b < kBones; ++b) {
    in.parents.push_back(b == 0 ? -1 : b == kBones - 1 || b % 4 == 1 ? 0 : b - 1);
    const Values relative = random_transform(random, 0.3);
    in.relatives.insert(in.relatives.end(), relative.begin(), relative.end());
    const Affine<double> own = affine(relative, 0);
    at_rest.push_back(b == 0 ? own : product(at_rest[static_cast<std::size_t>(in.parents.back())], own));
    const Affine<double> back = inverse(at_rest.back());
    in.inverses.insert(in.inverses.end(), back.begin(), back.end());
    in.inverses.insert(in.inverses.end(), {0, 0, 0, 1});
  }
}
/// Each vertex moves with up to four bones.
void add_vertices(Input& in, Random& random, int vertices) {
  in.weights.assign(static_cast<std::size_t>(vertices * kBones), 0);
  for (int v = 0; v < vertices; ++v) {
    for (int i = 0; i < 3; ++i)
      in.positions.push_back(random.uniform(-0.5, 0.5));
    in.positions.push_back(1);
    const Values share = random.uniforms(4, 0.1, 1);
    for (const double s : share)
      in.weights[static_cast<std::size_t>(v * kBones + random.index(kBones))] +=
          s / (share[0] + share[1] + share[2] + share[3]);
  }
  for (int t = 0; t < 2 * vertices; ++t)
    for (int i = 0; i < 3; ++i)
      in.triangles.push_back(random.index(vertices));
}

Size size(int points, int vertices = 10'000) {
  return {std::to_string(points), [=] {
            Random random;
            Input in{.bones = kBones,
                     .parents = {},
                     .relatives = {},
                     .inverses = {},
                     .positions = {},
                     .weights = {},
                     .triangles = {},
                     .mirrored = vertices < 100,
                     .triangle_of = {},
                     .points = {},
                     .theta = {},
                     .places = {}};
            add_bones(in, random);
            add_vertices(in, random, vertices);
            for (int p = 0; p < points; ++p)
              in.triangle_of.push_back(random.index(2 * vertices));
            in.points = random.uniforms(static_cast<std::size_t>(3 * points));
            in.places = random.uniforms(static_cast<std::size_t>(2 * points), 0, 0.5);
            in.theta = random.uniforms(kPose, -2, 2);
            return forms(std::make_shared<Input>(std::move(in)));
          }};
}

}   // namespace

Forms forms(const std::shared_ptr<const Input>& in) {
  const Tensors x = {td::tensor(in->theta), td::tensor(in->places, {in->count(), 2})};
  const Data d(*in);
  const Skin s(*in);
  return with_peers({eager("natural", x, natural(d), natural_jacobian(d)),
                     eager("expert", x, expert(s), expert_jacobian(s))},
                    in);
}

Eval eval() {
  return {"ht",
          {"objective", "jacobian"},
          true,
          {size(100), size(3200), size(51'200)},
          {size(7, 30), size(40, 120)}};
}

}   // namespace gradbench::ht
