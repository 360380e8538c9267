// The cases of test/data/cases.json about single ops: elementwise ones, reductions, losses and activations.
// docs/inside/testing/cases.md says which cases run.
#include <catch2/catch.hpp>

#include "case.h"
#include "ops/sample_inputs.h"

namespace op_cases_test {

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

/// The gradients of the sum of f(x...), one for each x.
template <class F, class... X> std::vector<Tensor> gradients_of(const F& f, const X&... x) {
  GradientTape tape;
  (tape.watch(x), ...);
  std::vector<Tensor> dense;
  for (const Gradient& g : tape.gradient(Targets(f(x...)), Sources({x...})))
    dense.push_back(g.dense());
  return dense;
}

/// The axes of a + b along which the gradient of a, or that of b, is a sum: along these it is not 0, although
/// the output's gradient is 0 except in one slice.
std::vector<int> summed_axes(const Shape& a_shape, const Shape& b_shape, bool of_a) {
  const Tensor a = zeros(a_shape), b = zeros(b_shape);
  std::vector<int> axes;
  const Shape y_shape = broadcast_shapes(a_shape, b_shape);
  for (int axis = 0; axis < y_shape.ndim(); ++axis) {
    if (y_shape[axis] == 1) continue;
    Shape along;
    for (int d = 0; d < y_shape.ndim(); ++d)
      along.push_back(d == axis ? y_shape[d] : 1);
    const Tensor first = broadcast_to(reshape(one_hot(tensor(0), y_shape[axis]), along), y_shape);
    GradientTape tape;
    tape.watch(of_a ? a : b);
    const Gradient g = tape.gradient(a + b, of_a ? Sources(a) : Sources(b), {.output_gradients = {first}})[0];
    if (all(g.dense() > 0).item() != 0) axes.push_back(axis);
  }
  return axes;
}

}   // namespace

TEST_CASE("cases: gradients of broadcast operands", "[cases]") {
  check_case("op-broadcast-axes-0", [&](Case& c) {
    c.check("x_axes", summed_axes({}, {}, true));
    c.check("y_axes", summed_axes({}, {}, false));
  });
  check_case("op-broadcast-axes-2", [&](Case& c) {
    c.check("x_axes", summed_axes({2}, {2}, true));
    c.check("y_axes", summed_axes({2}, {2}, false));
  });
  check_case("op-broadcast-axes-3", [&](Case& c) {
    c.check("x_axes", summed_axes({3, 1, 5, 1, 7}, {2, 1, 4, 7}, true));
    c.check("y_axes", summed_axes({3, 1, 5, 1, 7}, {2, 1, 4, 7}, false));
  });
  check_case("op-squared-difference-broadcast", [&](Case& c) {
    c.check("grads", gradients_of([](const Tensor& x, const Tensor& y) { return squared_difference(x, y); },
                                  c.input("x"), c.input("y")));
  });
  check_case("op-realdiv-broadcast-scalar", [&](Case& c) {
    c.check("grads",
            gradients_of([](const Tensor& x, const Tensor& y) { return x / y; }, c.input("x"), c.input("y")));
  });
}

TEST_CASE("cases: choices and kinks", "[cases]") {
  for (const bool largest : {false, true}) {
    check_case(largest ? "op-max-ties" : "op-min-ties", [&](Case& c) {
      const Tensor x = c.input("x");
      GradientTape tape;
      tape.watch(x);
      const Tensor both = concat({x, x}, 0);
      const auto [dx, d_both] = tape.gradient(largest ? max(both) : min(both), x, both);
      c.check("grads", {dx});
      c.check("grad_wrt_concat", d_both);
    });
  }
  check_case("op-minimum-tie", [&](Case& c) {
    const std::vector<Tensor> g = gradients_of([](const Tensor& x, const Tensor& y) { return minimum(x, y); },
                                               c.input("x"), tensor(2.0));
    c.check("grads", {g[0]});
    c.check("grad_of_scalar", g[1]);
  });
  check_case("op-clip-by-value", [&](Case& c) {
    c.check("grads", gradients_of([](const Tensor& x, const Tensor& low,
                                     const Tensor& high) { return clip(x, low, high); },
                                  c.input("x"), c.input("lo"), c.input("hi")));
  });
  check_case("op-abs-at-zero", [&](Case& c) {
    c.check("grads", gradients_of([](const Tensor& x) { return abs(x); }, c.input("x")));
  });
}

TEST_CASE("cases: products and powers", "[cases]") {
  check_case("op-prod-neg-axis", [&](Case& c) {
    c.check("grads", gradients_of([](const Tensor& x) { return prod(x, -1); }, c.input("x")));
  });
  check_case("op-pow-zero-base", [&](Case& c) {
    const Tensor x = c.input("x");
    GradientTape tape;
    tape.watch(x);
    c.check("grads", tape.gradient(Targets(pow(x, 2)), Sources(x)));
  });
  check_case("op-pow-wrt-exponent", [&](Case& c) {
    c.check("grads", gradients_of([](const Tensor& x, const Tensor& y) { return pow(x, y); }, c.input("x"),
                                  c.input("y")));
  });
}

TEST_CASE("cases: elementary functions", "[cases]") {
  const std::pair<const char*, Tensor (*)(Operand)> functions[] = {
      {"expm1", expm1}, {"rsqrt", rsqrt}, {"sigmoid", sigmoid}, {"tanh", tanh}};
  for (const auto& function : functions) {
    check_case(std::string("op-special-") + function.first, [f = function.second](Case& c) {
      c.check("grads", gradients_of([f](const Tensor& x) { return f(x); }, c.input("x")));
    });
  }
}

TEST_CASE("cases: activations and losses", "[cases]") {
  check_case("op-act-relu", [&](Case& c) {
    c.check("grads", gradients_of([](const Tensor& x) { return relu(x); }, c.input("x")));
  });
  check_case("op-leaky-relu-scalar-sgd", [&](Case& c) {
    const Variable x = c.variable(c.input("x"));
    GradientTape tape;
    const Tensor loss = square(leaky_relu(x, 0.05));
    GradientDescent& descent = c.keep([&] { return GradientDescent({.learning_rate = 0.2}); });
    descent.apply_gradients({{tape.gradient(loss, x), x}});
    c.check("x_after", x.value());
  });
  check_case("op-swish-beta", [&](Case& c) {
    c.check("grads", gradients_of([](const Tensor& x, const Tensor& beta) { return x * sigmoid(beta * x); },
                                  c.input("x"), c.input("beta")));
  });
  check_case("op-softmax-grad-gradgrad", [&](Case& c) {
    const Tensor x = c.input("x"), w = c.input("w");
    GradientTape outer;
    outer.watch(x);
    const Tensor g = gradients_of([&](const Tensor& t) { return w * softmax(t); }, x)[0];
    c.check("grads", {g});
    c.check("second", outer.gradient(square(g), x));
  });
  check_case("op-xent-known", [&](Case& c) {
    const Tensor labels = c.input("labels"), logits = c.input("logits");
    c.check("loss", softmax_cross_entropy(labels, logits));
    c.check("grads", gradients_of([&](const Tensor& t) { return softmax_cross_entropy(labels, t); }, logits));
  });
}

}   // namespace op_cases_test
