#include "ode.h"

#include "random.h"
#include "tapedeck/map.h"
#include "tensors.h"

namespace gradbench::ode {
namespace {

/// The function that returns the gradient of the last y.
template <class F> auto last_gradient(F solve) {
  return [solve](Inputs x) {
    return dense(td::grad([&](const Tensor& v) { return solve(Inputs(&v, 1))[td::Slice(-1)]; }, {x[0]}));
  };
}

/// What y_(i-1) is for each i, and 1 for the first.
Tensor shifted(const Tensor& y) {
  return td::concat({td::ones({1}, td::DType::f64), td::slice(y, {0}, {y.size() - 1})}, 0);
}

auto natural(int s) {
  return [s](Inputs in) {
    const Tensor& x = in[0];
    const double h = 2.0 / s;
    Tensor y = td::zeros_like(x);
    for (int t = 0; t < s; ++t) {
      const Tensor k1 = x * shifted(y);
      const Tensor k2 = x * shifted(y + h / 2 * k1);
      const Tensor k3 = x * shifted(y + h / 2 * k2);
      const Tensor k4 = x * shifted(y + h * k3);
      y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4);
    }
    return y;
  };
}

/// Each stage's products and its next point in one pass.
auto expert(int s) {
  return [s](Inputs in) {
    const Tensor& x = in[0];
    const double h = 2.0 / s;
    Tensor y = td::zeros_like(x);
    const auto stage = [&](const Tensor& at, double by) {
      return td::map<"stage">(
          [by](auto x_, auto before, auto y_) {
            const auto k = x_ * before;
            return std::pair(k, y_ + by * k);
          },
          x, shifted(at), y);
    };
    for (int t = 0; t < s; ++t) {
      const auto [k1, y1] = stage(y, h / 2);
      const auto [k2, y2] = stage(y1, h / 2);
      const auto [k3, y3] = stage(y2, h);
      y = td::map<"step">([h](auto x_, auto before, auto y_, auto a, auto b,
                              auto c) { return y_ + h / 6 * (a + 2 * b + 2 * c + x_ * before); },
                          x, shifted(y3), y, k1, k2, k3);
    }
    return y;
  };
}

Size size(std::size_t n, int s) {
  const std::string thousands = n >= 1000 ? std::to_string(n / 1000) + "k" : std::to_string(n);
  return {thousands + "·" + std::to_string(s), [=] {
            return forms(std::make_shared<Input>(Input{Random().uniforms(n, 0.1, 1), s}));
          }};
}

}   // namespace

Forms forms(const std::shared_ptr<const Input>& in) {
  const Tensors x = {td::tensor(in->x)};
  const auto f = natural(in->s);
  const auto g = expert(in->s);
  return with_peers({eager("natural", x, f, last_gradient(f)), recorded("expert", x, g, last_gradient(g))},
                    in);
}

Eval eval() {
  return {"ode",
          {"primal", "gradient"},
          true,
          {size(1000, 1), size(10'000, 10), size(100'000, 1), size(100'000, 100)},
          {size(4, 3), size(9, 3)}};
}

}   // namespace gradbench::ode
