// Operations and functions with custom gradients, and functions that are recomputed for the backward pass.

#include <catch2/catch.hpp>
#include <thread>

#include "case.h"
#include "message_of.h"
#include "tapedeck/debug.h"
#include "tapedeck/gradcheck.h"
#include "tapedeck/memory.h"
#include "values.h"

namespace custom_gradient_test {

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

// x³, recorded on the tape as one operation.
Tensor cube(const Tensor& x) {
  Tensor y;
  {
    const StopRecording pause;
    y = x * x * x;
  }
  record_operation(
      "cube", std::array{y}, std::array{x},
      [x](std::span<const Tensor> dy) { return std::vector<Gradient>{3.0 * x * x * dy[0]}; },
      [x](std::span<const Tensor> dx) { return std::vector<Tensor>{3.0 * x * x * dx[0]}; });
  return y;
}

template <class F> Tensor derivative(const F& f, const Tensor& x) {
  GradientTape tape;
  tape.watch(x);
  return tape.gradient(f(x), x).dense();
}

constexpr auto mul_with_rule = [](const Tensor& x, const Tensor& y) {
  return std::pair(x * y, [x, y](const Tensor& dr) { return std::pair(dr * y, dr * x); });
};

}   // namespace

TEST_CASE("cases: custom gradients", "[cases][custom]") {
  check_case("tape-custom-mul-training", [&](Case& c) {
    const Variable v = c.variable(c.input("v"));
    auto mul = custom_gradient(mul_with_rule);
    std::vector<Tensor> losses;
    for (int i = 0; i < 5; ++i) {
      GradientTape tape;
      losses.push_back(mul(tensor(2.0), v));
      v.assign_sub(c.input("lr") * tape.gradient(losses.back(), v).dense());
    }
    c.check("losses", losses);
  });
  check_case("tape-custom-identity-times-2", [&](Case& c) {
    auto id =
        custom_gradient([](const Tensor& x) { return std::pair(x, [](const Tensor& d) { return 2 * d; }); });
    c.check("g", derivative(id, c.input("x")));
  });
  check_case("rec-custom-two-outputs", [&](Case& c) {
    auto two = custom_gradient([](const Tensor& a, const Tensor& b) {
      const Tensor mm = matmul(a, b);
      return std::pair(std::pair(mm, sum(mm)), [a, b](const Tensor& dmm, const Tensor& dr) {
        const Tensor bt = transpose(b), at = transpose(a);
        return std::pair(matmul(dmm, bt) + matmul(ones_like(b * dr), bt),
                         matmul(at, dmm) + matmul(at, ones_like(a) * dr));
      });
    });
    const Tensor a = c.input("a"), b = c.input("b");
    GradientTape tape;
    tape.watch(a), tape.watch(b);
    const auto [mm, r] = two(a, b);
    const auto [da, db] = tape.gradient(r + sum(mm), a, b);
    c.check("da", da);
    c.check("db", db);
  });
  check_case("custom-switched-order", [&](Case& c) {
    auto switched = custom_gradient([](const Tensor& x, const Tensor& y) {
      return std::pair(x * y, [x, y](const Tensor& dy) { return std::array{dy * x, dy * y}; });
    });
    const Tensor x = c.input(tensor(3.0)), y = c.input(tensor(5.0));
    GradientTape tape;
    tape.watch(x), tape.watch(y);
    c.check("g", tape.gradient(switched(x, y), x, y));
  });
  check_case("custom-linear-poly-variables", [&](Case& c) {
    const Variable weights = c.variable(ones({2}));
    auto linear_poly = custom_gradient([&](const Tensor& x) {
      const Tensor w = weights, w0 = gather(w, tensor(0)), w1 = gather(w, tensor(1));
      return std::pair(w1 * x + w0, [x, w1](const Tensor& dpoly, std::span<const Variable>) {
        return std::pair(dpoly * w1, sum(stack({dpoly * x, dpoly}), 1));
      });
    });
    const Tensor x = c.input(tensor({1.0, 2.0, 3.0}));
    GradientTape tape;
    tape.watch(x);
    const Tensor poly = linear_poly(x);
    c.check("poly", poly);
    const auto [dx, dw] = tape.gradient(poly, x, weights);
    c.check("dx", dx);
    c.check("dw", dw);
  });
}

TEST_CASE("cases: variables in custom gradients", "[cases][custom]") {
  check_case("custom-with-variable-eager", [&](Case& c) {
    const Variable w = c.variable(ones({2, 4}));
    std::size_t n = 0;
    auto f = custom_gradient([&](const Tensor& x) {
      return std::pair(matmul(x, w), [&](const Tensor&, std::span<const Variable> variables) {
        n = variables.size();
        return std::pair(ones({3, 2}), std::vector{ones({2, 4})});
      });
    });
    const Tensor x = ones({3, 2}) + 2;
    GradientTape tape;
    tape.watch(x);
    const auto [dx, dw] = tape.gradient(f(x), x, w);
    c.check("sum_dx", sum(dx.dense()));
    c.check("sum_dw", sum(dw.dense()));
    c.check("n_variables", n);
  });
  check_case("custom-with-variable-graph", [&](Case& c) {
    const Variable w = c.variable(ones({4, 3}));
    auto f = custom_gradient([&](const Tensor& x) {
      return std::pair(matmul(x, w), [&](const Tensor& dy, std::span<const Variable> variables) {
        return std::pair(matmul(dy, transpose(variables[0].value())), std::vector{ones({4, 3})});
      });
    });
    GradientTape tape;
    c.check("sum_dw", sum(tape.gradient(f(ones({2, 4})), w).dense()));
  });
  check_case("custom-no-false-positive-variables", [&](Case& c) {
    const Variable before = c.variable(ones({3, 3})), w = c.variable(ones({3, 3}));
    std::size_t n = 0;
    auto f = custom_gradient([&](const Tensor& x) {
      return std::pair(matmul(x, w), [&](const Tensor& dy, std::span<const Variable> variables) {
        n = variables.size();
        return std::pair(dy, std::vector{ones({3, 3})});
      });
    });
    GradientTape tape;
    c.check("sum_dw", sum(tape.gradient(f(matmul(ones({2, 3}), before)), w).dense()));
    c.check("n_variables", n);
  });
  check_case("custom-kwonly-variables", [&](Case& c) {
    const Variable captured = c.variable(tensor(3.0)), x = c.variable(tensor(6.0));
    auto f = custom_gradient([&](const Tensor& t) {
      return std::pair(t * captured, [&, t](const Tensor& dy, std::span<const Variable>) {
        return std::pair(4 * captured * dy, 5 * t * dy);
      });
    });
    GradientTape tape;
    c.check("g", tape.gradient(f(x), x));
  });
  check_case("custom-variables-kwarg-missing", [&](Case& c) {
    const Variable w = c.variable(tensor(3.0), {.name = "w"});
    auto f = custom_gradient(
        [&](const Tensor& x) { return std::pair(x * w, [](const Tensor& dy) { return dy; }); });
    c.check_error<ArgumentError>(
        [&] { f(tensor(1.0)); },
        "custom_gradient: the function uses variable \"w\", but its gradient function takes no variables; "
        "give it a last parameter of type std::span<const Variable>");
  });
  check_case("custom-variable-grads-count", [&](Case& c) {
    const Variable v = c.variable(tensor(3.0)), w = c.variable(tensor(3.0));
    auto f = custom_gradient([&](const Tensor& x) {
      return std::pair(x * v * w,
                       [](const Tensor& dy, std::span<const Variable>) { return std::pair(dy, dy); });
    });
    GradientTape tape;
    const Tensor y = f(tensor(1.0));
    c.check_error([&] { tape.gradient(y, v); },
                  "custom_gradient: the gradient function returned 1 gradients for 2 variables");
  });
  check_case("pass-through-assign", [&](Case& c) {
    const Variable x = c.variable(tensor(1.0)), z = c.variable(tensor(3.0));
    const auto assigned = [&](const Tensor& value) {
      x.assign(value);
      return x.value();
    };
    GradientTape a, b, d;
    c.check("a", a.gradient(assigned(z * z), z));
    c.check("b", b.gradient(grad_pass_through(assigned)(z * z), z));
    c.check("c", d.gradient(grad_pass_through([&](const Tensor& v) { return x * v; })(z), x));
  });
  check_case("custom-structured", [&](Case& c) {
    auto f = custom_gradient([](std::span<const Tensor> x) {
      const auto value =
          std::tuple(x[0] * x[1], std::vector<Tensor>{}, std::pair(x[1] * x[1], std::array{x[0]}));
      return std::pair(value, [x0 = x[0], x1 = x[1]](std::span<const Tensor> dy) {
        CHECK(dy.size() == 3);
        return std::vector<Gradient>{dy[0] * x1 + dy[2], dy[0] * x0 + 2 * dy[1] * x1, Gradient()};
      });
    });
    const Tensor x = c.input(tensor(2.0)), y = c.input(tensor(5.0)), unused = c.input(tensor(7.0));
    GradientTape tape;
    tape.watch(x), tape.watch(y), tape.watch(unused);
    const auto [xy, none, rest] = f(std::vector{x, y}, unused);
    const auto [dx, dy, du] = tape.gradient(xy + 10 * rest.first + 100 * rest.second[0], x, y, unused);
    c.holds("property",
            none.empty() && dx.dense().item() == 105 && dy.dense().item() == 102 && !du.defined());
  });
}

TEST_CASE("cases: recomputation", "[cases][custom]") {
  check_case("tape-recompute-loop", [&](Case& c) {
    const Variable x = c.variable(tensor(1.0));
    auto f = recompute_grad([](const Tensor& z) {
      Tensor y = z;
      for (int i = 0; i < 10; ++i)
        y = y + 1;
      return y;
    });
    GradientTape tape;
    const Tensor y = f(x);
    c.check("y", y);
    CHECK(tape.gradient(y, x).dense().item() == 1);
  });
  {
    const Tensor x = tensor(2.0);
    GradientTape tape;
    tape.watch(x);
    CHECK(tape.gradient(recompute_grad([&] { return x * x; })(), x).dense().item() == 4);
  }
  check_case("recompute-same-gradients", [&](Case& c) {
    const Tensor inputs = c.input(ones({10, 10}));
    const Variable v = c.variable(ones({10}));
    const auto each = [](const Gradient& g, double value) {
      return g.dense().to_vector() == std::vector(static_cast<std::size_t>(g.dense().size()), value);
    };
    GradientTape tape({.persistent = true});
    tape.watch(inputs);
    const Tensor y = recompute_grad([&](const Tensor& x) { return x * v; })(inputs);
    const auto [a, b] = recompute_grad([&](const Tensor& x) { return std::pair(x * v, 2 * x * v); })(inputs);
    c.holds("f_dinputs", each(tape.gradient(y, inputs), 1));
    c.holds("f_dv", each(tape.gradient(y, v), 10));
    const std::vector<Gradient> g = tape.gradient(Targets{a, b}, Sources{inputs, v});
    c.holds("f2_dinputs", each(g[0], 3));
    c.holds("f2_dv", each(g[1], 30));
  });
  check_case("recompute-runs-forward-again", [&](Case& c) {
    const Variable v = c.variable(tensor(1.0));
    int calls = 0;
    auto f = recompute_grad([&](const Tensor& x) {
      ++calls;
      return x * v;
    });
    GradientTape tape;
    Tensor r = c.input(tensor(1.0));
    for (int i = 0; i < 4; ++i)
      r = f(r);
    c.check("calls_forward", calls);
    c.check("g", tape.gradient(r, v));
    c.check("calls_after_gradient", calls);
  });
}

TEST_CASE("a recorded operation is differentiated by its own function, to any order", "[custom]") {
  const Tensor x = tensor(2.0, DType::f64);
  GradientTape outer;
  outer.watch(x);
  Tensor first;
  {
    GradientTape inner;
    inner.watch(x);
    first = inner.gradient(cube(x), x).dense();
  }
  CHECK(first.item() == 12);
  CHECK(outer.gradient(first, x).dense().item() == 12);
  const ForwardAccumulator forward(x, tensor(1.0, DType::f64));
  CHECK(forward.jvp(cube(x)).item() == 12);
}

TEST_CASE("a recorded operation may have several outputs, of which unused ones get zeros", "[custom]") {
  const Tensor x = tensor(3.0);
  GradientTape tape;
  tape.watch(x);
  const Tensor a = tensor(1.0), b = tensor(5.0);
  record_operation("two", std::array{a, b}, std::array{x},
                   [](std::span<const Tensor> dy) { return std::vector<Gradient>{dy[0] + 10.0 * dy[1]}; });
  CHECK(tape.gradient(2.0 * b, x).dense().item() == 20);
}

TEST_CASE("an operation recorded on a known tensor replaces its history", "[custom]") {
  const Tensor x = tensor(3.0);
  GradientTape tape;
  tape.watch(x);
  const Tensor y = x * 2.0;
  record_operation("seven", std::array{y}, std::array{x},
                   [](std::span<const Tensor> dy) { return std::vector<Gradient>{7.0 * dy[0]}; });
  CHECK(tape.gradient(y, x).dense().item() == 7);
}

TEST_CASE("a backward function that returns too few gradients is named", "[custom]") {
  const Tensor x = tensor(3.0), w = tensor(1.0);
  GradientTape tape;
  tape.watch(x);
  const Tensor y = tensor(1.0);
  record_operation("lazy", std::array{y}, std::array{x, w},
                   [](std::span<const Tensor> dy) { return std::vector<Gradient>{dy[0]}; });
  CHECK_THROWS_WITH(tape.gradient(y, x), "lazy: the backward function returned 1 gradients for 2 inputs");
}

TEST_CASE("custom gradients of higher order are derivatives of the gradient function", "[custom]") {
  // The value is exp; the gradient function returns 3 x² regardless.
  auto f = custom_gradient(
      [](const Tensor& x) { return std::pair(exp(x), [x](const Tensor& dy) { return 3 * x * x * dy; }); });
  const auto first = [&](const Tensor& x) { return derivative(f, x); };
  CHECK(first(f64(2)).item() == 12);
  CHECK(derivative(first, f64(2)).item() == 12);
  CHECK(derivative([&](const Tensor& x) { return derivative(first, x); }, f64(2)).item() == 6);

  // The gradient function may use intermediate results of f, and is differentiated through them.
  auto log1pexp = custom_gradient([](const Tensor& x) {
    const Tensor e = exp(x);
    return std::pair(log1p(e), [e](const Tensor& dy) { return dy * (1 - 1 / (1 + e)); });
  });
  CHECK(check_gradients([&](const std::vector<Tensor>& x) { return log1pexp(x[0]); },
                        {tensor({-1.0, 0.5, 3.0}, DType::f64)}));
}

TEST_CASE("custom gradients nest, and override each other's derivatives", "[custom]") {
  // The derivative of the derivative of x² is set to 7.
  auto f = custom_gradient([](const Tensor& x) {
    return std::pair(x * x, [x](const Tensor& dy) {
      auto g = custom_gradient(
          [](const Tensor& t) { return std::pair(2 * t, [](const Tensor& dz) { return 7 * dz; }); });
      return dy * g(x);
    });
  });
  const auto first = [&](const Tensor& x) { return derivative(f, x); };
  CHECK(first(f64(3)).item() == 6);
  CHECK(derivative(first, f64(3)).item() == 7);
}

TEST_CASE("forward mode transposes a custom gradient", "[custom]") {
  const Tensor x = f64(3), y = f64(5);
  auto f = custom_gradient(mul_with_rule);
  {
    const ForwardAccumulator forward({x, y}, {f64(10), f64(100)});
    CHECK(forward.jvp(f(x, y)).item() == 350);
  }
  CHECK(check_gradients([&](const std::vector<Tensor>& in) { return f(in[0], in[1]); }, {x, y}));
}

TEST_CASE("the output of a function with a custom gradient is a new tensor", "[custom]") {
  auto twice = custom_gradient([](const Tensor& x) {
    return std::pair(std::pair(x, x), [](const Tensor& a, const Tensor& b) { return 10 * a + b; });
  });
  const Tensor x = tensor(1.0);
  GradientTape tape;
  tape.watch(x);
  const auto [a, b] = twice(x);
  CHECK(a.id() != x.id());
  CHECK(a.id() != b.id());
  CHECK(tape.gradient(2 * a + 3 * b + x, x).dense().item() == 24);
}

TEST_CASE("errors of custom gradients name what is missing, and leave the tape unchanged",
          "[custom][errors]") {
  const Tensor x = tensor(3.0), y = tensor(4.0);
  GradientTape tape({.persistent = true});
  tape.watch(x), tape.watch(y);
  auto few = custom_gradient(
      [](const Tensor& a, const Tensor& b) { return std::pair(a * b, [](const Tensor& dy) { return dy; }); });
  auto throws = custom_gradient([](const Tensor& a) {
    const Tensor held = a * a;
    if (held.defined()) throw ArgumentError("inside");
    return std::pair(held, [](const Tensor& dy) { return dy; });
  });
  const Tensor z = few(x, y);
  const std::size_t size = tape.size();
  CHECK(message_of([&] { tape.gradient(z, x); }) ==
        "custom_gradient: the gradient function returned 1 gradients for 2 inputs");
  CHECK(message_of([&] { few(x); }) == "custom_gradient: the function does not take 1 tensors");
  CHECK(message_of([&] { throws(x); }) == "inside");
  CHECK(message_of([&] {
          grad_pass_through([](const Tensor& a, const Tensor& b) { return a + b; })(x, y);
        }) == "grad_pass_through: the function returns 1 tensors, not 2");
  CHECK(message_of([&] { grad_pass_through([](const Tensor&) { return ones({2}); })(x); }) ==
        "grad_pass_through: output 0 is f32[2], argument 0 is f32[]");
  CHECK_THROWS_AS(grad_pass_through([](const Tensor& a) { return astype(a, DType::f64); })(x), DTypeError);
  CHECK(tape.size() == size);
}

TEST_CASE("prevent_gradient gives its reason, in both modes", "[custom][errors]") {
  const Tensor x = tensor(3.0);
  GradientTape tape;
  tape.watch(x);
  const Tensor y = prevent_gradient(x, "the rounding has none");
  CHECK(y.item() == 3);
  CHECK(message_of([&] { tape.gradient(y * 2, x); }) == "prevent_gradient: the rounding has none");
  const ForwardAccumulator forward(x, x);
  CHECK_THROWS_WITH(prevent_gradient(x, "no reason"), "prevent_gradient: no reason");
}

TEST_CASE("recompute_grad has the derivatives of its function, to second order and in both modes",
          "[custom]") {
  const Tensor captured = tensor({0.5, -0.25}, DType::f64), x = tensor({0.3, 0.7}, DType::f64),
               y = tensor({-0.4, 1.1}, DType::f64);
  const auto f = [&](const Tensor& c) {
    return [c](const Tensor& a, const Tensor& b) { return tanh(a * c) * exp(b) + a * a; };
  };
  CHECK(check_gradients([&](const std::vector<Tensor>& in) { return recompute_grad(f(in[2]))(in[0], in[1]); },
                        {x, y, captured}));
  CHECK(check_gradients([&](const std::vector<Tensor>& in) { return recompute_grad(f(in[1]))(in[0], in[0]); },
                        {x, captured}));   // the same argument twice
}

TEST_CASE("recompute_grad nests, and accepts integers, empty tensors and results that are its arguments",
          "[custom]") {
  const Tensor x = f64(0.5), n = tensor(3), empty = zeros({0, 2}, DType::f64);
  auto inner = recompute_grad([](const Tensor& t) { return exp(t * t); });
  auto outer = recompute_grad([&](const Tensor& t, const Tensor& k, const Tensor& e) {
    return std::tuple(inner(t) * inner(t) + sum(e), t, k * 2, e);
  });
  GradientTape tape;
  tape.watch(x), tape.watch(empty);
  const auto [y, same, integer, none] = outer(x, n, empty);
  CHECK(integer.item<int>() == 6);
  const auto [dx, de] = tape.gradient(y + 10 * same, x, empty);
  CHECK(dx.dense().item() == Approx(2 * std::exp(0.5) + 10));
  CHECK(de.dense().shape() == Shape{0, 2});
}

TEST_CASE("all rows of a Jacobian go through recompute_grad at once", "[custom]") {
  const Tensor x = tensor({1.0, 2.0, 3.0}), m = tensor({{1.0, 2.0, 3.0}, {4.0, 5.0, 6.0}}),
               unused = tensor(1.0);
  int calls = 0;
  auto f = recompute_grad([&](const Tensor& t, const Tensor&) {
    ++calls;
    return std::pair(sum(m * t * t, 1), tensor(2));
  });
  for (const bool vectorize : {true, false}) {
    GradientTape tape;
    tape.watch(x), tape.watch(unused);
    calls = 0;
    const std::vector<Gradient> j =
        tape.jacobian(f(x, unused).first, Sources{x, unused}, {.vectorize = vectorize});
    CHECK(j[0].to_vector() == std::vector{2.0, 8.0, 18.0, 8.0, 20.0, 36.0});
    CHECK(j[1].to_vector() == std::vector{0.0, 0.0});
    CHECK(calls == (vectorize ? 2 : 3));
  }
  const ForwardAccumulator forward(x, eye(3), {.stacked = true});
  CHECK(forward.jvp(f(x, unused).first).to_vector() == std::vector{2.0, 8.0, 8.0, 20.0, 18.0, 36.0});
}

TEST_CASE("recompute_grad does not compute with variables that have changed", "[custom][errors]") {
  const Variable v(tensor(2.0), {.name = "v"});
  const Tensor x = tensor(3.0);
  {
    GradientTape tape;
    tape.watch(x);
    const Tensor y = recompute_grad([&](const Tensor& t) { return t * v; })(x);
    v.assign(tensor(5.0));
    CHECK(message_of([&] { tape.gradient(y, x); }) ==
          "recompute_grad: variable \"v\" has been updated since the forward pass; take the gradient before "
          "the update");
  }
  GradientTape tape;
  tape.watch(x);
  CHECK(message_of([&] {
          recompute_grad([&](const Tensor& t) {
            const Tensor y = t * v;
            v.assign_add(tensor(1.0));
            return y;
          })(x);
        }) == "recompute_grad: the function updates variable \"v\", which it reads");
}

TEST_CASE("ops that lead to no source are not differentiated inside recompute_grad", "[custom]") {
  const Tensor x = f64(3), k = f64(2);
  const Recording tape;
  const Tensor y =
      recompute_grad([&](const Tensor& t) { return t * t * prevent_gradient(k, "not asked for"); })(x);
  const Gradient g = gradients(y, x)[0];
  CHECK(g.dense().item() == 12);
  CHECK(gradients(g.dense(), x)[0].dense().item() == 4);
  CHECK_THROWS_AS(gradients(y, k), GradientError);
}

TEST_CASE("a Recording keeps no intermediate tensors of recompute_grad", "[custom][memory]") {
  const Tensor x = ones({64, 64});
  const Recording tape;
  const std::int64_t before = live_bytes();
  const Tensor y = recompute_grad([](const Tensor& t) { return tanh(exp(t)); })(x);
  CHECK(live_bytes() == before + y.nbytes());
}

TEST_CASE("a tape does not treat a constant as an input of recompute_grad", "[custom]") {
  const Tensor x = f64(3), k = f64(2);
  GradientTape tape;
  tape.watch(x);
  const Tensor y = recompute_grad([&](const Tensor& t) { return t * k; })(x);
  CHECK_THAT(summary(tape), Catch::Contains("recompute_grad  watched f64[]  f64[]"));
}

TEST_CASE("recompute_grad may capture tensors of other threads", "[custom][threads]") {
  const Tensor x = f64(3);
  Tensor k;
  std::thread([&] { k = f64(2); }).join();
  const Recording tape;
  const Tensor y = recompute_grad([&](const Tensor& t) { return t * k; })(x);
  CHECK(gradients(y, k)[0].dense().item() == 3);
}

TEST_CASE("recompute_grad keeps only the inputs of its parts", "[custom][memory]") {
  constexpr std::int64_t kLayers = 100, kPart = 10;
  const Tensor x = full({64, 64}, 0.01);
  const std::int64_t one = x.nbytes();
  std::int64_t base = 0, most = 0;
  const auto look = [&] { most = std::max(most, live_bytes() - base); };
  auto seen = custom_gradient([&](const Tensor& t) {
    look();
    return std::pair(t, [&](const Tensor& dy) { return look(), dy; });
  });
  const auto part = [&](const Tensor& t) {
    Tensor y = t;
    for (std::int64_t i = 0; i < kPart; ++i)
      y = seen(tanh(y));   // for each layer, tapes keep the output
    return y;
  };
  const auto peak = [&](const auto& f) {
    base = live_bytes(), most = 0;
    GradientTape tape;
    tape.watch(x);
    Tensor y = x;
    for (std::int64_t i = 0; i < kLayers / kPart; ++i)
      y = f(y);
    const Tensor loss = sum(y);
    y = {};
    tape.gradient(loss, x);
    CHECK(live_bytes() == base);
    return static_cast<double>(most) / static_cast<double>(one);
  };
  // Without recomputation: the outputs, and a few gradients. With it: the input of each of 10 parts, and what
  // the layers of one part keep.
  const double all = peak(part), parts = peak(recompute_grad(part));
  CAPTURE(all, parts);
  CHECK(all >= kLayers);
  CHECK(all <= kLayers + 3);
  CHECK(parts >= kPart);
  CHECK(parts <= kLayers / kPart + kPart + 3);
}

TEST_CASE("an operation with only a forward function is seen only by accumulators", "[custom]") {
  const Tensor x = f64(2);
  Tensor y;
  {
    const StopRecording pause;
    y = x * 5;
  }
  GradientTape tape;
  tape.watch(x);
  const ForwardAccumulator forward(x, f64(1));
  record_operation("forward_only", std::array{y}, std::array{x}, {},
                   [](std::span<const Tensor> dx) { return std::vector<Tensor>{5 * dx[0]}; });
  CHECK(forward.jvp(y).item() == 5);
  CHECK_FALSE(tape.gradient(y, x).defined());
  CHECK_THROWS_WITH(record_operation("neither", std::array{y}, std::array{x}, {}),
                    "record_operation: \"neither\" has neither a backward nor a forward function");
}

TEST_CASE("an operation whose forward function returns nothing is seen only by tapes", "[custom]") {
  const Tensor x = f64(2), y = f64(10);
  GradientTape tape;
  tape.watch(x);
  const ForwardAccumulator forward(x, f64(1));
  record_operation(
      "backward_only", std::array{y}, std::array{x},
      [](std::span<const Tensor> dy) { return std::vector<Gradient>{5 * dy[0]}; },
      [](std::span<const Tensor>) { return std::vector<Tensor>(1); });
  CHECK_FALSE(forward.jvp(y).defined());
  CHECK(tape.gradient(y, x).dense().item() == 5);
}

TEST_CASE("outputs and inputs of an operation may be in braces", "[custom]") {
  const Tensor x = f64(2), w = f64(3);
  GradientTape tape;
  tape.watch(x);
  tape.watch(w);
  const Tensor y = f64(6);
  record_operation("mine", {y}, {x, w}, [=](std::span<const Tensor> dy) {
    return std::vector<Gradient>{dy[0] * w, dy[0] * x};
  });
  const std::vector<Gradient> d = tape.gradient(y, {x, w});
  CHECK(d[0].dense().item() == 3);
  CHECK(d[1].dense().item() == 2);
}

TEST_CASE("an operation without outputs is not recorded", "[custom]") {
  const Tensor x = f64(2);
  GradientTape tape;
  tape.watch(x);
  record_operation("nothing", {}, std::array{x},
                   [](std::span<const Tensor>) { return std::vector<Gradient>(1); });
  CHECK(tape.size() == 0);
}

TEST_CASE("slices from a backward function are checked before they are used", "[custom][errors]") {
  const Tensor x = ones({4, 2}, DType::f64);
  const auto message = [&](const IndexedSlices& slices) {
    GradientTape tape;
    tape.watch(x);
    const Tensor y = f64(1);
    record_operation("mine", std::array{y}, std::array{x},
                     [&](std::span<const Tensor>) { return std::vector<Gradient>{slices}; });
    return message_of([&] { (void)tape.gradient(y, x); });
  };
  const Tensor row = ones({1, 2}, DType::f64), wide = ones({1, 5}, DType::f64);
  CHECK(message({row, tensor({3}), {}}) == "no error");
  CHECK(message({wide, tensor({3}), {}}) ==
        "mine: the parts of the slices do not fit together: values is f64[1,5], indices is i32[1], "
        "dense_shape is [4,2]");
  CHECK(message({row, tensor({30}), {}})
            .starts_with("mine: index 30 at position 0 of the slices is out of range"));
  CHECK_THROWS_AS(aggregate({IndexedSlices{wide, tensor({0}), Shape{4, 2}},
                             IndexedSlices{row, tensor({0}), Shape{4, 2}}}),
                  ShapeError);
}

TEST_CASE("a variable that is an argument is not a capture of the function", "[custom]") {
  const Variable w(f64(3)), u(f64(2));
  const auto square = custom_gradient([&](const Tensor& x) {
    const Tensor again = w;   // the same variable, read in the function
    return std::pair(x * again, [again](const Tensor& dy) { return 2 * dy * again; });
  });
  GradientTape tape;
  CHECK(tape.gradient(square(w), w).dense().item() == 6);

  std::size_t told = 9;
  const auto product = custom_gradient([&](const Tensor& x) {
    const Tensor other = u;
    return std::pair(x * other, [&, other, x](const Tensor& dy, std::span<const Variable> variables) {
      told = variables.size();
      return std::pair(dy * other, std::vector<Tensor>{dy * x});
    });
  });
  GradientTape second;
  const std::vector<Gradient> g = second.gradient(product(w), {w, u});
  CHECK(told == 1);
  CHECK(g[0].dense().item() == 2);
  CHECK(g[1].dense().item() == 3);
}

TEST_CASE("an operation may have many outputs that an earlier tape has tracked", "[custom]") {
  const Tensor x = f64(2);
  std::vector<Tensor> y;
  {
    GradientTape earlier, another;
    earlier.watch(x);
    another.watch(x);
    for (int i = 0; i < 60; ++i)
      y.push_back(x * i);
  }
  GradientTape tape({.persistent = true});
  tape.watch(x);
  record_operation("many", y, std::array{x}, [](std::span<const Tensor> dy) {
    Tensor sum = f64(0);
    for (std::size_t i = 0; i < dy.size(); ++i)
      sum = sum + dy[i] * static_cast<double>(i);
    return std::vector<Gradient>{sum};
  });
  tape.stop();
  for (const std::size_t i : {0UL, 1UL, 31UL, 59UL})
    CHECK(tape.gradient(y[i], x).dense().item() == static_cast<double>(i));
  CHECK(tape.gradient(y, {x})[0].dense().item() == 59 * 60 / 2);
}

}   // namespace custom_gradient_test
