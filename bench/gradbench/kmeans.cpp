#include "kmeans.h"

#include "random.h"
#include "tensors.h"

namespace gradbench::kmeans {
namespace {

/// The gradient divided by the Hessian's diagonal, which is the Hessian's product with a vector of ones.
template <class F> auto newton_step(F f) {
  return [f](Inputs x) {
    const Tensor gradient = td::grad(f, x[0]).dense();
    return gradient / td::hessian_vector_product(f, x[0], td::ones_like(x[0]));
  };
}

/// The squared distances of all pairs, and their minima.
auto natural(const Input& in) {
  const Tensor points = td::tensor(in.points, {in.n, in.d});
  return [points](Inputs x) {
    const Tensor& centroids = x[0];
    const Tensor distances = td::sum(td::square(points), {1}, {.keepdims = true}) -
                             2 * td::matmul(points, centroids, {.transpose_b = true}) +
                             td::sum(td::square(centroids), {1});
    return td::sum(td::min(distances, {1}));
  };
}

/// The indices of the closest centroids, which have no derivative. Processes blocks of points that stay in
/// the cache.
Tensor closest(const Tensors& blocks, const Tensor& centroids) {
  const td::StopRecording stop;
  const Tensor half_squares = 0.5 * td::sum(td::square(centroids), {1});
  Tensors all;
  for (const Tensor& points : blocks)
    all.push_back(td::argmin(half_squares - td::matmul(points, centroids, {.transpose_b = true}), 1));
  return td::concat(all, 0);
}
auto blocks_of(const Input& in) {
  Tensors blocks;
  const int rows = std::max(1, 1 << 15 >> (in.k >= 1000 ? 10 : 5));
  for (int first = 0; first < in.n; first += rows) {
    const int count = std::min(rows, in.n - first);
    blocks.push_back(td::tensor(std::span(in.points).subspan(static_cast<std::size_t>(first * in.d),
                                                             static_cast<std::size_t>(count * in.d)),
                                {count, in.d}));
  }
  return blocks;
}
auto expert_cost(const Input& in) {
  return [blocks = blocks_of(in), points = td::tensor(in.points, {in.n, in.d})](Inputs x) {
    return td::sum(td::squared_difference(points, td::gather(x[0], closest(blocks, x[0]))));
  };
}
auto expert_step(const Input& in) {
  return [blocks = blocks_of(in), points = td::tensor(in.points, {in.n, in.d})](Inputs x) {
    const Tensor ids = closest(blocks, x[0]);
    const auto cost = [&](const Tensor& centroids) {
      return td::sum(td::squared_difference(points, td::gather(centroids, ids)));
    };
    const Tensor gradient = td::grad(cost, x[0]).dense();
    return gradient / td::hessian_vector_product(cost, x[0], td::ones_like(x[0]));
  };
}

Size size(int k, int n, int d) {
  const std::string name = std::to_string(k) + "·" + std::to_string(n) + "·" + std::to_string(d);
  return {name, [=] {
            Random random;
            Values points = random.uniforms(static_cast<std::size_t>(n * d));
            Values centroids(points.end() - k * d,
                             points.end());   // near a point, so that no centroid is without points
            for (double& c : centroids)
              c += 0.01 * random.uniforms(1)[0];
            return forms(std::make_shared<Input>(Input{k, n, d, std::move(points), std::move(centroids)}));
          }};
}

}   // namespace

Forms forms(const std::shared_ptr<const Input>& in) {
  const Tensors x = {td::tensor(in->centroids, {in->k, in->d})};
  const auto f = natural(*in);
  return with_peers(
      {eager("natural", x, f, newton_step(f)), eager("expert", x, expert_cost(*in), expert_step(*in))}, in);
}

Eval eval() {
  return {"kmeans",
          {"cost", "dir"},
          true,
          {size(10, 1000, 8), size(1000, 1000, 8), size(1000, 10'000, 16)},
          {size(3, 50, 2), size(17, 40, 5)}};
}

}   // namespace gradbench::kmeans
