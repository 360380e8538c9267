// The cases of test/data/cases.json on tape and engine. If a case uses a functional form, the same derivative
// is computed with tapes. docs/inside/testing/cases.md says which cases run.
#include <algorithm>

#include <catch2/catch.hpp>

#include "case.h"
#include "ops/odd_ops.h"

namespace cases_test {

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

/// d/dx of f at x, by a tape of its own, so that calls nest.
template <class F> Tensor derivative(const F& f, const Tensor& x) {
  GradientTape tape;
  tape.watch(x);
  return tape.gradient(f(x), x).dense();
}

std::vector<Gradient> gradients(GradientTape& tape, const Targets& targets, const Sources& sources,
                                const GradientOptions& options = {}) {
  return tape.gradient(targets, sources, options);
}

Tensor cube(const Tensor& x) { return x * x * x; }

}   // namespace

TEST_CASE("cases: targets and sources", "[cases]") {
  check_case("tape-two-targets", [&](Case& c) {
    GradientTape tape;
    const Tensor x = c.input("x"), y = c.input("y");
    tape.watch(x), tape.watch(y);
    const std::vector<Gradient> g = gradients(tape, {2 * x, 3 * y}, {x, y});
    c.check("dx", g[0]);
    c.check("dy", g[1]);
  });
  check_case("tape-noop-target-is-source", [&](Case& c) {
    GradientTape tape;
    const Tensor x = c.input("x"), y = x;
    tape.watch(x);
    c.check("g", tape.gradient(y, x));
  });
  check_case("tape-identity-grad", [&](Case& c) {
    GradientTape tape;
    const Tensor x = c.input("x");
    tape.watch(x);
    c.check("g", tape.gradient(identity(x), x));
  });
  check_case("tape-same-target-twice", [&](Case& c) {
    GradientTape tape;
    const Tensor x = c.input("x");
    tape.watch(x);
    c.check("g", gradients(tape, {x, x}, x)[0]);
  });
  check_case("tape-noop-2x2", [&](Case& c) {
    GradientTape tape({.persistent = true});
    const Tensor a = c.input("a");
    tape.watch(a);
    c.check("g", gradients(tape, a, a));
  });
  check_case("tape-repeated-source", [&](Case& c) {
    GradientTape tape;
    const Tensor x = c.input("x");
    tape.watch(x);
    c.check("g", tape.gradient(2 * x, x, x));
  });
  check_case("tape-repeated-source-persistent", [&](Case& c) {
    GradientTape tape({.persistent = true});
    const Tensor x = c.input("x"), y = c.input("y");
    tape.watch(x), tape.watch(y);
    const Tensor z = x * x + x * y;
    c.check("g1", tape.gradient(z, x, x));
    c.check("g2", tape.gradient(z, y, x));
  });
  check_case("tape-noop-ops-make-new-tensors", [&](Case& c) {
    const Tensor x = c.input("x"), x1 = identity(x), x2 = x + 0, x3 = x - 0, x4 = x * 1;
    GradientTape tape;
    for (const Tensor& t : {x, x1, x2, x3, x4})
      tape.watch(t);
    const Tensor loss = 2 * x + 3 * x1 + 3 * x2 + 3 * x3 + 3 * x4;
    c.check("g", tape.gradient(loss, x, x1, x2, x3, x4));
  });
  check_case("tape-no-scalar-cache", [&](Case& c) {
    const Tensor x1 = c.input(tensor(3.0)), x2 = c.input(tensor(3.0));
    GradientTape tape;
    tape.watch(x1), tape.watch(x2);
    c.check("g", gradients(tape, x1 + x2, x1));
  });
  check_case("tape-stack-duplicate", [&](Case& c) {
    const Variable v = c.variable(c.input("v"));
    GradientTape tape;
    const Tensor a = v + 1, b = concat({expand_dims(a, 0), expand_dims(a, 0)}, 0);
    c.check("g", tape.gradient(mean(b), v));
  });
  check_case("tape-multi-output-function", [&](Case& c) {
    GradientTape tape;
    const Tensor x = c.input("x");
    tape.watch(x);
    c.check("g", gradients(tape, {x + 2, x * x}, x)[0]);
  });
  check_case("tape-varargs",
             [&](Case& c) { c.check("g", derivative([](const Tensor& x) { return x * x; }, c.input("x"))); });
  check_case("tape-val-and-grad-params", [&](Case& c) {
    GradientTape tape;
    const Tensor a = c.input("a"), b = c.input("b");
    tape.watch(b);
    const Tensor value = a * b;
    c.check("val", value);
    c.check("grads", gradients(tape, value, b));
  });
  check_case("rec-matmul-by-name", [&](Case& c) {
    GradientTape tape;
    const Tensor a = c.input("a");
    tape.watch(a);
    c.check("da", tape.gradient(sum(matmul(a, c.input("b"))), a));
  });
}

TEST_CASE("cases: output gradients", "[cases]") {
  check_case("tape-dy", [&](Case& c) {
    GradientTape tape;
    const Tensor x = c.input("x");
    tape.watch(x);
    c.check("g", gradients(tape, identity(x), x, {.output_gradients = {c.input("dy")}}));
  });
  check_case("tape-make-vjp", [&](Case& c) {
    GradientTape tape;
    const Tensor x = c.input("x");
    tape.watch(x);
    const Tensor y = x * x;
    c.check("result", y);
    c.check("vjp", gradients(tape, y, x, {.output_gradients = {c.input("dy")}}));
  });
  check_case("ig-gradient-shape-mismatch-output-gradients", [&](Case& c) {
    GradientTape tape;
    const Tensor x = c.input(tensor(1.0));
    tape.watch(x);
    const Tensor y = 2 * x, z = 3 * x;
    c.check_error(
        [&] {
          gradients(tape, {y, z}, x, {.output_gradients = {ones_like(y)}});
        },
        "gradient: 1 output gradients for 2 targets");
  });
}

TEST_CASE("cases: cut and unconnected sources", "[cases]") {
  check_case("tape-stop-gradient-hides-downstream", [&](Case& c) {
    seen = {};
    GradientTape tape;
    const Tensor x = c.input("x");
    tape.watch(x);
    c.check("g", tape.gradient(output(kThrowingRule, stop_gradient(x)), x));
    c.check("custom_backward_called", seen.runs > 0);
  });
  check_case("tape-stop-gradient-argmax", [&](Case& c) {
    GradientTape tape;
    const Tensor x = c.input("x");
    tape.watch(x);
    c.check("g", gradients(tape, stop_gradient(argmax(x)), x));
  });
  check_case("tape-stop-start-recording", [&](Case& c) {
    GradientTape tape({.persistent = true});
    const Variable v = c.variable(c.input("v"));
    const Tensor x2 = v * 2;
    Tensor y;
    {
      const StopRecording pause(tape);
      y = x2 * x2;
    }
    const Tensor z = x2 * x2;
    c.check("g1", tape.gradient(y, x2));
    c.check("g2", tape.gradient(z, x2));
  });
  check_case("tape-unconnected-zero", [&](Case& c) {
    GradientTape tape;
    const Tensor x = c.input(ones({2, 2})), y = c.input("y");
    tape.watch(x), tape.watch(y);
    c.check("g", gradients(tape, 2 * y, x, {.unconnected = UnconnectedGradients::zero})[0]);
  });
  check_case("tape-unconnected-zero-variable", [&](Case& c) {
    GradientTape tape;
    const Variable x = c.variable(ones({2, 2})), y = c.variable(c.input("y"));
    tape.watch(x), tape.watch(y);
    c.check("g", gradients(tape, 2 * y, x, {.unconnected = UnconnectedGradients::zero})[0]);
  });
  check_case("tape-identity-n-with-non-float-companion", [&](Case& c) {
    GradientTape tape;
    const Tensor x = c.input("x"), handle = arange(3);
    set_warning_handler([](std::string_view) {});
    tape.watch(x), tape.watch(handle);
    set_warning_handler({});
    const Tensor y = outputs(kIdentities, {x, handle})[0];
    c.check("g", tape.gradient(y, x));
  });
  check_case("tape-exception-safety", [&](Case& c) {
    const Tensor x = c.input("x");
    CHECK_THROWS_AS(
        derivative([](const Tensor&) -> Tensor { throw std::runtime_error("in the function"); }, x),
        std::runtime_error);
    c.check("g", derivative([](const Tensor& t) { return t * t; }, x));
  });
}

TEST_CASE("cases: higher order", "[cases]") {
  check_case("tape-gradgrad-square", [&](Case& c) {
    c.check("g",
            derivative([](const Tensor& x) { return derivative([](const Tensor& t) { return t * t; }, x); },
                       c.input("x")));
  });
  check_case("tape-gradgrad-exp", [&](Case& c) {
    c.check("g",
            derivative([](const Tensor& x) { return derivative([](const Tensor& t) { return exp(t); }, x); },
                       c.input("x")));
  });
  check_case("tape-nested-basic", [&](Case& c) {
    GradientTape outer;
    const Tensor x = c.input("x");
    outer.watch(x);
    const Tensor y = x * x;
    Tensor inner_gradient;
    {
      GradientTape inner;
      inner.watch(y);
      inner_gradient = inner.gradient(2 * y, y).dense();
    }
    c.check("inner", inner_gradient);
    c.check("outer", outer.gradient(y + inner_gradient, x));
  });
  check_case("tape-higher-order-single-persistent", [&](Case& c) {
    GradientTape tape({.persistent = true});
    const Tensor x = c.input("x");
    tape.watch(x);
    const Tensor y = cube(x), dy = tape.gradient(y, x).dense(), d2 = tape.gradient(dy, x).dense();
    tape.stop();
    c.check("y", y);
    c.check("dy", dy);
    c.check("d2", d2);
    c.check("d3", tape.gradient(d2, x));
  });
  check_case("tape-watching-is-tape-local", [&](Case& c) {
    const Variable x1 = c.variable(c.input("x1"), {.trainable = false}),
                   x2 = c.variable(c.input("x2"), {.trainable = false});
    GradientTape outer;
    outer.watch(x1);
    std::vector<Gradient> first;
    {
      GradientTape inner;
      inner.watch(x1), inner.watch(x2);
      first = gradients(inner, {pow(x1, 3), square(x2)}, {x1, x2});
    }
    const std::vector<Gradient> second = gradients(outer, {first[0].dense(), first[1].dense()}, {x1, x2});
    c.check("d2y", second[0]);
    c.check("d2z", second[1]);
  });
}

TEST_CASE("cases: variables", "[cases]") {
  check_case("tape-variable-auto-watch", [&](Case& c) {
    const Variable v = c.variable(c.input("v"));
    GradientTape tape;
    c.check("g", tape.gradient(v * v, v));
  });
  check_case("tape-implicit-grad-order", [&](Case& c) {
    const Variable v0 = c.variable(c.input("v0"), {.name = "v0"}),
                   v1 = c.variable(c.input("v1"), {.name = "v1"});
    GradientTape tape;
    const Tensor y = v1 * v1 + v0 * v0;
    const std::vector<Variable> watched = tape.watched_variables();
    c.check("order", watched);
    c.check("grads", gradients(tape, y, watched));
  });
  check_case("tape-consts-vs-vars", [&](Case& c) {
    const Tensor a = c.input(tensor(2.0)), b = c.input(tensor(2.0));
    GradientTape tape;
    tape.watch(a), tape.watch(b);
    const std::vector<Gradient> of_tensors = gradients(tape, {pow(a, 3), square(b)}, {a, b});
    const Variable v = c.variable(tensor(2.0)), w = c.variable(tensor(2.0));
    GradientTape other;
    const std::vector<Gradient> of_variables = gradients(other, {pow(v, 3), square(w)}, {v, w});
    if (c.compares()) CHECK(json_of(of_tensors) == json_of(of_variables));
    c.check("g", of_variables);
  });
  check_case("tape-watched-vars-after-gradient", [&](Case& c) {
    const Variable v = c.variable(c.input("v"), {.name = "v"});
    GradientTape tape;
    tape.watch(v);
    tape.gradient(v, v);
    c.check("watched", tape.watched_variables());
  });
  check_case("tape-watched-vars-last-tape-only", [&](Case& c) {
    const Variable x = c.variable(tensor(1.0), {.name = "x"}), z = c.variable(tensor(2.0), {.name = "z"});
    {
      GradientTape first;
      first.watch(x);
    }
    GradientTape tape;
    tape.watch(z);
    tape.gradient(z, z);
    c.check("watched", tape.watched_variables());
  });
  check_case("tape-watched-vars-reset", [&](Case& c) {
    const Variable x = c.variable(tensor(1.0), {.name = "x"}), z = c.variable(tensor(2.0), {.name = "z"});
    GradientTape tape;
    tape.watch(x);
    c.check("before_reset", tape.watched_variables());
    tape.reset();
    tape.watch(z);
    c.check("after", tape.watched_variables());
    tape.gradient(z, z);
    c.check("after_gradient", tape.watched_variables());
  });
  const Variable var1(tensor(0.0), {.name = "var1"}), var2(tensor(0.0), {.name = "var2"}),
      fixed(tensor(0.0), {.name = "fixed", .trainable = false});
  check_case("varwatch-basic", [&](Case& c) {
    const VariableWatcher watcher;
    var1.assign_add(tensor(1.0));
    var2.assign_add(tensor(2.0));
    c.check("watched", watcher.watched_variables());
  });
  check_case("varwatch-nontrainable", [&](Case& c) {
    const VariableWatcher watcher;
    var1.assign_add(tensor(1.0));
    fixed.assign_add(tensor(2.0));
    c.check("watched", watcher.watched_variables());
  });
  check_case("varwatch-nested", [&](Case& c) {
    const VariableWatcher outer;
    var1.assign_add(tensor(1.0));
    {
      const VariableWatcher inner;
      var2.assign_add(tensor(2.0));
      c.check("inner", inner.watched_variables());
    }
    c.check("outer", outer.watched_variables());
  });
}

TEST_CASE("cases: ops with two outputs", "[cases]") {
  check_case("tape-xent-second-output-none", [&](Case& c) {
    seen = {};
    GradientTape tape;
    const Tensor labels = c.input("labels"), logits = c.input("logits");
    tape.watch(logits);
    const Tensor loss = mean(outputs(kCrossEntropy, {labels, logits})[0], 0);
    c.check("dlogits", tape.gradient(loss, logits));
    CHECK(seen.nones == 1);
  });
  check_case("tape-second-grad-xent", [&](Case& c) {
    const Tensor labels = c.input(tensor({{0.0}}));
    const auto first = [&](const Tensor& x) { return sum(outputs(kCrossEntropy, {labels, x})[0], 0); };
    const auto second = [&](const Tensor& x) { return sum(derivative(first, x), 0); };
    c.check("g", derivative(second, c.input("x")));
  });
  check_case("ig-missing-output-zeros", [&](Case& c) {
    seen = {};
    GradientTape tape;
    const Tensor x = c.input(tensor(1.0));
    tape.watch(x);
    c.check("gradient", tape.gradient(3 * outputs(kPair, {x})[0], x));
    c.check("zeros_built", seen.zeros);
  });
  check_case("ig-accepts-none-table", [&](Case& c) {
    seen = {};
    GradientTape tape;
    const Tensor x = c.input(tensor(1.0));
    tape.watch(x);
    c.check("gradient_coeff", tape.gradient(outputs(kLoose, {x})[0], x));
    c.check("arg1_is_none", seen.nones == 1 && seen.zeros == 0);
  });
  check_case("ig-multi-output-op-waits", [&](Case& c) {
    seen = {};
    GradientTape tape;
    const Tensor x = c.input(tensor(1.0));
    tape.watch(x);
    const std::vector<Tensor> p = outputs(kPair, {x});
    c.check("gradient", tape.gradient(3 * p[0] + 5 * p[1], x));
    c.check("p_runs", seen.runs);
  });
  check_case("ig-source-is-one-of-two-outputs", [&](Case& c) {
    GradientTape tape;
    const Tensor x = c.input(tensor(1.0));
    tape.watch(x);
    const std::vector<Tensor> p = outputs(kPair, {x});
    c.check("later", tape.gradient(3 * p[0] + 5 * p[1], x, p[0]));
    c.superseded("seed", "V5");
  });
}

TEST_CASE("cases: the engine", "[cases]") {
  check_case("ig-target-feeds-target", [&](Case& c) {
    GradientTape tape;
    const Tensor x = c.input(tensor(1.0));
    tape.watch(x);
    const Tensor y = 3 * x, z = 5 * y;
    c.check("later", gradients(tape, {y, z}, x));
    c.superseded("seed", "V2");
  });
  check_case("ig-gc-of-unreachable-ops", [&](Case& c) {
    bool all_freed = true;
    for (const bool persistent : {false, true}) {
      GradientTape tape({.persistent = persistent});
      const Tensor x = c.input(tensor(1.0));
      tape.watch(x);
      Tensor y = tanh(exp(x));
      all_freed &= tape.size() == 2;
      y = {};
      all_freed &= tape.size() == 0;
    }
    c.holds("property", all_freed);
  });
  // The sums are ops, so an outer tape records them: each add_n, with its number of terms.
  struct Early {
    const char* id;
    int uses;
    std::int64_t bytes;
  };
  for (const Early& early :
       {Early{"ig-early-aggregation-mb64-k5", 5, 64}, Early{"ig-early-aggregation-mb64-k4", 4, 64},
        Early{"ig-early-aggregation-mb1-k10", 10, 1}}) {
    check_case(early.id, [&](Case& c) {
      const Tensor x = c.input(ones({4}));
      GradientTape outer({.persistent = true});
      outer.watch(x);
      std::vector<int> sizes;
      Gradient g;
      {
        GradientTape inner;
        inner.watch(x);
        std::vector<Tensor> scaled;
        for (int k = 1; k <= early.uses; ++k)
          scaled.push_back(square(x) * (0.5 * k));   // not linear, so that the outer tape tracks the terms
        const Tensor y = add_n(scaled);
        g = inner.gradient(y, x, {.min_aggregate_count = 4, .min_aggregate_bytes = early.bytes});
        for (const RecordedOp& op : outer.recorded())
          if (op.name == "add_n") sizes.push_back(op.inputs);
        const auto forward = std::find(sizes.begin(), sizes.end(), early.uses);
        REQUIRE(forward != sizes.end());
        sizes.erase(forward);
      }
      c.check("gradient", mean(g.dense()));
      c.check("aggregate_sizes_seed", sizes);
      c.superseded("aggregate_sizes_later", "V8");
    });
  }
}

TEST_CASE("cases: sparse gradients", "[cases][slices]") {
  check_case("tape-embedding-implicit-grad", [&](Case& c) {
    const Variable table = c.variable(zeros({4, 2}));
    GradientTape tape;
    const Gradient g = tape.gradient(1 - gather(table, c.input("ids", DType::i64)), table);
    c.check("g", g);
    GradientDescent& descent =
        c.keep([&] { return GradientDescent(GradientDescentOptions{c.number("lr")}); });
    descent.apply_gradients({{g, table}});
    c.check("E_after", table.value());
  });
  check_case("tape-indexed-slices-through-add", [&](Case& c) {
    GradientTape tape;
    const Tensor x = c.input("x");
    tape.watch(x);
    c.check("g", tape.gradient(gather(x + 1, tensor({0})), x).dense());
  });
  check_case("agg-three-gathers", [&](Case& c) {
    GradientTape tape;
    const Tensor x = c.input("x");
    tape.watch(x);
    const auto rows = [&](int i, int k) { return gather(x, tensor({i, k})); };
    c.check("dense", tape.gradient(rows(0, 1) * rows(2, 3) * rows(1, 3), x).dense());
  });
}

TEST_CASE("cases: errors", "[cases][errors]") {
  check_case("tape-second-call-nonpersistent", [&](Case& c) {
    GradientTape tape;
    const Tensor x = c.input("x");
    tape.watch(x);
    const Tensor y = x * x, z = y * y;
    c.check("first", gradients(tape, z, x));
    c.check_error([&] { tape.gradient(y, x); },
                  "gradient: this tape was already used; make it persistent to call gradient twice");
  });
  const Tensor x = tensor(1.0);
  // The gradient of an operation on inputs whose backward function is given.
  const auto with_backward = [&](std::vector<Tensor> inputs, Backward backward) {
    return [=] {
      GradientTape tape;
      tape.watch(x);
      const Tensor y = tensor(1.0);
      record_operation("operation", {&y, 1}, inputs, backward);
      tape.gradient(y, x);
    };
  };
  check_case("tape-unconnected-unknown-value", [&](Case& c) {
    GradientTape tape;
    tape.watch(x);
    const Tensor y = c.input(tensor(2.0));
    c.check_error([&] { tape.gradient(y, x, {.unconnected = static_cast<UnconnectedGradients>(2)}); },
                  "gradient: unknown value for unconnected: 2; use UnconnectedGradients::none or zero");
  });
  check_case("grad-wrong-number-of-input-grads", [&](Case& c) {
    c.check_error(
        with_backward({x, x}, [](std::span<const Tensor> dy) { return std::vector<Gradient>{dy[0]}; }),
        "operation: the backward function returned 1 gradients for 2 inputs");
  });
  check_case("custom-grad-empty-return", [&](Case& c) {
    c.check_error(with_backward({x}, [](std::span<const Tensor>) { return std::vector<Gradient>(); }),
                  "operation: the backward function returned 0 gradients for 1 inputs");
  });
  check_case("custom-grad-raises", [&](Case& c) {
    c.check_error(
        with_backward({x},
                      [](std::span<const Tensor>) -> std::vector<Gradient> { throw GradientError("x"); }),
        "x");
  });
  check_case("grad-registry-unknown-op", [&](Case& c) {
    static constexpr Op kNoGradient = {
        .name = "no_gradient",
        .doc = "x.",
        .args = {"x"},
        .infer = like_first,
        .forward = {[](const Call& call, std::span<Tensor> y) { y[0] = identity(call.x[0]); },
                    Outputs::by_kernel},
        .rule = Rule::undefined()};
    GradientTape tape;
    tape.watch(x);
    const Tensor y = output(kNoGradient, x);
    c.check_error([&] { tape.gradient(y, x); }, "no_gradient: this op must not be differentiated");
  });
  check_case("grad-registry-double-register", [&](Case& c) {
    std::set<std::string_view> names;
    std::size_t ops = 0;
    for (const ops::Family& family : ops::families())
      for (const Op* op : family.ops)
        names.insert(op->name), ++ops;
    CHECK(names.size() == ops);
    c.superseded("error", "K12");
  });
  check_case("fwd-duplicate-primal", [&](Case& c) {
    c.check_error(
        [&] {
          const ForwardAccumulator forward({x, x}, {tensor(1.0), tensor(2.0)});
        },
        "forward accumulator: primal 1, f32[], is given several times; add its tangents up");
  });
}

}   // namespace cases_test
