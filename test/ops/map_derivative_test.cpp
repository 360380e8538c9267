// Derivatives of maps beyond a single gradient: of higher orders, of persistent tapes, of several directions
// at once, and of functions that are recorded. The same lambda on Tensors, op by op, is the reference, unless
// a test names another.
#include <catch2/catch.hpp>

#include "closeness.h"
#include "core/sanitizers.h"
#include "ops/sample_inputs.h"
#include "tapedeck/compile.h"
#include "tapedeck/gradcheck.h"
#include "tapedeck/map.h"
#include "tapedeck/tapedeck.h"
#include "tensors_of.h"

namespace map_derivative_test {

using namespace tapedeck;
using samples::f64, samples::uniform;
using Tensors = std::vector<Tensor>;
using ListFunction = std::function<Tensors(const Tensors&)>;

namespace {

// Two results, one of which does not depend on w.
constexpr auto bent = [](auto u, auto v, auto w) {
  return std::pair(u * exp(v) * w + where(u > v, sin(u * w), 0.5 * u), u * square(v));
};
Tensors with_map(const Tensors& x) {
  const auto [a, b] = map(bent, x[0], x[1], x[2]);
  return {a, b};
}
Tensors with_ops(const Tensors& x) {
  const auto [a, b] = bent(x[0], x[1], x[2]);
  const Shape shape = broadcast_shapes(broadcast_shapes(x[0].shape(), x[1].shape()), x[2].shape());
  return {broadcast_to(a, shape), broadcast_to(b, shape)};
}

Tensors weights_for(const Tensors& like, int which) {
  Tensors all;
  for (const Tensor& t : like)
    all.push_back(astype(uniform(t.shape(), 0.5, 1.5, which++), t.dtype()));
  return all;
}
Tensors joined(Tensors a, const Tensors& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// The gradients and the tangents of f as functions of its arguments and of the cotangents or tangents, which
// follow them in the list.
ListFunction gradient_of(const ListFunction& f, std::size_t n) {
  return [f, n](const Tensors& all) {
    const Tensors x(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(n)),
        dy(all.begin() + static_cast<std::ptrdiff_t>(n), all.end());
    GradientTape tape;
    for (const Tensor& t : x)
      tape.watch(t);
    Tensors dx;
    for (Gradient& g :
         tape.gradient(f(x), x, {.output_gradients = dy, .unconnected = UnconnectedGradients::zero}))
      dx.push_back(std::move(g).dense());
    return dx;
  };
}
ListFunction tangent_of(const ListFunction& f, std::size_t n) {
  return [f, n](const Tensors& all) {
    const Tensors x(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(n)),
        dx(all.begin() + static_cast<std::ptrdiff_t>(n), all.end());
    const ForwardAccumulator along(x, dx);
    return test::tensors_of(along.jvp(f(x), UnconnectedGradients::zero));
  };
}

// The derivatives of f up to an order, in every sequence of modes.
void all_derivatives(const ListFunction& f, const Tensors& x, int order, Tensors& out) {
  const Tensors y = f(x);
  out.insert(out.end(), y.begin(), y.end());
  if (order == 0) return;
  all_derivatives(gradient_of(f, x.size()), joined(x, weights_for(y, order)), order - 1, out);
  all_derivatives(tangent_of(f, x.size()), joined(x, weights_for(x, order + 3)), order - 1, out);
}

void check_close(const Tensors& actual, const Tensors& expected, double tolerance) {
  REQUIRE(actual.size() == expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    CAPTURE(i, actual[i], expected[i]);
    REQUIRE(actual[i].spec() == expected[i].spec());
    CHECK(worst(actual[i], expected[i]) <= tolerance);
  }
}

const std::vector<std::vector<Shape>> kShapes = {
    {{4, 3}, {3}, {}}, {{5}, {5}, {5}}, {{}, {}, {}}, {{2, 1}, {7}, {1, 7}}, {{0, 3}, {3}, {0, 1}}};
Tensors inputs_of(const std::vector<Shape>& s, DType dtype = DType::f64) {
  return {astype(uniform(s[0], 0.3, 1.2), dtype), astype(uniform(s[1], -0.5, 0.8, 1), dtype),
          astype(uniform(s[2], 0.5, 1, 2), dtype)};
}

}   // namespace

TEST_CASE("maps: derivatives to the third order, in every sequence of modes", "[map]") {
  for (const std::vector<Shape>& shapes : kShapes) {
    CAPTURE(to_string(shapes[0]), to_string(shapes[1]), to_string(shapes[2]));
    Tensors actual, expected;
    all_derivatives(with_map, inputs_of(shapes), 3, actual);
    all_derivatives(with_ops, inputs_of(shapes), 3, expected);
    check_close(actual, expected, 1e-11);
  }
  Tensors actual, expected;
  all_derivatives(with_map, inputs_of(kShapes[0], DType::f32), 2, actual);
  all_derivatives(with_ops, inputs_of(kShapes[0], DType::f32), 2, expected);
  check_close(actual, expected, 2e-4);
}

TEST_CASE("maps: gradients and tangents agree with differences as functions", "[map]") {
  const auto gradient = [](const Tensors& all) {
    const Tensors dx = gradient_of(with_map, 3)(all);
    return sum(dx[0]) + sum(dx[1] * dx[1]) + sum(sin(dx[2]));
  };
  const auto tangent = [](const Tensors& all) {
    const Tensors dy = tangent_of(with_map, 3)(all);
    return sum(dy[0] * dy[1]) + sum(square(dy[1]));
  };
  const Tensors x = inputs_of(kShapes[0]);
  CHECK(check_gradients(gradient, joined(x, weights_for(with_ops(x), 4))));
  CHECK(check_gradients(tangent, joined(x, weights_for(x, 4))));
}

TEST_CASE("a map whose inputs are one tensor, to second order", "[map]") {
  const auto f = [](const Tensors& x) {
    return Tensors{map([](auto u, auto v) { return u * u * v; }, x[0], x[0])};
  };
  const Tensor x = f64({1, 2, -3});
  const Tensors dx = gradient_of(f, 1)({x, ones_like(x)}),
                ddx = gradient_of(gradient_of(f, 1), 2)({x, ones_like(x), ones_like(x)});
  CHECK(dx[0].to_vector() == std::vector<double>{3, 12, 27});   // of x³
  CHECK(ddx[0].to_vector() == std::vector<double>{6, 12, -18});
  CHECK(ddx[1].to_vector() == std::vector<double>{3, 12, 27});
}

TEST_CASE("a persistent tape records the gradient of a map as one op, with the bits of other tapes",
          "[map]") {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Tensors x = inputs_of(kShapes[0], dtype), dy = weights_for(with_ops(x), 5);
    const auto gradients = [&](bool persistent) {
      GradientTape tape({.persistent = persistent});
      for (const Tensor& t : x)
        tape.watch(t);
      const Tensors y = with_map(x);
      Tensors all;
      for (Gradient& g : tape.gradient(y, x, {.output_gradients = dy}))
        all.push_back(std::move(g).dense());
      if (persistent) {
        REQUIRE(tape.recorded().size() == 2);
        CHECK(tape.recorded()[1].name == "map_vjp");
        CHECK(tape.recorded()[1].inputs == 5);
        const std::vector<Gradient> again = tape.gradient(y, x, {.output_gradients = dy});
        for (std::size_t i = 0; i < 3; ++i)
          CHECK(same_bits(again[i].dense(), all[i]));
        CHECK(worst(tape.gradient(all[0], x[0]).dense(),
                    gradient_of(gradient_of(with_ops, 3), 5)(
                        joined(joined(x, dy), {ones_like(x[0]), zeros_like(x[1]), zeros_like(x[2])}))[0]) <
              (dtype == DType::f32 ? 1e-5 : 1e-13));
      }
      return all;
    };
    const Tensors once = gradients(false), kept = gradients(true);
    for (std::size_t i = 0; i < 3; ++i)
      CHECK(same_bits(once[i], kept[i]));
  }
}

TEST_CASE("only the requested gradients are differentiated further", "[map]") {
  const Tensors x = inputs_of(kShapes[1]);
  GradientTape outer;
  outer.watch(x[0]);
  GradientTape inner;
  inner.watch(x[0]);
  const std::array<Tensor, 2> y = map(bent, x[0], x[1], x[2]);
  const Tensor dx = inner.gradient(y[0], x[0]).dense();
  REQUIRE(outer.size() == 2);
  CHECK(outer.recorded()[1].name == "map_vjp");
  CHECK(outer.recorded()[1].outputs == 1);
}

TEST_CASE("maps: Jacobians by rows and columns, few and many at once", "[map]") {
  const auto both = [](const ListFunction& f) {
    return [f](const Tensor& x) {
      const Tensors y = f({x, slice(x, {1}, {1}), 0.7 * ones({}, DType::f64)});
      return y[0] * y[1];
    };
  };
  for (const std::int64_t n : {2, 3, 9}) {   // rows: as many passes, and products of partials
    const Tensor x = uniform({n}, 0.2, 1);
    for (const JacobianOptions& options :
         {JacobianOptions{}, JacobianOptions{.mode = JacobianMode::forward}}) {
      CHECK(worst(jacobian(both(with_map), x, options), jacobian(both(with_ops), x, options)) < 1e-13);
      const auto row_by_row = [&](const auto& f) {
        return jacobian([&](const Tensor& t) { return jacobian(both(f), t, options); }, x);
      };
      CHECK(worst(row_by_row(with_map), row_by_row(with_ops)) < 1e-12);
    }
    const auto total = [&](const ListFunction& f) {
      return [f, &both](const Tensor& t) { return sum(both(f)(t)); };
    };
    CHECK(worst(hessian(total(with_map), x), hessian(total(with_ops), x)) < 1e-12);
  }
}

TEST_CASE("maps: batch Jacobians, also on tapes that keep recording", "[map]") {
  const auto of_rows = [](const ListFunction& f) {
    return [f](const Tensor& x) {
      const Tensors columns = unstack(x, 1);
      return stack(f({columns[0], columns[1], columns[2]}), 1);
    };
  };
  const Tensor x = uniform({11, 3}, 0.2, 1);
  const Tensor expected = batch_jacobian(of_rows(with_ops), x);
  CHECK(worst(batch_jacobian(of_rows(with_map), x), expected) < 1e-13);
  GradientTape tape({.persistent = true});
  tape.watch(x);
  const Tensor y = of_rows(with_map)(x), j = tape.batch_jacobian(y, x);
  CHECK(worst(j, expected) < 1e-13);
  GradientTape of_ops({.persistent = true});
  of_ops.watch(x);
  const Tensor z = of_rows(with_ops)(x), k = of_ops.batch_jacobian(z, x);
  CHECK(worst(tape.gradient(j, x).dense(), of_ops.gradient(k, x).dense()) < 1e-12);
}

TEST_CASE("maps: products with Hessians in each mode", "[map]") {
  const auto total = [](const ListFunction& f) {
    return [f](std::span<const Tensor> x) {
      const Tensors y = f(Tensors(x.begin(), x.end()));
      return sum(y[0] * y[1]);
    };
  };
  const Tensors x = inputs_of(kShapes[3]), v = weights_for(x, 6);
  for (const JacobianMode mode : {JacobianMode::forward, JacobianMode::reverse})
    check_close(hessian_vector_product(total(with_map), x, v, mode),
                hessian_vector_product(total(with_ops), x, v, mode), 1e-12);
}

TEST_CASE("derivatives of maps replay with the same bits", "[map]") {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const auto all = [](const Tensor& x, const Tensor& factor) {
      const ListFunction f = [&](const Tensors& t) { return with_map({t[0], t[0] * factor, factor}); };
      const Tensor dy = ones_like(x), dz = 2 * dy;
      const Tensors first = gradient_of(f, 1)({x, dy, dz}),
                    second = gradient_of(gradient_of(f, 1), 3)({x, dy, dz, x}),
                    tangent = tangent_of(gradient_of(f, 1), 3)({x, dy, dz, x, dy, dy});
      const Tensor rows = jacobian([&](const Tensor&t) { return f({t})[0]; }, x),
                   columns = jacobian([&](const Tensor&t) { return f({t})[0]; }, x,
                                      JacobianOptions{.mode = JacobianMode::forward});
      return std::vector<Tensor>{first[0], second[0], tangent[0], rows, columns};
    };
    for (const std::int64_t n : {3, 21}) {
      const auto replayed = compile(all);
      for (const double factor : {0.5, 0.25, 2.0}) {
        const Tensor x = astype(uniform({n}, 0.2, 1), dtype), by = tensor(factor, dtype);
        const Tensors expected = all(x, by), actual = replayed(x, by);
        for (std::size_t i = 0; i < expected.size(); ++i) {
          CAPTURE(i, n, factor);
          CHECK(same_bits(actual[i], expected[i]));
        }
      }
    }
  }
}

TEST_CASE("stacked directions and recorded gradients of maps have the same bits on any number of threads",
          "[map][threads]") {
  const Tensors x = {uniform({kSanitized ? 160 : 300, 211}, 0.3, 1.2), uniform({211}, -0.5, 0.8, 1),
                     uniform({}, 0.5, 1, 2)};
  const auto all = [&] {
    const auto of_factors = [&](const Tensor& t) {   // three rows, each of the sum over all elements
      const Tensors y = with_map({x[0] * t[0], x[1] * t[1], x[2] * t[2]});
      return stack(Tensors{sum(y[0]), sum(y[1]), sum(y[0] * y[1])}, 0);
    };
    Tensors results = gradient_of(gradient_of(with_map, 3),
                                  5)(joined(joined(x, weights_for(with_ops(x), 3)), weights_for(x, 4)));
    results.push_back(jacobian(of_factors, f64({1, 0.5, 2})));
    results.push_back(jacobian(of_factors, f64({1, 0.5, 2}), JacobianOptions{.mode = JacobianMode::forward}));
    return results;
  };
  const Tensors one = all();
  set_num_threads(2);
  const Tensors two = all();
  set_num_threads(1);
  for (std::size_t i = 0; i < one.size(); ++i)
    CHECK(same_bits(one[i], two[i]));
}

}   // namespace map_derivative_test
