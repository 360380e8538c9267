// The cases of test/data/cases.json in the area forward.
#include <cmath>

#include <catch2/catch.hpp>

#include "case.h"
#include "tapedeck/debug.h"

namespace forward_cases_test {

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

constexpr UnconnectedGradients kZero = UnconnectedGradients::zero;

template <class F> Tensor reverse(const F& f, const Tensor& x) {
  GradientTape tape;
  tape.watch(x);
  return tape.gradient(f(x), x).dense();
}
/// The derivative of a scalar function, or of an elementwise one at several points.
template <class F> Tensor forward(const F& f, const Tensor& x) {
  const ForwardAccumulator accumulator(x, ones_like(x));
  return accumulator.jvp(f(x));
}
/// df/dx by columns, in one pass. The axes are those of f, then those of x.
template <class F> Tensor jacobian_by_columns(const F& f, const Tensor& x) {
  const std::int64_t n = x.size();
  Shape directions{n};
  for (const std::int64_t d : x.shape())
    directions.push_back(d);
  const ForwardAccumulator accumulator(x, reshape(eye(n, n, x.dtype()), directions), {.stacked = true});
  const Tensor y = f(x), columns = accumulator.jvp(y);
  Shape shape = y.shape();
  for (const std::int64_t d : x.shape())
    shape.push_back(d);
  return reshape(transpose(reshape(columns, {n, -1})), shape);
}
template <class F> Tensor jacobian_by_rows(const F& f, const Tensor& x) {
  GradientTape tape({.persistent = true});
  tape.watch(x);
  const Tensor y = f(x), flat = reshape(y, {-1});
  std::vector<Tensor> rows;
  for (std::int64_t i = 0; i < flat.size(); ++i)
    rows.push_back(tape.gradient(strided_slice(flat, {i}), x).dense());
  Shape shape = y.shape();
  for (const std::int64_t d : x.shape())
    shape.push_back(d);
  return reshape(stack(rows), shape);
}
bool same(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && max(abs(a - b)).item() <= 1e-9 * (1 + max(abs(b)).item());
}

}   // namespace

TEST_CASE("cases: tangents of ops", "[cases][forward]") {
  check_case("fwd-jvp-add-mul", [&](Case& c) {
    const Tensor a = c.input(tensor(1.0)), b = c.input(tensor(3.0)), p = c.input(tensor({4.0})),
                 q = c.input(tensor({5.0}));
    const ForwardAccumulator accumulator({a, b, p, q},
                                         {tensor(1.0), tensor(5.0), tensor({2.0}), tensor({3.0})});
    const Tensor sum = a + b, product = p * q;
    const auto [add, mul] = accumulator.jvp(sum, product);
    c.check("add", add);
    c.check("mul", mul);
  });
  check_case("fwd-sin", [&](Case& c) {
    const Tensor x = c.input(tensor(0.1));
    const ForwardAccumulator accumulator(x, tensor(0.2));
    const Tensor y = sin(x);
    c.check("primal", y);
    c.check("jvp", accumulator.jvp(y));
  });
  check_case("fwd-numeric-higher-order", DType::f64, [&](Case& c) {
    const Tensor x = c.input("x");
    const auto f = [](const Tensor& t) {
      const Tensor p = sin(t) * tan(t);
      return prod(p + sum(p), 1);
    };
    c.check("f", f(x));
    c.check("jac", jacobian_by_columns(f, x));
    const auto gradient = [&](const Tensor& t) {
      return reverse([&](const Tensor& s) { return sum(f(s)); }, t);
    };
    const auto hessian = [&](const Tensor& t) {
      return reverse([&](const Tensor& s) { return sum(gradient(s) * gradient(s)); }, t);
    };
    if (!c.compares()) return;
    CHECK(same(jacobian_by_columns(f, x), jacobian_by_rows(f, x)));
    CHECK(same(jacobian_by_columns(gradient, x), jacobian_by_rows(gradient, x)));
    CHECK(same(jacobian_by_columns(hessian, x), jacobian_by_rows(hessian, x)));
  });
  check_case("fwd-elementwise-swish-m0.5", DType::f64, [&](Case& c) {
    const Tensor x = c.input("x");
    const auto swish = [](const Tensor& t) { return t * sigmoid(t); };
    const auto by_forward = [](const auto& f) { return [f](const Tensor& t) { return forward(f, t); }; };
    const auto by_reverse = [](const auto& f) { return [f](const Tensor& t) { return reverse(f, t); }; };
    c.check("d1", forward(swish, x));
    c.check("d2", forward(by_forward(swish), x));
    c.check("d3", forward(by_forward(by_forward(swish)), x));
    if (!c.compares()) return;
    const double third = forward(by_forward(by_forward(swish)), x).item();
    CHECK(reverse(swish, x).item() == Approx(forward(swish, x).item()));
    CHECK(reverse(by_reverse(swish), x).item() == Approx(forward(by_forward(swish), x).item()));
    CHECK(reverse(by_reverse(by_reverse(swish)), x).item() == Approx(third));
    CHECK(reverse(by_forward(by_reverse(swish)), x).item() == Approx(third));
    CHECK(forward(by_reverse(by_forward(swish)), x).item() == Approx(third));
  });
  check_case("fwd-loop", [&](Case& c) {
    const Tensor y = c.input(tensor(1.0));
    const ForwardAccumulator accumulator(y, tensor(1.0));
    Tensor total = c.input(tensor(0.0));
    for (int i = 0; i < 5; ++i)
      total = total + y * i;
    c.check("jvp", accumulator.jvp(total));
  });
  check_case("fwd-cond", [&](Case& c) {
    const Tensor y = c.input(tensor(1.0));
    const ForwardAccumulator accumulator(y, tensor(1.0));
    const auto f = [&](int k) { return k > 1 ? 3 * y : tensor(0.0); };
    c.check("k5", accumulator.jvp(f(5), kZero));
    c.check("k0", accumulator.jvp(f(0), kZero));
  });
}

TEST_CASE("cases: tangents of variables", "[cases][forward]") {
  check_case("fwd-unwatched-variable", [&](Case& c) {
    const Variable v = c.variable(tensor({{1.0}}));
    const Tensor x = c.input(tensor(1.0));
    const ForwardAccumulator accumulator(x, tensor(2.0));
    c.check("default", accumulator.jvp(v));
    c.check("zero", accumulator.jvp(v, kZero));
  });
  check_case("fwd-variable-watched", [&](Case& c) {
    const Variable v = c.variable(tensor({1.0, 2.0, 3.0}));
    const ForwardAccumulator accumulator(v, tensor({0.1, -0.2, 0.3}));
    c.check("v", accumulator.jvp(v));
    c.check("x", accumulator.jvp(2 * v));
    c.check("x2", accumulator.jvp(v + 0.1));
  });
  check_case("fwd-op-without-trainable-outputs", [&](Case& c) {
    const Variable v = c.variable(tensor(1.0));
    const ForwardAccumulator accumulator(v, tensor(11.0));
    v.assign_sub(tensor(0.5));
    c.check("v", v.value());
    CHECK(accumulator.jvp(v).item() == 11);
  });
  check_case("fwd-docstring-hvp", [&](Case& c) {
    const Variable v = c.variable(tensor({1.0, 2.0}));
    const ForwardAccumulator accumulator(v, tensor({1.0, 0.0}));
    GradientTape tape;
    const Tensor backward = tape.gradient(sum(pow(v, 3.0)), v).dense();
    c.check("backward", backward);
    c.check("hvp", accumulator.jvp(backward));
  });
}

TEST_CASE("cases: accumulators nest", "[cases][forward]") {
  check_case("fwd-nested-accumulators", [&](Case& c) {
    const Tensor x = c.input("x");
    const ForwardAccumulator outer(x, tensor(1.0)), inner(x, tensor(1.0));
    const Tensor out = pow(x, 3.5), first = inner.jvp(out);
    c.check("out", out);
    c.check("inner", first);
    c.check("outer_of_inner", outer.jvp(first));
    c.check("inner_of_outer", inner.jvp(outer.jvp(out)));
  });
  check_case("fwd-over-back-hvp", DType::f64, [&](Case& c) {
    const Tensor x = c.input("x"), v = c.input("v");
    const auto f = [](const Tensor& t) { return prod(square(tanh(t))); };
    const auto gradient = [&](const Tensor& t) { return reverse(f, t); };
    const ForwardAccumulator accumulator(x, v);
    const Tensor g = gradient(x);
    c.check("grad", g);
    c.check("hvp", accumulator.jvp(g));
    c.check("hessian", jacobian_by_rows(gradient, x));
  });
  for (const bool tape_is_made_first : {false, true}) {
    check_case("fwd-forward-over-backward-nesting", [&](Case& c) {
      const Tensor x = c.input(tensor(1.0));
      std::optional<GradientTape> tape;
      if (tape_is_made_first) {
        tape.emplace();
        tape->stop();
      }
      const ForwardAccumulator accumulator(x, tensor(0.1));
      if (tape)
        tape->start();
      else
        tape.emplace();
      tape->watch(x);
      const Tensor d = cos(x), dd = accumulator.jvp(d);
      c.check("should_record", is_followed(dd));
      c.check("gradient", tape->gradient(dd, x));
    });
  }
  check_case("fwd-backward-over-forward", [&](Case& c) {
    const Tensor x = c.input(tensor(1.0));
    GradientTape tape;
    const ForwardAccumulator accumulator(x, tensor(0.1));
    tape.watch(x);
    const Tensor d = cos(x), dd = accumulator.jvp(d);
    c.check("should_record", is_followed(dd));
    c.check("gradient", tape.gradient(dd, x));
  });
  // The inner accumulator sees ops that the outer one does not.
  check_case("fwd-push-pop-state", [&](Case& c) {
    const Tensor x = c.input(tensor(1.0));
    const ForwardAccumulator accumulator(x, tensor(2.0));
    Tensor y;
    {
      const StopRecording pause;
      y = sin(x);
    }
    const Tensor inputs[] = {x}, outputs[] = {y};
    const auto push = [&](std::span<const Tensor> dx) {
      const Tensor copy = identity(x);
      CHECK_FALSE(accumulator.jvp(copy).defined());
      const ForwardAccumulator inner(copy, dx[0]);
      return std::vector<Tensor>{inner.jvp(sin(copy))};
    };
    record_operation(
        "f", outputs, inputs, [](std::span<const Tensor>) { return std::vector<Gradient>(1); }, push);
    c.check("jvp", accumulator.jvp(y));
  });
}

TEST_CASE("cases: which tensors are followed", "[cases][forward]") {
  check_case("fwd-should-record-and-stop", [&](Case& c) {
    const Tensor x = c.input(tensor(1.0));
    const ForwardAccumulator accumulator(x, tensor(2.0));
    GradientTape tape;
    c.check("s1_should", is_followed(x));
    c.check("s1_types", order_followed(x));
    tape.watch(x);
    c.check("s2_types", order_followed(x));
    c.check("s2_should", is_followed(x));
    Tensor d;
    {
      const StopRecording pause;
      c.check("s3_types", order_followed(x));
      c.check("s3_should", is_followed(x));
      d = 2 * x;
    }
    c.check("s4_types", order_followed(x));
    c.check("s4_should_c", is_followed(x));
    c.check("s4_should_d", is_followed(d));
    c.check("jvp_d", accumulator.jvp(d));
    c.check("grad_d", tape.gradient(d, x));
  });
  check_case("fwd-recording-selectively", [&](Case& c) {
    const Tensor x = c.input(tensor(1.0)), two = c.input(tensor(2.0)), three = c.input(tensor(3.0));
    const ForwardAccumulator accumulator(x, tensor(2.0));
    GradientTape tape({.persistent = true});
    tape.watch(x);
    Tensor d, e;
    {
      const StopRecording pause;
      d = x * two;
      e = x * three;
    }
    c.check("before/jvp_d", accumulator.jvp(d));
    c.check("before/jvp_e", accumulator.jvp(e));
    c.check("before/grad_d", tape.gradient(d, x));
    c.check("before/grad_e", tape.gradient(e, x));
    const auto record = [&](const Tensor& y, const Tensor& factor, Backward backward, Pushforward forward) {
      const Tensor outputs[] = {y}, inputs[] = {x, factor};
      record_operation("product", outputs, inputs, std::move(backward), std::move(forward));
    };
    record(
        d, two, [](std::span<const Tensor>) { return std::vector<Gradient>(2); },
        [&](std::span<const Tensor> dx) { return std::vector<Tensor>{two * dx[0]}; });
    record(
        e, three,
        [&](std::span<const Tensor> dy) {
          return std::vector<Gradient>{three * dy[0], x * dy[0]};
        },
        [](std::span<const Tensor>) { return std::vector<Tensor>(1); });
    c.check("after/jvp_d", accumulator.jvp(d));
    c.check("after/jvp_e", accumulator.jvp(e));
    c.check("after/grad_d", tape.gradient(d, x));
    c.check("after/grad_e", tape.gradient(e, x));
  });
  check_case("fwd-record-with-jvp-indices", [&](Case& c) {
    const Tensor x = c.input(tensor(1.0)), d = c.input(tensor(2.0)), dd = c.input(tensor(3.0));
    const ForwardAccumulator accumulator(x, tensor(10.0));
    const Tensor outputs[] = {d}, inputs[] = {x};
    c.check("packed", accumulator.jvp(Sources(x)));
    record_operation(
        "with a tangent", outputs, inputs, [](std::span<const Tensor>) { return std::vector<Gradient>(1); },
        [&](std::span<const Tensor>) { return std::vector<Tensor>{dd}; });
    c.check("jvp_d", accumulator.jvp(d));
  });
}

TEST_CASE("cases: stacked tangents", "[cases][forward]") {
  check_case("fwd-batch-accumulator", [&](Case& c) {
    const Tensor x = c.input(tensor(2.0)), y = c.input(tensor(5.0));
    const ForwardAccumulator accumulator({x, y}, {tensor({1.0, 0.0, 1.0}), tensor({0.0, 1.0, 1.0})},
                                         {.stacked = true});
    c.check("jvp", accumulator.jvp(x * y));
  });
  check_case("fwd-batch-backward-over-forward", [&](Case& c) {
    const Tensor x = c.input(tensor(1.0));
    GradientTape tape({.persistent = true});
    tape.watch(x);
    const ForwardAccumulator accumulator(x, c.input("t"), {.stacked = true});
    const Tensor tangents = accumulator.jvp(cos(x));
    std::vector<Gradient> d;
    for (std::int64_t k = 0; k < tangents.size(); ++k)
      d.push_back(tape.gradient(strided_slice(tangents, {k}), x));
    c.check("d", d);
  });
  check_case("fwd-batch-sin", [&](Case& c) {
    const Tensor x = c.input("x");
    const ForwardAccumulator accumulator(x, c.input("t"), {.stacked = true});
    c.check("jvp", accumulator.jvp(sin(x)));
  });
}

}   // namespace forward_cases_test
