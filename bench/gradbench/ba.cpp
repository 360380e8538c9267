#include "ba.h"

#include "random.h"
#include "tapedeck/map.h"
#include "tensors.h"

namespace gradbench::ba {
namespace {

/// The numbers of all observations: where their camera and point stand, and what they saw.
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

/// [p, 2], from rows [p, 15].
Tensor residuals(const Tensor& rows, const Tensor& features) {
  const Tensors c = td::unstack(rows, 1), feature = td::unstack(features, 1);
  const Tensor x = c[11] - c[3], y = c[12] - c[4], z = c[13] - c[5];
  const Tensor angle = td::sqrt(c[0] * c[0] + c[1] * c[1] + c[2] * c[2]), cosine = td::cos(angle),
               sine = td::sin(angle);
  const Tensor a0 = c[0] / angle, a1 = c[1] / angle, a2 = c[2] / angle;
  const Tensor along = (a0 * x + a1 * y + a2 * z) * (1 - cosine);
  const Tensor cx = x * cosine + (a1 * z - a2 * y) * sine + a0 * along;
  const Tensor cy = y * cosine + (a2 * x - a0 * z) * sine + a1 * along;
  const Tensor cz = z * cosine + (a0 * y - a1 * x) * sine + a2 * along;
  const Tensor u = cx / cz, v = cy / cz, square = u * u + v * v;
  const Tensor scale = (1 + c[9] * square + c[10] * square * square) * c[6];
  return td::stack({c[14] * (u * scale + c[7] - feature[0]), c[14] * (v * scale + c[8] - feature[1])}, 1);
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

/// Columns and three maps, of at most eight inputs each.
Tensors fused(const Tensors& c, const Tensors& feature) {
  const auto [x, y, z] = td::map<"rotate">(
      [](auto r0, auto r1, auto r2, auto x, auto y, auto z) {
        const auto angle = sqrt(r0 * r0 + r1 * r1 + r2 * r2), cosine = cos(angle), sine = sin(angle),
                   one_over = 1 / angle;
        const auto a0 = r0 * one_over, a1 = r1 * one_over, a2 = r2 * one_over;
        const auto along = (a0 * x + a1 * y + a2 * z) * (1 - cosine);
        return std::tuple(x * cosine + (a1 * z - a2 * y) * sine + a0 * along,
                          y * cosine + (a2 * x - a0 * z) * sine + a1 * along,
                          z * cosine + (a0 * y - a1 * x) * sine + a2 * along);
      },
      c[0], c[1], c[2], c[11] - c[3], c[12] - c[4], c[13] - c[5]);
  const auto [u, v] = td::map<"project">(
      [](auto x, auto y, auto z, auto focal, auto k1, auto k2) {
        const auto one_over = 1 / z, u = x * one_over, v = y * one_over, square = u * u + v * v;
        const auto scale = (1 + k1 * square + k2 * square * square) * focal;
        return std::pair(u * scale, v * scale);
      },
      x, y, z, c[6], c[9], c[10]);
  const auto [e0, e1] =
      td::map<"weigh">([](auto u, auto v, auto u0, auto v0, auto w, auto f0,
                          auto f1) { return std::pair(w * (u + u0 - f0), w * (v + v0 - f1)); },
                       u, v, c[7], c[8], c[14], feature[0], feature[1]);
  return {e0, e1};
}

auto expert(const Observations& o) {
  return [o, feature = td::unstack(o.features, 1)](Inputs x) {
    const Tensors e = fused(td::unstack(o.rows(x), 1), feature);
    return Tensors{td::stack(e, 1), 1 - x[2] * x[2]};
  };
}
/// Two pullbacks, of the columns.
auto expert_jacobian(const Observations& o) {
  return [o, feature = td::unstack(o.features, 1)](Inputs x) {
    const Tensors columns = td::unstack(o.rows(x), 1);
    td::GradientTape tape({.persistent = true});
    for (const Tensor& column : columns)
      tape.watch(column);
    const Tensors e = fused(columns, feature);
    tape.stop();
    Tensors rows;
    for (const Tensor& error : e)
      rows.push_back(td::stack(
          dense(tape.gradient(error, td::Sources(columns), {.unconnected = td::UnconnectedGradients::zero})),
          1));
    return Tensors{td::stack(rows, 1), -2 * x[2]};
  };
}

/// n cameras, m points and p observations that are all of the same numbers, as in the suite.
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
                     eager("expert", x, expert(o), expert_jacobian(o))},
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
