// Derivatives of functions. Expected values are closed forms or those of test/data/cases.json.
#include <catch2/catch.hpp>
#include <cmath>

#include "case.h"
#include "message_of.h"
#include "tapedeck/compile.h"
#include "tapedeck/custom_gradient.h"
#include "tapedeck/forward_accumulator.h"
#include "tapedeck/gradients.h"
#include "tapedeck/minimize.h"
#include "values.h"

namespace functions_test {

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

Tensor square_sum(const Tensor& x) { return sum(x * x); }
// (x₀ x₁, sin x₀, x₁²), with the Jacobian ((x₁, x₀), (cos x₀, 0), (0, 2 x₁)).
Tensor curve(const Tensor& x) {
  const std::vector<Tensor> parts = unstack(x);
  return stack({parts[0] * parts[1], sin(parts[0]), square(parts[1])});
}
Values curve_jacobian(double a, double b) { return {b, a, std::cos(a), 0, 0, 2 * b}; }

bool near(const Tensor& x, const Values& expected) {
  const Values got = x.to_vector();
  if (got.size() != expected.size()) return false;
  for (std::size_t i = 0; i < got.size(); ++i)
    if (std::abs(got[i] - expected[i]) > 1e-12 * (1 + std::abs(expected[i]))) return false;
  return true;
}

constexpr JacobianOptions kModes[] = {{},
                                      {.mode = JacobianMode::reverse},
                                      {.mode = JacobianMode::forward},
                                      {.mode = JacobianMode::reverse, .vectorize = false},
                                      {.mode = JacobianMode::forward, .vectorize = false},
                                      {.mode = JacobianMode::forward, .max_bytes = 20}};

}   // namespace

TEST_CASE("value and gradient of a function", "[functions]") {
  const Tensor x = f64({1, 2}), y = f64({3, 4});
  const auto [value, gradient] = value_and_grad(square_sum, x);
  CHECK(value.item() == 5);
  CHECK(gradient.dense().to_vector() == Values{2, 4});
  CHECK(grad(square_sum, x).dense().to_vector() == Values{2, 4});

  const auto dot = [](const Tensor& a, const Tensor& b) { return sum(a * b); };
  const auto [product, both] = value_and_grad(dot, {x, y});
  CHECK(product.item() == 11);
  CHECK(both[0].dense().to_vector() == Values{3, 4});
  CHECK(both[1].dense().to_vector() == Values{1, 2});
  const std::vector<Tensor> list = {x, y};
  CHECK(grad([&](std::span<const Tensor> in) { return dot(in[0], in[1]); }, list)[1].dense().to_vector() ==
        Values{1, 2});

  // A list of outputs is differentiated as its sum, unless output gradients are given.
  const auto two = [](const Tensor& a) { return std::vector<Tensor>{a * 2, a * a}; };
  CHECK(value_and_grad(two, x).first.size() == 2);
  CHECK(grad(two, x).dense().to_vector() == Values{4, 6});
  CHECK(grad(two, x, {.output_gradients = {f64({1, 0}), f64({0, 1})}}).dense().to_vector() == Values{2, 4});
  CHECK(grad([](const Tensor&) { return tensor(1.0); }, x).to_vector() == Values{0, 0});
}

TEST_CASE("functions without arguments read variables", "[functions]") {
  const Variable v(f64({1, 2}), {.name = "v"}), w(f64({3, 4}), {.name = "w"}), unused(f64({0, 0})),
      fixed(f64({5, 6}), {.trainable = false});
  const auto loss = [&] { return sum(w * v * v + fixed); };
  const std::vector<Variable> parameters = {v, w, fixed, unused};
  const auto [value, g] = value_and_grad(loss, parameters);
  CHECK(value.item() == 3 + 16 + 11);
  CHECK(g[0].dense().to_vector() == Values{6, 16});
  CHECK(g[1].dense().to_vector() == Values{1, 4});
  CHECK(g[2].dense().to_vector() == Values{1, 1});
  CHECK_FALSE(g[3].defined());
  CHECK(grad(loss, v).dense().to_vector() == Values{6, 16});
  const Tensor captured = f64({1, 1});
  CHECK(grad([&] { return sum(captured * captured * v); }, captured).dense().to_vector() == Values{2, 4});

  const ImplicitGradients implicit = implicit_value_and_grad(loss);
  CHECK(implicit.value.item() == value.item());
  CHECK(json_of(implicit.variables) == Json({"v", "w"}));   // in order of creation, not of reading
  CHECK(implicit.gradients[1].dense().to_vector() == Values{1, 4});
  CHECK(message_of([&] { implicit_value_and_grad([&] { return fixed.value(); }); }) ==
        "implicit_value_and_grad: the function reads no trainable variable, so there is nothing to "
        "differentiate with respect to");
}

TEST_CASE("cases: functional forms", "[cases][functions]") {
  check_case("tape-same-object-two-params", [&](Case& c) {
    const auto f = [](const Tensor& x, const Tensor& y) { return x * y; };
    const Tensor x = c.input("x"), m = reshape(x, {1, 1});
    const Variable v = c.variable(x);
    c.check("g_scalar", grad(f, {x, x}));
    c.check("g_matrix", grad(f, {m, m}));
    c.check("g_variable", grad(f, {v, v}));
  });
  check_case("tape-fn-returns-none", [&](Case& c) {   // a function of void does not compile
    const auto nothing = [](const Tensor&) { return Tensor(); };
    CHECK(message_of([&] { implicit_value_and_grad([] { return Tensor(); }); }) ==
          "implicit_value_and_grad: an undefined tensor was returned; is a return missing?");
    c.check_error(
        [&] { value_and_grad(nothing, tensor(1.0)); },
        "function: an undefined tensor was returned; is a return missing? (Or is it a gradient that "
        "is none?)");
  });
}

TEST_CASE("functions accept the arguments in their signatures", "[functions][errors]") {
  const Tensor x = tensor(1.0);
  CHECK(message_of([&] { grad([](const Tensor& a, const Tensor& b) { return a * b; }, x); }) ==
        "grad: the function does not take 1 tensors");
  CHECK(
      grad([](const Tensor& a, const Tensor& b, const Tensor& c) { return a * b * c; }, {x, x + 1, x + 2})[0]
          .dense()
          .item() == 6);
  const auto [pair, g] = value_and_grad([](const Tensor& a) { return std::pair(a * 2, a * 3); }, x);
  CHECK(pair.second.item() == 3);
  CHECK(g.dense().item() == 5);
  CHECK(message_of([&] {
          hessian([](const Tensor& a) { return std::vector<Tensor>{a, a}; }, x);
        }) == "hessian: the function returns 2 tensors; it must return one");
}

TEST_CASE("a pullback can be called repeatedly", "[functions]") {
  const Tensor x = f64({1, 2});
  const auto [value, pullback] = vjp([](const Tensor& a) { return a * a; }, x);
  CHECK(value.to_vector() == Values{1, 4});
  CHECK(pullback()[0].dense().to_vector() == Values{2, 4});
  CHECK(pullback(f64({10, 0}))[0].dense().to_vector() == Values{20, 0});
  CHECK(vjp([](const Tensor& a) { return a; }, x).second()[0].dense().to_vector() == Values{1, 1});
  const auto [values, both] = vjp(
      [](const Tensor& a, const Tensor& b) {
        return std::vector<Tensor>{a * b, a + b};
      },
      {x, x});
  CHECK(values.size() == 2);
  CHECK(both({f64({1, 1}), f64({0, 0})})[1].dense().to_vector() == Values{1, 2});
  const auto once = vjp(square_sum, x, {.persistent = false}).second;
  once();
  CHECK(message_of([&] { once(); }) ==
        "gradient: this tape was already used; make it persistent to call gradient twice");
}

TEST_CASE("directional derivatives", "[functions]") {
  const Tensor x = f64({0.5, 2}), v = f64({1, -1});
  CHECK(near(jvp(curve, {x}, {v}), {2 - 0.5, std::cos(0.5), -4}));
  CHECK(jvp([](const Tensor& a, const Tensor& b) { return sum(a * b); }, {x, x}, {v, f64({1, 1})}).item() ==
        Approx(-1.5 + 2.5));
  CHECK(jvp([](const Tensor&) { return zeros({3}, DType::f64); }, x, v).to_vector() == Values{0, 0, 0});
  const std::vector<Tensor> two = jvp(
      [](const Tensor& a) {
        return std::vector<Tensor>{a * 2, sum(a)};
      },
      x, v);
  CHECK(two[0].to_vector() == Values{2, -2});
  CHECK(two[1].item() == 0);
}

TEST_CASE("Jacobians of functions, by rows and by columns", "[functions][jacobian]") {
  const Tensor x = f64({0.5, 2});
  for (const JacobianOptions& options : kModes) {
    const Tensor j = jacobian(curve, x, options);
    CHECK(j.shape() == Shape{3, 2});
    CHECK(near(j, curve_jacobian(0.5, 2)));
    // Of a product of matrices: d(ab)_ij / da_kl = δ_ik b_lj.
    const Tensor a = reshape(arange(6, DType::f64), {2, 3}), b = reshape(arange(6, DType::f64) + 1, {3, 2});
    const std::vector<Tensor> both =
        jacobian([](const Tensor& p, const Tensor& q) { return matmul(p, q); }, {a, b}, options);
    CHECK(both[0].shape() == Shape{2, 2, 2, 3});
    CHECK(both[1].shape() == Shape{2, 2, 3, 2});
    for (std::int64_t i : {0, 1})
      for (std::int64_t k : {0, 1})
        for (std::int64_t l : {0, 1, 2}) {
          CHECK(both[0].at({i, 1, k, l}) == (i == k ? b.at({l, 1}) : 0));
          CHECK(both[1].at({i, 1, l, k}) == (k == 1 ? a.at({i, l}) : 0));
        }
    CHECK(jacobian([](const Tensor&) { return ones({2}, DType::f64); }, x, options).to_vector() ==
          Values{0, 0, 0, 0});
    CHECK(jacobian(square_sum, x, options).to_vector() == Values{1, 4});
    CHECK(jacobian([](const Tensor& t) { return t * 1; }, zeros({0}, DType::f64), options).shape() ==
          Shape{0, 0});
    const Tensor batch = reshape(arange(6, DType::f64), {3, 2});
    const Tensor rows = batch_jacobian(
        [](const Tensor& t) {
          return concat({t * t, sum(t, 1, {.keepdims = true})}, 1);
        },
        batch, options);
    CHECK(rows.shape() == Shape{3, 3, 2});
    CHECK(rows.to_vector() == Values{0, 0, 0, 2, 1, 1, 4, 0, 0, 6, 1, 1, 8, 0, 0, 10, 1, 1});
  }
  CHECK(message_of([&] {
          jacobian(curve, tensor({1, 2}));
        }) == "jacobian: x is i32[2]; use f32, f64, f16 or bf16");
  CHECK(message_of([&] { batch_jacobian(curve, x); }) ==
        "batch_jacobian: the target is f64[3]; it must have rank 2 or more");
}

TEST_CASE("Hessians of functions", "[functions][hessian]") {
  const Tensor x = f64({0.5, 2, -1});
  // Σ x³ + x₀ x₂: 6 x on the diagonal, and 1 in two corners.
  const auto f = [](const Tensor& t) {
    return sum(t * t * t) + strided_slice(t, {0}) * strided_slice(t, {2});
  };
  for (const JacobianOptions& options : kModes) {
    CHECK(hessian(f, x, options).shape() == Shape{3, 3});
    CHECK(near(hessian(f, x, options), {3, 0, 1, 0, 12, 0, 1, 0, -6}));
    CHECK(message_of<ShapeError>([&] { hessian([](const Tensor& t) { return t * t; }, x, options); }) ==
          "hessian: the function's value is f64[3]; it must have one element: return its sum or mean");
    CHECK(hessian([](const Tensor& t) { return sum(t); }, x, options).to_vector() == Values(9, 0));
  }
  for (const JacobianMode mode : {JacobianMode::automatic, JacobianMode::forward, JacobianMode::reverse}) {
    CHECK(near(hessian_vector_product(f, x, f64({1, 2, 3}), mode), {6, 24, -17}));
    const std::vector<Tensor> both =
        hessian_vector_product([](const Tensor& a, const Tensor& b) { return sum(a * a * b); }, {x, x},
                               {f64({1, 0, 0}), f64({0, 1, 0})}, mode);
    CHECK(near(both[0], {2 * 0.5, 2 * 2, 0}));   // 2 b v + 2 a w
    CHECK(near(both[1], {2 * 0.5, 0, 0}));       // 2 a v
  }
  CHECK(message_of([&] {
          hessian_vector_product(f, std::vector<Tensor>{x}, std::vector<Tensor>{x, x});
        }) == "hessian_vector_product: 2 vectors for 1 tensors");
  for (const JacobianMode mode : {JacobianMode::forward, JacobianMode::reverse})
    CHECK(message_of<ArgumentError>([&] { hessian_vector_product(f, x, Tensor(), mode); }) ==
          "hessian_vector_product: vector 0 is undefined");
  CHECK_THROWS_AS(vjp(f, x).second(Tensor()), GradientError);
  CHECK_THROWS_AS(implicit_value_and_grad(std::function<Tensor()>()), ArgumentError);
}

// Large tensors take other code paths than small ones.
TEST_CASE("second derivatives of large tensors", "[functions][hessian]") {
  const std::int64_t n = 20'001;
  const Tensor x = arange(0, static_cast<double>(n), 1, DType::f64) * (2 / static_cast<double>(n - 1)) - 1,
               v = 1 + x * x;
  const Tensor scale = tensor(1.5, DType::f64);
  // Each function at x and at y = sin x, with its second derivative.
  const auto product = [](const Tensor& t) { return sum(t * square(t) * t); };   // 12 x²
  const auto twin = [](const Tensor& t) {
    const Tensor u = t * t;
    return sum(u * u);
  };                                                                                      // 12 x²
  const auto with_number = [&](const Tensor& t) { return sum(square(t * scale) * t); };   // 1.5² · 6 x
  const auto check = [&](const auto& f, const auto& second) {
    for (const JacobianMode mode : {JacobianMode::reverse, JacobianMode::forward}) {
      const Values got = hessian_vector_product(f, x, v, mode).to_vector(), at = x.to_vector(),
                   by = v.to_vector();
      double worst = 0;
      for (std::size_t i = 0; i < at.size(); ++i)
        worst = std::max(worst, std::abs(got[i] - second(at[i]) * by[i]));
      CHECK(worst < 1e-12);
    }
  };
  check(product, [](double t) { return 12 * t * t; });
  check(twin, [](double t) { return 12 * t * t; });
  check(with_number, [](double t) { return 13.5 * t; });
  check([](const Tensor& t) { return sum(mul(sin(t), square(sin(t)))); },
        [](double t) { return 6 * std::sin(t) - 9 * std::pow(std::sin(t), 3); });

  // In third order; and with a broadcast row, whose gradient is summed.
  const auto cube = [](const Tensor& t) { return sum(t * square(t)); };
  const Tensor third =
      grad(
          [&](const Tensor& t) {
            return sum(grad([&](const Tensor& s) { return sum(grad(cube, s).dense() * v); }, t).dense() * v);
          },
          x)
          .dense();
  const Values got = third.to_vector(), by = v.to_vector();
  for (const std::size_t i : {std::size_t{0}, std::size_t{777}, got.size() - 1})
    CHECK(got[i] == Approx(6 * by[i] * by[i]));

  const Tensor matrix = reshape(slice(x, {0}, {20'000}), {200, 100}), row = slice(x, {500}, {100});
  const auto of_row = [&](const Tensor& r) { return sum(square(matrix * r) * r); };   // 6 r Σ m²
  const Values column = sum(square(matrix), 0).to_vector(), rows = row.to_vector();
  const Values second = hessian_vector_product(of_row, row, ones({100}, DType::f64)).to_vector();
  for (std::size_t i = 0; i < rows.size(); ++i)
    CHECK(second[i] == Approx(6 * rows[i] * column[i]));
}

TEST_CASE("transforms nest", "[functions]") {
  const Tensor x = tensor(0.5, DType::f64);
  const auto d = [](auto f) { return [f](const Tensor& t) { return grad(f, t).dense(); }; };
  const auto forward = [](auto f) { return [f](const Tensor& t) { return jvp(f, t, ones_like(t)); }; };
  const auto f = [](const Tensor& t) { return sin(t) * t; };
  const double third = -3 * std::sin(0.5) - 0.5 * std::cos(0.5);   // of x sin x
  CHECK(d(d(d(f)))(x).item() == Approx(third));
  CHECK(forward(forward(forward(f)))(x).item() == Approx(third));
  CHECK(forward(d(forward(f)))(x).item() == Approx(third));
  CHECK(d(forward(d(f)))(x).item() == Approx(third));
  const Tensor y = f64({0.5, 2});
  for (const JacobianOptions& outer : kModes)
    for (const JacobianOptions& inner : kModes) {
      // Of x³: 6 x where all three indices are the same.
      const Tensor second = jacobian(
          [&](const Tensor& t) { return jacobian([](const Tensor& u) { return u * u * u; }, t, inner); }, y,
          outer);
      CHECK(near(second, {3, 0, 0, 0, 0, 0, 0, 12}));
    }
  // An outer tape records the differentiation inside.
  GradientTape tape;
  tape.watch(y);
  CHECK(near(tape.gradient(sum(hessian([](const Tensor& t) { return sum(t * t * t); }, y)), y).dense(),
             {6, 6}));
}

TEST_CASE("vjp treats an input that a function returns as a separate result", "[functions]") {
  const Tensor x = f64(2);
  auto [y, pullback] = vjp([](const Tensor& a) { return a; }, x);
  CHECK(y.id() != x.id());
  CHECK(pullback(f64(3))[0].dense().item() == 3);
}

TEST_CASE("a Hessian needs a scalar result", "[functions][errors]") {
  const Tensor x = f64({1, 2, 3});
  CHECK(message_of<ShapeError>([&] { hessian([](const Tensor& a) { return a * a; }, x); }) ==
        "hessian: the function's value is f64[3]; it must have one element: return its sum or mean");
  CHECK(message_of<ShapeError>([&] {
          hessian_vector_product([](const Tensor& a) { return a * a; }, x, x);
        }).starts_with("hessian_vector_product: the function's value is f64[3]"));
  CHECK(message_of([&] {
          jacobian([](const Tensor& a) { return astype(a, DType::i64); }, x);
        }).starts_with("jacobian: the function's value is i64[3]"));
}

TEST_CASE("an empty function is refused by name", "[functions][errors]") {
  const std::function<Tensor(const Tensor&)> none;
  const Tensor x = tensor({1.0, 2.0});
  const auto refused = [](const std::string& name, const auto& call) {
    CHECK(message_of<ArgumentError>(call) == name + ": the function is empty");
  };
  refused("value_and_grad", [&] { (void)value_and_grad(none, x); });
  refused("vjp", [&] { (void)vjp(none, x); });
  refused("jacobian", [&] { (void)jacobian(none, x); });
  refused("hessian", [&] { (void)hessian(none, x); });
  refused("custom_gradient",
          [&] { (void)custom_gradient(std::function<std::pair<Tensor, Function>(const Tensor&)>())(x); });
  refused("recompute_grad", [&] { (void)recompute_grad(none)(x); });
  refused("compile", [&] { (void)compile(none); });
  refused("compile", [&] { (void)compile(static_cast<Tensor (*)(const Tensor&)>(nullptr)); });
  refused("minimize_newton", [&] { (void)minimize_newton(none, x); });
  if (has_lbfgs()) refused("minimize_lbfgs", [&] { (void)minimize_lbfgs(none, x); });
}

}   // namespace functions_test
