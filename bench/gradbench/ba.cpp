#include "ba.h"

#include <algorithm>
#include <array>

#include "../reprojection.h"
#include "random.h"
#include "tapedeck/map.h"
#include "tensors.h"

namespace gradbench::ba {
namespace {

/// For all observations: the indices of their camera and point, and the observed positions.
struct Observations {
  explicit Observations(const Input& in) {
    std::vector<std::int32_t> camera, point;
    for (int i = 0; i < in.p; ++i) {
      camera.push_back(in.camera(i));
      point.push_back(in.point(i));
    }
    cameras = td::tensor(camera);
    points = td::tensor(point);
    features = td::tensor(in.features, {in.p, 2});
  }
  /// [p, 15]: camera, point, weight.
  Tensor rows(Inputs x) const {
    return td::concat({td::gather(x[0], cameras), td::gather(x[1], points), td::expand_dims(x[2], 1)}, 1);
  }
  Tensor cameras, points, features;
};

/// The residuals, [p, 2], from rows, [p, 15].
Tensor residuals(const Tensor& rows, const Tensor& features) {
  const Tensors c = td::unstack(rows, 1), seen = td::unstack(features, 1);
  const auto [u, v] =
      td::map<"residual">(bench::reprojection, c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7] - seen[0],
                          c[8] - seen[1], c[9], c[10], c[11], c[12], c[13], c[14]);
  return td::stack({u, v}, 1);
}

auto natural(const Observations& o) {
  return [o](Inputs x) { return Tensors{residuals(o.rows(x), o.features), 1 - x[2] * x[2]}; };
}
auto natural_jacobian(const Observations& o) {
  return [o](Inputs x) {
    const auto f = [&](const Tensor& rows) { return residuals(rows, o.features); };
    return Tensors{td::batch_jacobian(f, o.rows(x)), -2 * x[2]};
  };
}

/// A block of observations that stays in the cache.
struct Block {
  Tensor cameras, points, u, v;   // indices; observed positions
  std::int64_t first;
};
std::vector<Block> blocks_of(const Input& in) {
  constexpr int kRows = 1024;
  std::vector<Block> all;
  for (int first = 0; first < in.p; first += kRows) {
    std::vector<std::int32_t> cameras, points;
    Values u, v;
    for (int i = first; i < std::min(in.p, first + kRows); ++i) {
      cameras.push_back(in.camera(i));
      points.push_back(in.point(i));
      u.push_back(in.features[2 * static_cast<std::size_t>(i)]);
      v.push_back(in.features[2 * static_cast<std::size_t>(i) + 1]);
    }
    all.push_back({td::tensor(cameras), td::tensor(points), td::tensor(u), td::tensor(v), first});
  }
  return all;
}

/// Transposed cameras, [11, n], and points, [3, m], so that each parameter of a block is contiguous.
struct Columns {
  explicit Columns(Inputs x) : cameras(td::transpose(x[0])), points(td::transpose(x[1])), weights(x[2]) {}
  /// The arguments of the residual: r, the point minus the centre, focal length, u0, v0, k1, k2, weight.
  Tensors of(const Block& b) const {
    const Tensors c = td::unstack(td::gather(cameras, b.cameras, 1)),
                  p = td::unstack(td::gather(points, b.points, 1));
    return {c[0],        c[1],        c[2],  p[0] - c[3],
            p[1] - c[4], p[2] - c[5], c[6],  c[7] - b.u,
            c[8] - b.v,  c[9],        c[10], td::slice(weights, {b.first}, {b.cameras.size()})};
  }
  Tensor cameras, points, weights;
};
std::array<Tensor, 2> fused(const Tensors& c) {
  return td::map<"residual">(
      [](auto r0, auto r1, auto r2, auto x, auto y, auto z, auto focal, auto u0, auto v0, auto k1, auto k2,
         auto weight) {
        return bench::reprojection(r0, r1, r2, 0, 0, 0, focal, u0, v0, k1, k2, x, y, z, weight);
      },
      c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7], c[8], c[9], c[10], c[11]);
}

auto expert(const Input& in) {
  return [blocks = blocks_of(in)](Inputs x) {
    const Columns columns(x);
    Tensors all;
    for (const Block& b : blocks) {
      const auto [u, v] = fused(columns.of(b));
      all.push_back(td::stack({u, v}, 1));
    }
    all.push_back(1 - x[2] * x[2]);
    return all;
  };
}
/// Computed by two pullbacks, for the columns. The derivative by the centre is minus the derivative by the
/// point.
auto expert_jacobian(const Input& in) {
  return [blocks = blocks_of(in)](Inputs x) {
    const Columns columns(x);
    Tensors all;
    for (const Block& b : blocks) {
      const Tensors of_block = columns.of(b);
      td::GradientTape tape({.persistent = true});
      for (const Tensor& column : of_block)
        tape.watch(column);
      const std::array<Tensor, 2> errors = fused(of_block);
      tape.stop();
      Tensors rows;
      for (const Tensor& error : errors) {
        const Tensors g = dense(
            tape.gradient(error, td::Sources(of_block), {.unconnected = td::UnconnectedGradients::zero}));
        rows.insert(rows.end(), {g[0], g[1], g[2], -g[3], -g[4], -g[5], g[6], g[7], g[8], g[9], g[10], g[3],
                                 g[4], g[5], g[11]});
      }
      all.push_back(td::transpose(td::stack(rows)));   // two rows of the Jacobian in each row
    }
    all.push_back(-2 * x[2]);
    return all;
  };
}

/// n equal cameras, m equal points and p equal observations, as in the suite.
Size size(std::string name, int n, int m, int p) {
  return {std::move(name), [=] {
            Random random;
            const auto repeated = [](const Values& one, int times) {
              Values all;
              for (int i = 0; i < times; ++i)
                all.insert(all.end(), one.begin(), one.end());
              return all;
            };
            Values camera = random.uniforms(3, -1, 1), point = random.uniforms(3, 0, 4);
            const Values centre = random.uniforms(3, 30, 50), rest = {420, 6, -8, 0.09, 0.003};
            camera.insert(camera.end(), centre.begin(), centre.end());
            camera.insert(camera.end(), rest.begin(), rest.end());
            return forms(std::make_shared<Input>(Input{n, m, p, repeated(camera, n), repeated(point, m),
                                                       repeated({random.uniform()}, p),
                                                       repeated(random.uniforms(2, 200, 900), p)}));
          }};
}

}   // namespace

Forms forms(const std::shared_ptr<const Input>& in) {
  const Tensors x = {td::tensor(in->cameras, {in->n, kCamera}), td::tensor(in->points, {in->m, 3}),
                     td::tensor(in->weights)};
  const Observations o(*in);
  return with_peers({eager("natural", x, natural(o), natural_jacobian(o)),
                     eager("expert", x, expert(*in), expert_jacobian(*in))},
                    in);
}

Eval eval() {
  return {"ba",
          {"objective", "jacobian"},
          true,
          {size("1", 49, 7776, 31'843), size("8", 88, 64'298, 383'937), size("14", 356, 226'730, 1'255'268)},
          {size("small", 3, 5, 14)}};
}

}   // namespace gradbench::ba
