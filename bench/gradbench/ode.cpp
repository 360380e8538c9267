#include "ode.h"

#include <algorithm>

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

/// Each stage computes the slope, and the point of the next stage.
auto natural(int s) {
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
          x, td::shifted(at, 1, 1), y);
    };
    for (int t = 0; t < s; ++t) {
      const auto [k1, y1] = stage(y, h / 2);
      const auto [k2, y2] = stage(y1, h / 2);
      const auto [k3, y3] = stage(y2, h);
      y = td::map<"step">([h](auto x_, auto before, auto y_, auto a, auto b,
                              auto c) { return y_ + h / 6 * (a + 2 * b + 2 * c + x_ * before); },
                          x, td::shifted(y3, 1, 1), y, k1, k2, k3);
    }
    return y;
  };
}

/// Computes the four stages of a step in one pass: the system is linear, so they are the first five terms of
/// a series. Four constant elements precede y, 0, 0, 0 and 1, with zeros in x.
auto expert(int s) {
  return [s](Inputs in) {
    const Tensor before = td::zeros({4}, td::DType::f64), x = td::concat({before, in[0]}, 0);
    Tensor y = td::concat({td::tensor(Values{0, 0, 0, 1}), td::zeros_like(in[0])}, 0);
    for (int t = 0; t < s; ++t)
      y = td::map<"step">(
          [h = 2.0 / s](auto x0, auto x1, auto x2, auto x3, auto y0, auto y1, auto y2, auto y3, auto y4) {
            return y0 + h * x0 * (y1 + h / 2 * x1 * (y2 + h / 3 * x2 * (y3 + h / 4 * x3 * y4)));
          },
          x, td::shifted(x, 1), td::shifted(x, 2), td::shifted(x, 3), y, td::shifted(y, 1), td::shifted(y, 2),
          td::shifted(y, 3), td::shifted(y, 4));
    return td::slice(y, {4}, {in[0].size()});
  };
}
/// In each step, y depends on the four x before it, so the last y depends on at most 4 s + 1 elements of x.
auto expert_gradient(int s) {
  return last_gradient([s, solve = expert(s)](Inputs in) {
    const std::int64_t n = in[0].size(), reached = std::min<std::int64_t>(n, 4 * s + 1);
    const Tensor x = td::slice(in[0], {n - reached}, {reached});
    return solve(Inputs(&x, 1));
  });
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
  return with_peers(
      {eager("natural", x, f, last_gradient(f)), recorded("expert", x, g, expert_gradient(in->s))}, in);
}

Eval eval() {
  return {"ode",
          {"primal", "gradient"},
          true,
          {size(1000, 1), size(10'000, 10), size(100'000, 1), size(100'000, 100)},
          {size(4, 3), size(9, 3)}};
}

}   // namespace gradbench::ode
