#include "llsq.h"

#include "random.h"
#include "tensors.h"

namespace gradbench::llsq {
namespace {

Tensor points(int n) {
  Values t;
  for (int i = 0; i < n; ++i)
    t.push_back(point(i, n));
  return td::tensor(t);
}
/// Powers 0 to count - 1 of each point, [points, count].
Tensor powers(const Tensor& t, std::int64_t count) {
  const Tensor repeated = td::broadcast_to(td::expand_dims(t, 1), {t.size(), count});
  return td::cumprod(repeated, 1, {.exclusive = true});
}

/// Computed by a product with the matrix of all powers, which is data.
auto natural(const Input& in) {
  const Tensor t = points(in.n), a = powers(t, static_cast<std::int64_t>(in.x.size())), y = td::sign(t);
  return [=](Inputs x) { return 0.5 * td::sum(td::square(y - td::tensordot(a, x[0], 1))); };
}

/// Σ_j x_j t^j as Σ_a (t^b)^a Σ_i x_(ab + i) t^i with b = 16: the points have 16 + m / 16 powers, not m.
auto expert(const Input& in) {
  constexpr std::int64_t low = 16;
  const auto m = static_cast<std::int64_t>(in.x.size()), high = (m + low - 1) / low;
  const Tensor t = points(in.n), small = powers(t, low), large = powers(td::pow(t, low), high),
               y = td::sign(t);
  return [=](Inputs x) {
    const Tensor padded = high * low == m ? x[0] : td::pad(x[0], {0}, {high * low - m});
    const Tensor parts = td::matmul(small, td::reshape(padded, {high, low}), {.transpose_b = true});
    return 0.5 * td::sum(td::square(y - td::sum(parts * large, {1})));
  };
}

Size size(int n, std::size_t m = 128) {
  return {std::to_string(n), [=] { return forms(std::make_shared<Input>(Input{Random().uniforms(m), n})); }};
}

}   // namespace

Forms forms(const std::shared_ptr<const Input>& in) {
  const Tensors x = {td::tensor(in->x)};
  const auto f = natural(*in);
  const auto g = expert(*in);
  return with_peers({eager("natural", x, f, gradients_of(f)), recorded("expert", x, g, gradients_of(g))}, in);
}

Eval eval() {
  return {
      "llsq", {"primal", "gradient"}, true, {size(16), size(512), size(16'392)}, {size(9, 21), size(70, 16)}};
}

}   // namespace gradbench::llsq
