// Branches and loops: values, gradients of any order, both modes, memory, and errors.
#include "tapedeck/control.h"

#include <catch2/catch.hpp>
#include <functional>

#include "case.h"
#include "message_of.h"
#include "tapedeck/compile.h"
#include "tapedeck/gradcheck.h"
#include "tapedeck/gradients.h"
#include "tapedeck/memory.h"

namespace control_test {

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

/// d/dx of f at x, by a tape of its own, so that calls nest.
template <class F> Tensor derivative(const F& f, const Tensor& x) {
  GradientTape tape;
  tape.watch(x);
  return tape.gradient(f(x), x).dense();
}

Tensor yes() { return tensor(1, DType::boolean); }

}   // namespace

TEST_CASE("cases: cond", "[cases][control]") {
  check_case("tape-cond-eager", [&](Case& c) {
    const Tensor x = c.input("x");
    GradientTape tape;
    tape.watch(x);
    const Tensor y = cond(
        x < x, {}, [&] { return x; }, [&] { return x * x; });
    c.check("g", {tape.gradient(y, x)});
  });
  check_case("cond-basic", [&](Case& c) {
    const Tensor x = c.input("x"), y = c.input("y");
    for (const bool p : {true, false}) {
      GradientTape tape;
      tape.watch(x), tape.watch(y);
      const Tensor z = cond(
          p, {x, y}, [](const Tensor& a, const Tensor&) { return 2 * a; },
          [](const Tensor&, const Tensor& b) { return 3 * b; });
      const std::string branch = p ? "true" : "false";
      c.check(branch + "/value", z);
      c.check(branch + "/grads", tape.gradient(z, x, y));
    }
  });
  check_case("cond-multi-output", [&](Case& c) {
    const Tensor x = c.input("x"), y = c.input("y");
    for (const bool p : {true, false}) {
      GradientTape tape;
      tape.watch(x), tape.watch(y);
      const auto [a, b] = cond(
          p, {x, y}, [](const Tensor& u, const Tensor& v) { return std::pair(u * v, v); },
          [](const Tensor& u, const Tensor& v) { return std::pair(u, 3 * v); });
      const std::string branch = p ? "true" : "false";
      c.check(branch + "/value", {a, b});
      c.check(branch + "/grads", tape.gradient(Targets{a, b}, Sources{x, y}));
    }
  });
  struct Nested {
    const char* id;
    bool outer, inner;
  };
  for (const Nested& nested : {Nested{"cond-nested-True-False", true, false},
                               {"cond-nested-False-True", false, true},
                               {"cond-nested-False-False", false, false}}) {
    check_case(nested.id, [&](Case& c) {
      const Tensor x = c.input("x"), y = c.input("y");
      GradientTape tape;
      tape.watch(x), tape.watch(y);
      const Tensor z = cond(
          nested.outer, {x, y}, [](const Tensor&, const Tensor&) { return tensor(2.0); },
          [&](const Tensor& a, const Tensor& b) {
            return cond(
                nested.inner, {a, b}, [](const Tensor& u, const Tensor& v) { return 2 * u * v; },
                [](const Tensor& u, const Tensor&) { return 5 * u; });
          });
      c.check("g", tape.gradient(z, x, y));
    });
  }
  check_case("cond-resource-variable", [&](Case& c) {
    const Variable v = c.variable(c.input("v"));
    GradientTape tape;
    c.check("g", tape.gradient(cond(
                                   true, {}, [&] { return v * v * v; }, [&] { return v.value(); }),
                               v));
  });
  check_case("cond-iterated-derivatives", DType::f64, [&](Case& c) {
    const Tensor x = c.input("x");
    const auto f0 = [](const Tensor& t) {
      return cond(
          true, {t}, [](const Tensor& u) { return cos(identity(u)); },
          [](const Tensor& u) { return sin(identity(u)); });
    };
    const auto f1 = [&](const Tensor& t) { return derivative(f0, t); };
    const auto f2 = [&](const Tensor& t) { return derivative(f1, t); };
    const auto f3 = [&](const Tensor& t) { return derivative(f2, t); };
    const auto f4 = [&](const Tensor& t) { return derivative(f3, t); };
    c.check("seq", {f0(x), f1(x), f2(x), f3(x), f4(x)});
  });
  check_case("case-basic", [&](Case& c) {
    const Tensor x = tensor(1);
    c.check("value",
            switch_case(
                0, {x}, [](const Tensor& t) { return t + 1; }, [](const Tensor& t) { return t + 2; }),
            DType::i32);
  });
  check_case("cond-indexed-slices-and-none-outputs", [&](Case& c) {
    const auto branch = [](double value) {
      return [value] {
        return std::vector<Gradient>{IndexedSlices{tensor({value}), tensor({0}), Shape{1}}, Gradient()};
      };
    };
    const std::vector<Gradient> out = cond(yes(), {}, branch(1), branch(2));
    c.check("dense_first", out[0]);
    c.check("second", out[1]);
  });
  check_case("cond-nontrainable-output-filtered", [&](Case& c) {
    const Tensor x = c.input("x");
    GradientTape tape;
    tape.watch(x);
    const auto [y, n] = cond(
        yes(), {x}, [](const Tensor& t) { return std::pair(t * t, tensor(1)); },
        [](const Tensor& t) { return std::pair(t * t * t, tensor(2)); });
    CHECK(n.item<int>() == 1);
    c.check("g", tape.gradient(y, x));
  });
  check_case("cond-grad-none-to-zeros-seed", [&](Case& c) {
    const Tensor a = tensor({1.0, 2.0}), b = tensor({3.0, 4.0, 5.0});
    GradientTape tape;
    tape.watch(a), tape.watch(b);
    const auto first = [](const Tensor& t, const Tensor&) { return t * t; };
    const auto [da, db] = tape.gradient(cond(true, {a, b}, first, first), a, b);
    c.holds("seed", da.dense().to_vector() == std::vector{2.0, 4.0} &&
                        db.dense().to_vector() == std::vector{0.0, 0.0, 0.0});
    c.superseded("later", "V12");
  });
}

TEST_CASE("cases: loops", "[cases][control]") {
  check_case("while-type-mismatch", [&](Case& c) {
    c.check_error(
        [] {
          while_loop([](const Tensor& t) { return t < 10.0; },
                     [](const Tensor& t) { return astype(t + 1, DType::f64); }, {tensor(1.0)});
        },
        "while_loop: variable 0 enters the loop as f32[] and is f64[] after step 1");
  });
  check_case("while-tape", [&](Case& c) {
    const Tensor x = c.input("x");
    GradientTape tape;
    tape.watch(x);
    c.check("g", tape.gradient(while_loop([](const Tensor& v) { return v < 4.0; },
                                          [](const Tensor& v) { return v * v; }, {x}),
                               x));
  });
  check_case("while-capture-in-body", [&](Case& c) {
    const Tensor x = c.input("x"), y = tensor(3.0);
    GradientTape tape;
    tape.watch(x);
    const Tensor ret =
        while_loop([](const Tensor& v) { return v < 8.0; }, [&](const Tensor& v) { return v * y; }, {x});
    c.check("ret", ret);
    c.check("g", tape.gradient(ret, x));
  });
  check_case("while-map-tensorarray", [&](Case& c) {
    const Tensor param = c.input("param");
    GradientTape tape;
    tape.watch(param);
    const Tensor r = scan([&](const Tensor& x) { return x * param; }, {}, {arange(1, 7)});
    c.check("r", r);
    c.check("g", tape.gradient(r, param));
  });
  check_case("while-cos-iterated", DType::f64, [&](Case& c) {
    const Tensor x = tensor(1.0, DType::f64);
    const auto z = [](const Tensor& t) {
      return fori_loop(0, 2, [](std::int64_t, const Tensor& y) { return cos(y); }, {t});
    };
    const auto dz = [&](const Tensor& t) { return derivative(z, t); };
    c.check("z", z(x));
    c.check("dz", dz(x));
    c.check("d2z", derivative(dz, x));
  });
  check_case("while-list-pushback", [&](Case& c) {
    const Tensor x = c.input("x");
    GradientTape tape;
    tape.watch(x);
    std::vector<Tensor> list;
    const Tensor ret = while_loop([](const Tensor& t) { return t < 5.0; },
                                  [&](const Tensor& t) {
                                    list.push_back(t);
                                    list.push_back(tensor(100.0));
                                    return square(t);
                                  },
                                  {x});
    CHECK(list.size() == 4);
    c.check("ret", ret);
    c.check("g", tape.gradient(ret, x));
  });
}

TEST_CASE("only the branch that is taken runs, and every operand has a gradient", "[control]") {
  const Tensor x = tensor({1.0, 2.0}), y = tensor({{3.0}}), n = tensor(4);
  int others = 0;
  GradientTape tape({.persistent = true});
  tape.watch(x), tape.watch(y);
  const Tensor z = cond(
      tensor({{1}}, DType::boolean), {x, y, n},
      [](const Tensor& a, const Tensor&, const Tensor& k) { return a * k; },
      [&](const Tensor& a, const Tensor&, const Tensor&) {
        ++others;
        return a;
      });
  CHECK(others == 0);
  const auto [dx, dy] = tape.gradient(z, x, y);
  CHECK(dx.dense().to_vector() == std::vector{4.0, 4.0});
  CHECK(dy.dense().shape() == Shape{1, 1});
  CHECK(dy.dense().item() == 0);
  // Zeros are made only where the branch gets a gradient: what does not pass through it stays none.
  CHECK_FALSE(tape.gradient(x * 2, y).defined());
  // An operand that is also captured gets the sum of both gradients.
  CHECK(
      tape.gradient(cond(
                        true, {x}, [&](const Tensor& a) { return a * x; }, [](const Tensor& a) { return a; }),
                    x)
          .dense()
          .to_vector() == std::vector{2.0, 4.0});
}

TEST_CASE("switch_case takes the last branch for a number that is out of range", "[control]") {
  const Tensor x = tensor(3.0);
  const auto f = [](double by) {
    return std::function<Tensor(const Tensor&)>([by](const Tensor& t) { return t * by; });
  };
  const std::vector branches = {f(10), f(20), f(30)};
  for (const auto& [index, expected] : {std::pair(0, 10.0), std::pair(1, 20.0), std::pair(2, 30.0),
                                        std::pair(3, 30.0), std::pair(-1, 30.0)}) {
    GradientTape tape;
    tape.watch(x);
    const Tensor y = switch_case(tensor(index), {x}, branches);
    CHECK(y.item() == 3 * expected);
    CHECK(tape.gradient(y, x).dense().item() == expected);
    CHECK(switch_case(index, {x}, branches[0], branches[1], branches[2]).item() == 3 * expected);
  }
}

TEST_CASE("branches and loops agree with differences, to second order and in both modes", "[control]") {
  const Tensor x = tensor({0.3, -0.7}, DType::f64), y = tensor({1.2, 0.4}, DType::f64),
               xs = tensor({{0.1, 0.2}, {0.3, 0.4}, {0.5, -0.6}, {0.7, 0.8}, {-0.9, 1.0}}, DType::f64);
  const auto check = [&](const TensorFunction& f, const std::vector<Tensor>& in) {
    CHECK(check_gradients(f, in));
  };
  check(
      [](const std::vector<Tensor>& in) {
        return cond(
            true, in, [&](const Tensor& a, const Tensor& b) { return tanh(a) * b * in[0]; },
            [](const Tensor& a, const Tensor&) { return a; });
      },
      {x, y});
  for (const std::int64_t every : {0, 1, 2, 3, 7}) {
    check(
        [&](const std::vector<Tensor>& in) {
          return while_loop([](const Tensor& t,
                               const Tensor& i) { return (i < 5).item() != 0 && all(t < 100.0).item() != 0; },
                            [w = in[1]](const Tensor& t, const Tensor& i) {
                              return std::pair(sin(t) + t * w, i + 1);
                            },
                            {in[0], tensor(0)}, {.snapshots = every})
              .first;
        },
        {x, y});
    check(
        [&](const std::vector<Tensor>& in) {
          return fori_loop(2, 7,
                           [](std::int64_t i, const Tensor& t, const Tensor& u) {
                             return std::pair(t * u + 0.1 * static_cast<double>(i), sin(u));
                           },
                           in, {.snapshots = every})
              .first;
        },
        {x, y});
    for (const bool reverse : {false, true})
      check(
          [&](const std::vector<Tensor>& in) {
            const auto [last, all] = scan(
                [w = in[2]](const Tensor& h, const Tensor& t) {
                  const Tensor next = tanh(h * w + t);
                  return std::pair(next, next * t);
                },
                {in[0]}, {in[1]}, {.reverse = reverse, .snapshots = every});
            return last + sum(all * all, 0);
          },
          {x, xs, y});
  }
}

TEST_CASE("Jacobians and recordings go through branches and loops", "[control]") {
  const Tensor x = tensor({2.0, 3.0}), ignored = tensor({1.0, 1.0, 1.0}), w = tensor(5.0);
  const auto power = [&](const Tensor& t, std::int64_t every) {
    return fori_loop(0, 3, [w](std::int64_t, const Tensor& v) { return v * w; }, {t}, {.snapshots = every});
  };
  for (const std::int64_t every : {0, 2}) {
    GradientTape tape;
    tape.watch(x), tape.watch(ignored);
    const Tensor y = cond(
        true, {x, ignored}, [&](const Tensor& t, const Tensor&) { return power(t, every); },
        [](const Tensor& t, const Tensor&) { return t; });
    const std::vector<Gradient> j = tape.jacobian(y, Sources{x, ignored});
    CHECK(j[0].to_vector() == std::vector{125.0, 0.0, 0.0, 125.0});
    CHECK(j[1].shape() == Shape{2, 3});
    CHECK(j[1].to_vector() == std::vector(6, 0.0));

    const Recording recording;
    const std::vector<Gradient> g =
        gradients(cond(
                      true, {x, ignored}, [&](const Tensor& t, const Tensor&) { return power(t, every); },
                      [](const Tensor& t, const Tensor&) { return t; }),
                  {x, ignored, w});
    CHECK(g[0].dense().to_vector() == std::vector{125.0, 125.0});
    CHECK(g[1].dense().to_vector() == std::vector(3, 0.0));
    CHECK(g[2].dense().item() == 375);
  }
}

TEST_CASE("while_loop ends at its maximum, or before its first step", "[control]") {
  const Tensor x = tensor(2.0), y = tensor(5.0);
  for (const std::int64_t every : {0, 2}) {
    const auto run = [&, every](std::int64_t most) {
      GradientTape tape;
      tape.watch(x), tape.watch(y);
      const Tensor z = while_loop([](const Tensor&) { return true; }, [&](const Tensor& t) { return t * y; },
                                  {x}, {.maximum_iterations = most, .snapshots = every});
      const auto [dx, dy] = tape.gradient(z, x, y);
      return std::vector{z.item(), dx.dense().item(), dy.defined() ? dy.dense().item() : -1};
    };
    CHECK(run(0) == std::vector{2.0, 1.0, -1.0});
    CHECK(run(1) == std::vector{10.0, 5.0, 2.0});
    CHECK(run(3) == std::vector{250.0, 125.0, 150.0});
    CHECK(run(4) == std::vector{1250.0, 625.0, 1000.0});
  }
}

TEST_CASE("loop variables without influence get zeros, counters none", "[control]") {
  const Tensor x = tensor(2.0), ignored = tensor(5.0), i = tensor(0);
  for (const std::int64_t every : {0, 2}) {
    GradientTape tape;
    tape.watch(x), tape.watch(ignored);
    const auto [y, rest, n] = while_loop(
        [](const Tensor&, const Tensor&, const Tensor& k) { return k < 3; },
        [](const Tensor& t, const Tensor&, const Tensor& k) { return std::tuple(t * t, tensor(1.0), k + 1); },
        {x, ignored, i}, {.snapshots = every});
    CHECK(n.item() == 3);
    const std::vector<Gradient> g = tape.gradient(Targets{y, rest}, Sources{x, ignored});
    CHECK(g[0].dense().item() == 8 * 128);
    CHECK(g[1].dense().item() == 0);
  }
}

TEST_CASE("what a loop reads, but no result depends on, has no gradient", "[control][recorded]") {
  const Variable v(tensor(3.0));
  const Tensor w = tensor(2.0), x = tensor(1.0), xs = tensor({1.0, 2.0, 3.0, 4.0});
  for (const std::int64_t every : {0, 1, 2}) {
    CAPTURE(every);
    const auto doubled = [&](const Tensor& t) {
      (void)(t * v * w);
      return t * 2;
    };
    const std::function<Tensor()> loops[] = {
        [&] {
          return fori_loop(0, 4, [&](std::int64_t, const Tensor& t) { return doubled(t); }, {x},
                           {.snapshots = every});
        },
        [&] {
          return while_loop([](const Tensor& t) { return t < 10; }, doubled, {x}, {.snapshots = every});
        },
        [&] {
          return scan([&](const Tensor& t, const Tensor& e) { return std::pair(doubled(t), e); }, {x}, {xs},
                      {.snapshots = every})
              .first;
        }};
    for (const auto& loop : loops) {
      const auto gradients = [&] {
        GradientTape tape;
        tape.watch(w, x);
        const auto [dv, dw, dx] = tape.gradient(loop(), v, w, x);
        CHECK_FALSE(dv.defined());
        CHECK_FALSE(dw.defined());
        return dx.dense();
      };
      CHECK(gradients().item() == 16);
      const auto recorded = compile(gradients);
      for (int call = 0; call < 2; ++call)
        CHECK(recorded().item() == 16);
    }
  }
}

TEST_CASE("variables and tensors that a loop uses have the gradients of all steps", "[control]") {
  const Variable v(tensor(3.0)), constant(tensor(2.0), {.trainable = false});
  const Tensor x = tensor(1.0), w = tensor(2.0);
  for (const std::int64_t every : {0, 2}) {
    GradientTape tape;
    tape.watch(w);
    const Tensor y = fori_loop(0, 3, [&](std::int64_t, const Tensor& t) { return t * v * w * constant; }, {x},
                               {.snapshots = every});
    CHECK(y.item() == 1728);
    const auto [dv, dw, dc] = tape.gradient(y, v, w, constant);
    CHECK(dv.dense().item() == 1728);
    CHECK(dw.dense().item() == 2592);
    CHECK_FALSE(dc.defined());
  }
}

TEST_CASE("back_prop = false records nothing in a loop", "[control]") {
  const Tensor x = tensor(2.0);
  GradientTape tape;
  tape.watch(x);
  for (const int steps : {0, 3}) {
    const Tensor y =
        fori_loop(0, steps, [](std::int64_t, const Tensor& t) { return t * t; }, {x}, {.back_prop = false});
    CHECK(y.item() == (steps ? 256 : 2));
    CHECK(tape.size() == 0);
    const Tensor z = while_loop([](const Tensor& t) { return t < 100.0; },
                                [](const Tensor& t) { return t * t; }, {x}, {.back_prop = false});
    CHECK(tape.size() == 0);
  }
}

TEST_CASE("scan gives the last carry and all outputs, from either end", "[control]") {
  const Tensor xs = tensor({1.0, 2.0, 3.0, 4.0, 5.0}), weights = tensor({1.0, 10.0, 100.0, 1000.0, 10000.0});
  for (const std::int64_t every : {0, 1, 2, 5, 6}) {
    const auto sums = [](const Tensor& sum, const Tensor& x) {
      const Tensor s = sum + x;
      return std::pair(s, s);
    };
    GradientTape tape;
    tape.watch(xs);
    const auto [last, all] = scan(sums, {tensor(0.5)}, {xs}, {.snapshots = every});
    const auto [last_back, all_back] = scan(sums, {tensor(0.5)}, {xs}, {.reverse = true, .snapshots = every});
    CHECK(last.item() == 15.5);
    CHECK(last_back.item() == 15.5);
    CHECK(all.to_vector() == std::vector{1.5, 3.5, 6.5, 10.5, 15.5});
    CHECK(all_back.to_vector() == std::vector{15.5, 14.5, 12.5, 9.5, 5.5});
    const Gradient g = tape.gradient(Targets{all * weights, 0.5 * all_back}, Sources{xs})[0];
    CHECK(g.dense().to_vector() == std::vector{11111.5, 11111.0, 11101.5, 11002.0, 10002.5});
  }
  // Two lists at once, no carry; a carry and no lists; no steps.
  CHECK(scan([](const Tensor& a, const Tensor& b) { return a * b; }, {}, {xs, weights}).to_vector() ==
        std::vector{1.0, 20.0, 300.0, 4000.0, 50000.0});
  CHECK(scan([](const Tensor& t) { return t * 2; }, {tensor(1.0)}, {}, {.length = 10}).item() == 1024);
  CHECK(scan([](const Tensor& t, const Tensor&) { return t * 2; }, {tensor(1.0)}, {zeros({0})}).item() == 1);
}

TEST_CASE("errors of branches name what is wrong", "[control][errors]") {
  const Tensor x = tensor(1.0);
  const auto same = [](const Tensor& t) { return t; };
  const auto with = [&](std::vector<Spec> outputs) {
    return [&, outputs] { cond(true, {x}, same, same, {.outputs = outputs}); };
  };
  CHECK(message_of(with({{DType::f32, {}}})) == "no error");
  CHECK(message_of(with({{DType::f64, {}}})) == "cond: output 0 is f32[], f64[] was declared");
  CHECK_THROWS_AS(with({{DType::f64, {}}})(), DTypeError);
  CHECK_THROWS_AS(with({{DType::f32, {2}}})(), ShapeError);
  CHECK(message_of(with({{}, {}})) == "cond: the function returns 1 tensors, not 2");
  CHECK(message_of([&] { cond(true, {x, x}, same, same); }) == "cond: the function does not take 2 tensors");
  CHECK(message_of([&] { cond(x, {x}, same, same); }) ==
        "cond: the condition is f32[]; use bool, such as the result of a comparison");
  CHECK(message_of([&] { cond(zeros({2}) < 1.0, {x}, same, same); }) ==
        "cond: the condition is bool[2]; use one element, as by all or any");
  CHECK(message_of([&] { cond(Tensor(), {x}, same, same); }) == "cond: the condition is undefined");
  CHECK(message_of([&] { switch_case(x, {x}, same); }) ==
        "switch_case: the index is f32[]; use an integer dtype, as by astype");
  CHECK(message_of([&] { switch_case(arange(2), {x}, same); }) ==
        "switch_case: the index is i64[2]; use one number");
  CHECK(message_of([&] { switch_case(0, {x}, std::vector<Tensor (*)(const Tensor&)>()); }) ==
        "switch_case: no branches");
}

TEST_CASE("errors of loops name the variable, before and after", "[control][errors]") {
  const Tensor x = tensor(1.0), v = tensor({1.0, 2.0});
  const auto always = [](std::span<const Tensor>) { return true; };
  const auto grows = [](std::span<const Tensor> t) { return std::vector{t[0], concat({t[1], t[1]}, 0)}; };
  for (const std::int64_t every : {0, 3}) {
    CHECK(message_of([&] {
            while_loop(always, grows, {x, v}, {.snapshots = every});
          }) == "while_loop: variable 1 enters the loop as f32[2] and is f32[4] after step 1");
    CHECK(message_of([&] {
            fori_loop(0, 9, [](std::int64_t i, const Tensor& t) { return i < 4 ? t : astype(t, DType::f64); },
                      {x}, {.snapshots = every});
          }) == "fori_loop: variable 0 enters the loop as f32[] and is f64[] after step 5");
  }
  CHECK_THROWS_AS(while_loop(always, grows, {x, v}), ShapeError);
  CHECK(message_of([&] { while_loop(always, [](const Tensor& t) { return std::pair(t, t); }, {x}); }) ==
        "while_loop: the function returns 2 tensors, not 1");
  CHECK(message_of([&] {
          while_loop([](const Tensor&) { return false; }, [](const Tensor& t) { return std::pair(t, t); },
                     {x});
        }) == "while_loop: the function returns 2 tensors, not 1");
  CHECK(message_of([&] {
          while_loop(always, grows, {x, v}, {.maximum_iterations = -1});
        }) == "while_loop: maximum_iterations is -1; use 0 or more");
  CHECK(message_of([&] {
          while_loop(always, grows, {x, v}, {.snapshots = -1});
        }) == "while_loop: snapshots is -1; use 0 or more");
  CHECK(message_of([&] {
          while_loop(always, grows, {x, Tensor()});
        }) == "while_loop: variable 1 is undefined");
  CHECK(message_of([&] {
          while_loop([](const Tensor& t) { return t; }, [](const Tensor& t) { return t; }, {x});
        }) == "while_loop: the condition is f32[]; use bool, such as the result of a comparison");

  const auto step = [](const Tensor& c, const Tensor& t) { return std::pair(t, c); };
  CHECK(message_of([&] {
          scan(step, {x}, {zeros({4, 2})});
        }) == "scan: carry 0 enters the loop as f32[] and is f32[2] after step 1");
  CHECK(message_of([&] {
          scan([&](const Tensor& t) { return t.item() < 2 ? t : v; }, {}, {arange(0, 3)});
        }) == "scan: output 0 is f32[] first and f32[2] after step 3");
  CHECK(message_of([&] {
          scan(step, {x}, {v, zeros({3})});
        }) == "scan: first axes differ: input 0 is f32[2], input 1 is f32[3]");
  CHECK(message_of([&] { scan(step, {x}, {x}); }) ==
        "scan: input 0 has no first axis to loop over: it is f32[]");
  CHECK(message_of([&] { scan(step, {x}, {}); }) ==
        "scan: the number of steps is unknown; pass xs or a length");
  CHECK(message_of([&] { scan(step, {x}, {v}, {.length = 3}); }) == "scan: length is 3, input 0 is f32[2]");
  CHECK(message_of([&] { scan(step, {x}, {v}, {.length = -3}); }) == "scan: length is -3; use 0 or more");
  CHECK(message_of([&] { scan(step, {x}, {zeros({0})}); }) == "scan: the function returns 2 tensors, not 1");
  CHECK(message_of([&] {
          scan([](const Tensor&, const Tensor&) { return std::vector<Tensor>(); }, {x}, {v});
        }) == "scan: the function returns 0 tensors, not 1");
}

TEST_CASE("a branch that throws leaves tapes and accumulators unchanged", "[control][errors]") {
  const Tensor x = tensor(2.0);
  const ForwardAccumulator forward(x, tensor(1.0));
  GradientTape tape;
  tape.watch(x);
  const Tensor y = x * x;
  const std::size_t size = tape.size();
  const auto fails = [](const Tensor& t) {
    const Tensor z = exp(t) * t;
    return matmul(z, z);
  };
  for (const std::int64_t every : {0, 2}) {
    CHECK_THROWS_AS(cond(true, {y}, fails, fails), ShapeError);
    CHECK_THROWS_AS(fori_loop(0, 3, [&](std::int64_t i, const Tensor& t) { return i < 2 ? t * x : fails(t); },
                              {y}, {.snapshots = every}),
                    ShapeError);
    CHECK_THROWS_AS(scan([&](const Tensor& t, const Tensor&) { return fails(t); }, {y}, {zeros({3})},
                         {.snapshots = every}),
                    ShapeError);
    CHECK(tape.size() == size);
  }
  const Tensor z = y * x;
  CHECK(forward.jvp(z).item() == 12);
  CHECK(tape.gradient(z, x).dense().item() == 12);
}

TEST_CASE("values that do not change in a loop are not kept for each step", "[control][memory]") {
  const Tensor x = full({1, 64}, 0.01), w = full({64, 64}, 0.01);
  GradientTape tape;
  tape.watch(x), tape.watch(w);
  const std::int64_t base = live_bytes();
  const auto [y, same] = fori_loop(0, 100,
                                   [](std::int64_t, const Tensor& t, const Tensor& weights) {
                                     return std::pair(matmul(t, weights), weights);
                                   },
                                   {x, w});
  CHECK(live_bytes() - base ==
        100 * x.nbytes());   // the inputs of the products, with the result instead of x
}

TEST_CASE("checkpoint-gradient-100-5, checkpoint-gradient-57-3: few runs, and the same gradients",
          "[control][snapshots]") {
  struct Expected {
    std::int64_t steps, snapshots;
    double value, dr, dx;
    std::int64_t most_runs;
  };
  for (const Expected& e :
       {Expected{100, 5, 0.655173561985832, 0.11902997740724987, -2.1888905269180383e-05, 416},
        Expected{57, 3, 0.655065836056897, 0.11249505589120543, 0.002032149315318469, 273}}) {
    const Tensor r = tensor(2.9, DType::f64), x = tensor(0.3, DType::f64);
    std::int64_t runs = 0;
    const auto gradients_of = [&](std::int64_t snapshots) {
      GradientTape tape;
      tape.watch(r), tape.watch(x);
      const Tensor y = fori_loop(0, e.steps,
                                 [&](std::int64_t, const Tensor& t) {
                                   ++runs;
                                   return r * t * (1 - t);
                                 },
                                 {x}, {.snapshots = snapshots});
      CHECK(y.item() == Approx(e.value).epsilon(1e-12));
      const auto [dr, dx] = tape.gradient(y, r, x);
      return std::pair(dr.item(), dx.item());
    };
    const auto all = gradients_of(0);
    runs = 0;
    const auto few = gradients_of(e.snapshots);
    CHECK(runs == e.most_runs);
    CHECK(few.second == all.second);   // the same bits; those of r are summed in parts
    CHECK(few.first == Approx(all.first).epsilon(1e-13));
    CHECK(all.first == Approx(e.dr).epsilon(1e-6));
    CHECK(all.second == Approx(e.dx).margin(1e-8).epsilon(1e-4));
  }
}

TEST_CASE("checkpoint-perturbation-spreads, checkpoint-gradient-only-of-capture", "[control][snapshots]") {
  const Tensor one = tensor(1.0, DType::f64), x = tensor(1.0, DType::f64), y = tensor(1.0, DType::f64);
  for (const std::int64_t snapshots : {0, 1, 2, 3}) {
    GradientTape tape;
    tape.watch(x), tape.watch(y);
    const auto spread =
        fori_loop(0, 3,
                  [](std::int64_t, const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& d) {
                    return std::tuple(a + 1, a + b, b + c, 2 * stop_gradient(d));
                  },
                  {x, one, one, one}, {.snapshots = snapshots});
    const Tensor sum = std::get<1>(spread) + std::get<3>(spread);
    const auto grows = fori_loop(
        0, 3, [x](std::int64_t, const Tensor& a, const Tensor& b) { return std::pair(a * x, b + 1); },
        {one, y}, {.snapshots = snapshots});
    const Tensor total = grows.first + grows.second;
    CHECK(sum.item() == 15);
    CHECK(total.item() == 5);
    CHECK(tape.gradient(sum, x).item() == 3);
    GradientTape again;
    again.watch(x), again.watch(y);
    const auto both = while_loop([](const Tensor&, const Tensor& b) { return b < 3.5; },
                                 [x](const Tensor& a, const Tensor& b) { return std::pair(a * x, b + 1); },
                                 {one, y}, {.snapshots = snapshots});
    const auto [dx, dy] = again.gradient(both.first + both.second, x, y);
    CHECK(dx.item() == 3);
    CHECK(dy.item() == 1);
  }
}

TEST_CASE("too few snapshots for a loop are an error that says how many are enough",
          "[control][snapshots][errors]") {
  const Tensor x = tensor(1.0);
  GradientTape tape;
  tape.watch(x);
  const auto loop = [&](std::int64_t steps, std::int64_t snapshots) {
    return fori_loop(0, steps, [](std::int64_t, const Tensor& t) { return t * 1.0; }, {x},
                     {.snapshots = snapshots});
  };
  CHECK(message_of<ArgumentError>([&] { loop(102, 1); }) ==
        "fori_loop: with snapshots = 1, the gradient of 102 steps would run some of them 101 times; use 2 or "
        "more");
  CHECK(message_of<ArgumentError>([&] {
          while_loop([](const Tensor&) { return true; }, [](const Tensor& t) { return t * 1.0; }, {x},
                     {.maximum_iterations = 102, .snapshots = 1});
        }) != "no error");
  GradientTape deep;   // as deep as gradients nest
  deep.watch(x);
  CHECK(deep.gradient(loop(101, 1), x).item() == 1);
}

TEST_CASE("10,000 steps with ten snapshots keep some dozen states", "[control][memory]") {
  constexpr std::int64_t kSteps = 10'000, kSnapshots = 10;
  const Tensor x = full({32}, 0.5, DType::f64), rate = full({32}, 0.999, DType::f64),
               xs = full({kSteps}, 1e-3, DType::f64);
  std::int64_t base = 0, most = 0, runs = 0;
  const auto look = [&] { most = std::max(most, live_bytes() - base); };
  const auto step = [&](const Tensor& t) {
    look();
    ++runs;
    return tanh(t * rate);   // the tape keeps the result
  };
  const auto peak = [&](const auto& loop) {
    base = live_bytes(), most = 0, runs = 0;
    {
      GradientTape tape;
      tape.watch(x);
      Tensor y = sum(loop());
      look();
      tape.gradient(y, x);
    }
    CHECK(live_bytes() == base);
    return (most + x.nbytes() - 1) / x.nbytes();
  };
  const auto looped = [&](std::int64_t snapshots) {
    return peak([&, snapshots] {
      return fori_loop(0, kSteps, [&](std::int64_t, const Tensor& t) { return step(t); }, {x},
                       {.snapshots = snapshots});
    });
  };
  const auto tested = [&](std::int64_t snapshots) {
    return peak([&, snapshots] {
      return while_loop([](const Tensor&) { return true; }, step, {x},
                        {.maximum_iterations = kSteps, .snapshots = snapshots});
    });
  };
  const auto scanned = [&](std::int64_t snapshots) {
    return peak([&, snapshots] {
      return scan([&](const Tensor& t, const Tensor& u) { return step(t) + u; }, {x}, {xs},
                  {.snapshots = snapshots});
    });
  };
  CHECK(looped(0) >= kSteps);
  CHECK(looped(0) <= kSteps + 3);
  CHECK(scanned(0) >= kSteps);
  constexpr std::int64_t kRuns = 7 * kSteps - 12376 + kSteps;   // r l - C(n + r, r - 1) with r = 7, and l
  CHECK(looped(kSnapshots) <= kSnapshots + 12);
  CHECK(runs == kRuns);
  CHECK(scanned(kSnapshots) <= kSnapshots + 40);
  CHECK(runs == kRuns);
  CHECK(tested(kSnapshots) <= kSnapshots + 12);
  CHECK(runs <= 5 * kRuns / 4);
}

TEST_CASE("higher derivatives through a branch are zeros where it is linear, or ignores an operand",
          "[control]") {
  const Tensor a = tensor({1.0, 2.0}, DType::f64), b = tensor({3.0, 4.0}, DType::f64);
  const auto f = [&](const Tensor& x, const Tensor& ignored) {
    return cond(
        yes(), {x, ignored}, [](const Tensor& u, const Tensor&) { return 3 * u; },
        [](const Tensor&, const Tensor& v) { return v; });
  };
  const auto zero = [](const Tensor& t, const Shape& shape) {
    return t.defined() && t.shape() == shape && max(abs(t)).item() == 0;
  };
  SECTION("by tapes, at every order") {
    const auto of_a = [&](const Tensor& x) { return f(x, b); };
    const auto of_b = [&](const Tensor& x) { return f(a, x); };
    const auto first = [&](const auto& g) { return [&g](const Tensor& x) { return derivative(g, x); }; };
    const auto da = first(of_a);
    const auto db = first(of_b);
    const auto dda = first(da);
    const auto ddb = first(db);
    CHECK(da(a).to_vector() == std::vector<double>{3, 3});
    CHECK(zero(db(b), {2}));
    CHECK(zero(dda(a), {2}));
    CHECK(zero(ddb(b), {2}));
    CHECK(zero(first(dda)(a), {2}));
    CHECK(zero(first(ddb)(b), {2}));
  }
  SECTION("by a Recording") {
    const Recording recording;
    const Tensor y = f(a, b);
    const std::vector<Gradient> g = gradients(y, {a, b});
    CHECK(zero(gradients(g[0].dense(), a)[0].dense(), {2}));
    CHECK(zero(gradients(g[1].dense(), b)[0].dense(), {2}));
    for (const Gradient& h : hessians(y, {a, b}))
      CHECK(zero(h, {2, 2}));
  }
}

TEST_CASE("a captured tensor that a step returns has its gradient", "[control]") {
  const Tensor p = tensor(3.0), x = tensor(2.0);
  for (const std::int64_t snapshots : {0, 1, 2}) {
    CAPTURE(snapshots);
    GradientTape tape;
    tape.watch(p);
    const Tensor y = fori_loop(0, 2, [=](std::int64_t i, const Tensor& a) { return i == 0 ? p : a * p; }, {x},
                               {.snapshots = snapshots});
    CHECK(tape.gradient(y, p).item() == 6);
  }
  GradientTape tape;
  tape.watch(p);
  const Tensor y = recompute_grad([=](const Tensor&) { return p; })(x);
  const Tensor z = fori_loop(0, 2, [=](std::int64_t, const Tensor&) { return p; }, {x}, {.back_prop = false});
  CHECK(tape.gradient(p * y * z, p).item() == 18);
}

}   // namespace control_test
