// What a branch or a step must not take from the recording: keys, tensors of rules, errors, indices, tapes;
// and the effects that it has in each call.
#include <catch2/catch.hpp>
#include <functional>
#include <sstream>

#include "closeness.h"
#include "message_of.h"
#include "tapedeck/compile.h"
#include "tapedeck/tapedeck.h"

namespace inner_recordings_test {

using namespace tapedeck;
using test::message_of;

using Tensors = std::vector<Tensor>;
constexpr DType i64 = DType::i64;

TEST_CASE("branches and loops draw with the keys of each call", "[recorded][branches][loops]") {
  const auto f = [](const Tensor& x, random::Key key) {
    GradientTape tape;
    tape.watch(x);
    const Tensor y =
        fori_loop(0, 5,
                  [key](const Tensor& i, const Tensor& t) {
                    return sin(t * random::uniform({3}, key.split(i)) + random::normal({3}, key.split(7)));
                  },
                  {x});
    const Tensor z = cond(
        sum(x) > 0, {y}, [key](const Tensor& t) { return t * random::uniform({3}, key.split(1).split(2)); },
        [key](const Tensor& t) { return t + random::normal({3}, key); });
    const Tensor w = while_loop([](const Tensor& t, const Tensor&) { return sum(t) < 30.0F; },
                                [key](const Tensor& t, const Tensor& i) {
                                  return std::pair(t + square(random::normal({3}, key.split(i))), i + 1);
                                },
                                {z, tensor(0, i64)})
                         .first;
    return std::pair(w, tape.gradient(w, x).dense());
  };
  const auto recorded = compile(f);
  for (std::uint64_t k = 0; k < 6; ++k) {
    CAPTURE(k);
    const Tensor x = random::normal({3}, {.seed = k});
    const random::Key key{.seed = 100 + k};
    const auto [value, gradient] = f(x, key);
    const auto [replayed, replayed_gradient] = recorded(x, key);
    CHECK(same_bits(value, replayed));
    CHECK(same_bits(gradient, replayed_gradient));
  }
  CHECK(recorded.programs().size() == 1);
}

TEST_CASE("a key is split by an argument, from the first call on", "[recorded]") {
  const auto f = [](const Tensor& i, random::Key key) { return random::uniform({2}, key.split(i)); };
  const auto recorded = compile(f);
  for (std::int64_t i = 3; i < 6; ++i) {
    const random::Key key{.seed = 5};
    const Tensor drawn = f(tensor(i, i64), key);
    CHECK(same_bits(recorded(tensor(i, i64), key), drawn));
    CHECK(same_bits(drawn, random::uniform({2}, key.split(static_cast<std::uint64_t>(i)))));
  }
  CHECK_THAT(message_of<TraceError>([] {
               compile([](const Tensor& i, random::Key key) {
                 return random::uniform({2}, key.split(i + 1));
               })(tensor(1, i64), random::Key());
             }),
             Catch::Contains("a key is split by i64[], which is computed"));
  CHECK_THROWS_AS(random::Key().split(tensor(1.0)), DTypeError);
  CHECK_THROWS_AS(random::Key().split(tensor({1, 2}, i64)), ShapeError);
}

TEST_CASE("a rule in a branch must not read numbers", "[recorded][branches][errors]") {
  const auto f = [](const Tensor& x) {
    GradientTape tape;
    tape.watch(x);
    const Tensor t = x * 10;
    const Tensor y = cond(
        x > 0, {x},
        [t](const Tensor& u) {
          return custom_gradient([t](const Tensor& v) {
            return std::pair(v * 2, [t](const Tensor& dy) { return dy.item() > 0 ? dy * t : dy; });
          })(u);
        },
        [](const Tensor& u) { return u; });
    return tape.gradient(y, x).dense();
  };
  CHECK(f(tensor(1.5)).item() == 15);
  CHECK_THROWS_AS(compile(f)(tensor(1.5)), TraceError);
}

TEST_CASE("an error of a branch that the function catches is not compiled", "[recorded][branches][errors]") {
  const auto f = compile([](const Tensor& x) -> Tensor {
    try {
      return cond(
          sum(x) > 0, {x}, [](const Tensor& u) { return u.item() > 0 ? 2 * u : u; },
          [](const Tensor& u) { return u; });
    } catch (const Error&) {
      return -x;
    }
  });
  CHECK_THROWS_AS(f(tensor(3.0)), TraceError);
}

TEST_CASE("indices that are wrong for zeros are recorded", "[recorded][loops]") {
  const auto f = [](const Tensor& p) {
    GradientTape tape;
    tape.watch(p);
    const Tensor y = fori_loop(1, 4,
                               [p](const Tensor& i, const Tensor& s) {
                                 const Tensor k = i - 1;
                                 return s + gather(p, k) * 2 +
                                        cond(
                                            k > 0, {p}, [k](const Tensor& q) { return gather(q, k - 1); },
                                            [](const Tensor& q) { return sum(q); });
                               },
                               {tensor(0.0)});
    return Tensors{y, tape.gradient(y, p).dense()};
  };
  const Tensor p = tensor({1.0, 2.0, 4.0});
  const auto recorded = compile(f);
  for (int call = 0; call < 2; ++call)
    for (std::size_t k = 0; k < 2; ++k)
      CHECK(same_bits(recorded(p)[k], f(p)[k]));
}

TEST_CASE("a condition must not assign a variable", "[recorded][loops][errors]") {
  const Variable n(tensor(0, i64));
  const auto f = compile([n](const Tensor& x) {
    return while_loop(
        [n](const Tensor& a) {
          n.assign_add(tensor(1, i64));
          return logical_and(n < 3, a < 100);
        },
        [](const Tensor& a) { return a * 2; }, {x});
  });
  CHECK_THAT(message_of<TraceError>([&] { f(tensor(1.0)); }), Catch::Contains("assign it in the step"));
  CHECK(n.value().item() == 0);
}

TEST_CASE("a persistent tape records the gradient of a while_loop", "[recorded][loops]") {
  const auto f = [](const Tensor& x) {
    Recording tape;
    const Tensor y =
        while_loop([](const Tensor& a) { return a < 10; }, [](const Tensor& a) { return a * a; }, {x});
    return tape.gradient(y, x).dense();
  };
  const auto recorded = compile(f);
  for (const double x : {2.0, 3.0, 11.0})
    CHECK(same_bits(recorded(tensor(x)), f(tensor(x))));
}

TEST_CASE("a computed index or condition is not used after the recording", "[recorded][errors]") {
  std::optional<BranchIndex> index;
  std::optional<Condition> condition;
  compile([&](const Tensor& i) {
    index.emplace(i + 1), condition.emplace(i > 0, std::string("a reader whose text is long enough"));
    return i;
  })(tensor(1, i64));
  CHECK_THROWS_AS(index->among(3), TraceError);
  CHECK_THROWS_AS(
      cond(
          *condition, {tensor(1.0)}, [](const Tensor& x) { return x; }, [](const Tensor& x) { return -x; }),
      TraceError);
}

// Not a template, since each function that is compiled takes the compiler long.
using Function = std::function<Tensor(const Tensor&)>;

// What f(x) writes to `out`, then its message if it throws.
std::string effects_of(const Function& f, std::ostringstream& out, const Tensor& x) {
  out.str("");
  try {
    (void)f(x);
  } catch (const Error& e) {
    return out.str() + e.what();
  }
  return out.str();
}
// Compares the effects of f with those of the compiled f, for each x.
void check_effects(const Function& f, std::ostringstream& out, std::span<const Tensor> all) {
  const auto recorded = compile(f);
  for (int call = 0; call < 2; ++call)
    for (const Tensor& x : all) {
      CAPTURE(x);
      const std::string eager = effects_of(f, out, x);
      CHECK(effects_of(recorded, out, x) == eager);
    }
}
const Tensors kNumbers = {tensor(2.0), tensor(-3.0), tensor(0.25), tensor(-0.5), tensor(5.0)};

// Compares the effects of f, and of functions that compute its first derivatives.
void check_effects_to_first_order(const Function& f, std::ostringstream& out) {
  SECTION("values") { check_effects(f, out, kNumbers); }
  SECTION("no results are read") {
    check_effects(
        [&](const Tensor& x) {
          (void)f(x);
          return print(x, "x ", out);
        },
        out, kNumbers);
  }
  const auto gradient_of = [&](const Tensor& x) {
    GradientTape tape;
    tape.watch(x);
    const Tensor y = f(x);
    print(y, "y ", out);
    return tape.gradient(y, x).dense();
  };
  SECTION("gradients") { check_effects(gradient_of, out, kNumbers); }
  SECTION("gradients that are not read") {
    check_effects(
        [&](const Tensor& x) {
          (void)gradient_of(x);
          return x + 1;
        },
        out, kNumbers);
  }
  SECTION("tangents") {
    check_effects(
        [&](const Tensor& x) {
          const ForwardAccumulator forward(x, tensor(1.0));
          return forward.jvp(f(x)).dense();
        },
        out, kNumbers);
  }
}
void check_effects_of_second_order(const Function& f, std::ostringstream& out) {
  SECTION("second derivatives") {
    check_effects(
        [&](const Tensor& x) {
          GradientTape outer;
          outer.watch(x);
          GradientTape tape;
          tape.watch(x);
          const Tensor dx = tape.gradient(f(x), x).dense();
          return outer.gradient(dx, x).dense();
        },
        out, kNumbers);
  }
}

TEST_CASE("assertions of a branch whose result nobody reads", "[recorded][branches][effects]") {
  const auto f = compile([](const Tensor& x) {
    (void)cond(
        x > 0, {x},
        [](const Tensor& t) {
          assert_that(t < 4.0, "too large");
          return t * 2;
        },
        [](const Tensor& t) { return t; });
    (void)cond(
        x > 0, {x}, [](const Tensor&) { return Tensors(); },
        [](const Tensor& t) {
          assert_that(t > -2.0, "too small");
          return Tensors();
        });
    return x + 1;
  });
  CHECK(f(tensor(1.0)).item() == 2);
  CHECK(f(tensor(-1.0)).item() == 0);
  CHECK_THAT(message_of<ArgumentError>([&] { f(tensor(5.0)); }), Catch::Contains("too large"));
  CHECK(f(tensor(3.0)).item() == 4);
  CHECK_THAT(message_of<ArgumentError>([&] { f(tensor(-3.0)); }), Catch::Contains("too small"));
  CHECK(f(tensor(-1.5)).item() == -0.5);
  CHECK(f.programs().size() == 1);
}

TEST_CASE("effects of branches occur as in eager calls", "[recorded][branches][effects]") {
  std::ostringstream out;
  const auto branch = [&out](const Tensor& x) {
    return cond(
        x > 0, {x},
        [&out, x](const Tensor& t) {
          print(t, "positive ", out);
          assert_that(x < 4.0, "too large");
          return print(t * t, "square ", out) * t;
        },
        [&out](const Tensor& t) {
          (void)cond(
              t < -1, {t},
              [&out](const Tensor& u) {
                print(u, "inner ", out);
                return Tensors();
              },
              [](const Tensor&) { return Tensors(); });
          return check_numerics(sqrt(t + 1), "root");
        });
  };
  check_effects_to_first_order(branch, out);
  check_effects_of_second_order(branch, out);
  SECTION("tangents of gradients") {
    check_effects(
        [&](const Tensor& x) {
          const ForwardAccumulator forward(x, tensor(1.0));
          GradientTape tape;
          tape.watch(x);
          return forward.jvp(tape.gradient(branch(x), x).dense()).dense();
        },
        out, kNumbers);
  }
}

TEST_CASE("a gradient through check_numerics in a branch is checked", "[recorded][branches][effects]") {
  std::ostringstream out;
  const auto f = [](const Tensor& x) {
    GradientTape tape;
    tape.watch(x);
    const Tensor y = cond(
        x >= 0, {x}, [](const Tensor& t) { return sqrt(check_numerics(t, "operand")); },
        [](const Tensor& t) { return t; });
    (void)tape.gradient(y, x);
    return y;
  };
  const Tensors all = {tensor(4.0), tensor(0.0), tensor(-1.0), tensor(1.0)};
  check_effects(f, out, all);
  CHECK_THAT(message_of<ArgumentError>([&] { f(all[1]); }), Catch::Contains("gradient of operand"));
}

TEST_CASE("effects of a gradient function in a branch occur with the gradient",
          "[recorded][branches][effects]") {
  std::ostringstream out;
  const auto shown_cube = [&out](const Tensor& u) {
    return custom_gradient([&out](const Tensor& v) {
      print(v, "forward ", out);
      return std::pair(v * v * v, [v, &out](const Tensor& dy) {
        print(v, "backward ", out);
        return dy * v * v * 3;
      });
    })(u);
  };
  const auto branch = [shown_cube](const Tensor& x) {
    return cond(x > 0, {x}, shown_cube, [](const Tensor& u) { return u * u; });
  };
  const auto branch_with_gradient = [shown_cube](const Tensor& x) {
    return cond(
        x > 0, {x},
        [shown_cube](const Tensor& u) {
          GradientTape tape;
          tape.watch(u);
          return tape.gradient(shown_cube(u), u).dense() * u;
        },
        [](const Tensor& u) { return u * u; });
  };
  const auto loop = [shown_cube](const Tensor& x) {
    return fori_loop(0, 2, [=](const Tensor&, const Tensor& t) { return shown_cube(t) * 0.5; }, {x});
  };
  const auto derivative = [&out](const auto& f) {
    return [&out, f](const Tensor& x) {
      GradientTape tape;
      tape.watch(x);
      const Tensor y = f(x);
      print(y, "between ", out);
      return tape.gradient(y, x).dense();
    };
  };
  SECTION("of a branch") { check_effects(derivative(branch), out, kNumbers); }
  SECTION("of a branch, twice") { check_effects(derivative(derivative(branch)), out, kNumbers); }
  SECTION("of a branch, three times") {
    check_effects(derivative(derivative(derivative(branch))), out, std::span(kNumbers).first(1));
  }
  SECTION("in a branch and around it") { check_effects(derivative(branch_with_gradient), out, kNumbers); }
  SECTION("in a branch and around it, twice") {
    check_effects(derivative(derivative(branch_with_gradient)), out, kNumbers);
  }
  SECTION("of a loop") { check_effects(derivative(loop), out, kNumbers); }
  SECTION("that runs its function again") {
    const auto again = [&out](const Tensor& t) {
      return recompute_grad([&out](const Tensor& u) {
        print(u, "again ", out);
        return sin(u) * u;
      })(t);
    };
    check_effects(derivative([again](const Tensor& x) {
                    const Tensor y = cond(x > 0, {x}, again, [](const Tensor& t) { return t; });
                    return fori_loop(0, 3, [again](const Tensor&, const Tensor& t) { return again(t); }, {y});
                  }),
                  out, kNumbers);
  }
}

TEST_CASE("effects of steps occur as in eager calls", "[recorded][loops][effects]") {
  std::ostringstream out;
  const auto scan_of = [&out](const Tensor& x) {
    return scan(
        [&out](const Tensor& s, const Tensor& t) {
          print(s, "step ", out);
          assert_that(s < 40.0, "too large");
          const Tensor next = s + t * s;
          return std::pair(next,
                           cond(
                               t > 2, {next}, [&out](const Tensor& u) { return print(u, "late ", out) * u; },
                               [](const Tensor& u) { return u; }));
        },
        {x}, {tensor({1.0, 2.0, 3.0})});
  };
  const auto while_of = [&out](const Tensor& x) {
    return while_loop([&out](const Tensor& t) { return print(t, "while ", out) < 6; },
                      [&out](const Tensor& t) {
                        assert_that(t > -2.0, "too small");
                        return check_numerics(print(t * t + 1, "next ", out), "next");
                      },
                      {x});
  };
  const auto fori_of = [&out](const Tensor& x) {
    return fori_loop(0, 40,
                     [&out](const Tensor& i, const Tensor& t) {
                       print(i, "i ", out);
                       assert_that(t < 5.1, "grows");
                       return t + 0.01;
                     },
                     {x});
  };
  SECTION("scan") {
    const auto last = [&](const Tensor& x) { return scan_of(x).first; };
    check_effects_to_first_order(last, out);
    check_effects_of_second_order(last, out);
  }
  SECTION("scan, outputs") {
    const auto outputs = [&](const Tensor& x) { return sum(scan_of(x).second); };
    check_effects_to_first_order(outputs, out);
    check_effects_of_second_order(outputs, out);
  }
  SECTION("while_loop") { check_effects_to_first_order(while_of, out); }
  SECTION("fori_loop") {
    check_effects_to_first_order(fori_of, out);
    check_effects_of_second_order(fori_of, out);
  }
  SECTION("a while_loop in a branch in a scan") {
    check_effects_to_first_order(
        [&](const Tensor& x) {
          return scan(
              [&](const Tensor& s, const Tensor& t) {
                return cond(
                    s > t, {s}, [&](const Tensor& u) { return while_of(u) * 0.5; },
                    [&](const Tensor& u) { return print(u + 1, "other ", out); });
              },
              {x}, {tensor({0.0, 2.0, 4.0})});
        },
        out);
  }
}

TEST_CASE("a scan without results that anything reads has its effects", "[recorded][loops][effects]") {
  std::ostringstream out;
  SECTION("outputs that are not read") {
    check_effects(
        [&](const Tensor& x) {
          (void)scan([&out](const Tensor& t) { return print(t, "t ", out) * 2; }, {},
                     {x * tensor({1.0, 2.0})});
          return x;
        },
        out, kNumbers);
  }
  SECTION("no results") {
    check_effects(
        [&](const Tensor& x) {
          (void)scan(
              [&out](const Tensor& t) {
                print(t, "t ", out);
                return Tensors();
              },
              {}, {x * tensor({1.0, 2.0})});
          return x;
        },
        out, kNumbers);
  }
  SECTION("of constants") {
    check_effects(
        [&](const Tensor& x) {
          (void)scan([&out](const Tensor& s, const Tensor& t) { return print(s + t, "sum ", out); },
                     {tensor(0.0)}, {tensor({1.0, 2.0})});
          return x;
        },
        out, kNumbers);
  }
}

TEST_CASE("with snapshots, effects of steps occur once in a recording", "[recorded][loops][effects]") {
  std::ostringstream out;
  const auto gradient = [&out](std::int64_t snapshots) {
    return [&out, snapshots](const Tensor& x) {
      GradientTape tape;
      tape.watch(x);
      const Tensor y = fori_loop(0, 6,
                                 [&out](const Tensor& i, const Tensor& t) {
                                   print(i, "i ", out);
                                   return sin(t) + 1;
                                 },
                                 {x}, {.snapshots = snapshots});
      return tape.gradient(y, x).dense();
    };
  };
  const auto recorded = compile(gradient(2));
  for (const Tensor& x : kNumbers) {
    const std::string once = effects_of(gradient(0), out, x);
    CHECK(effects_of(recorded, out, x) == once);
    CHECK(effects_of(gradient(2), out, x).size() > once.size());
    CHECK(same_bits(recorded(x), gradient(2)(x)));
  }
}

// f throws a TraceError of this text when it is recorded, also if it catches it.
void check_refused(const std::string& text, const Function& f) {
  CAPTURE(text);
  CHECK_THAT(message_of<TraceError>([&] { compile(f)(tensor(2.0)); }), Catch::Contains(text));
  const auto caught = compile([f](const Tensor& x) {
    try {
      return f(x);
    } catch (const TraceError&) {
      return x;
    }
  });
  CHECK_THAT(message_of<TraceError>([&] { caught(tensor(2.0)); }), Catch::Contains(text));
}

TEST_CASE("a tape from outside must not be used in a branch or a step",
          "[recorded][branches][loops][errors]") {
  // use(tape, y, x) is called in a branch, and in a step.
  const auto check = [](const std::string& name, const auto& use, TapeOptions options = {}) {
    const std::string text = name + " of a tape from outside of a branch or a loop is called inside of it";
    const auto inside = [use](const auto& tape) {
      return [use, tape](const Tensor& t) {
        const Tensor y = t * t;
        use(*tape, y, t);
        return y;
      };
    };
    const auto made = [options](const Tensor& x) {
      const auto tape = std::make_shared<GradientTape>(options);
      tape->watch(x);
      return tape;
    };
    check_refused(text, [=](const Tensor& x) {
      return cond(
          x > 0, {x}, [](const Tensor& t) { return t; }, inside(made(x)));
    });
    check_refused(text, [=](const Tensor& x) {
      return while_loop([](const Tensor& t) { return t < 100; }, inside(made(x)), {x});
    });
    check_refused(text, [=](const Tensor& x) {   // a tape of the branch in a step of a loop in it
      return cond(
          x > 0, {x},
          [=](const Tensor& u) {
            return fori_loop(0, 3, [f = inside(made(u))](const Tensor&, const Tensor& t) { return f(t); },
                             {u});
          },
          [](const Tensor& u) { return u; });
    });
  };
  check("watch", [](GradientTape& tape, const Tensor&, const Tensor& x) { tape.watch(x); });
  const Variable v(tensor(1.0));
  check("watch", [v](GradientTape& tape, const Tensor&, const Tensor&) { tape.watch(v); });
  check("gradient", [](GradientTape& tape, const Tensor& y, const Tensor& x) { (void)tape.gradient(y, x); });
  check("gradient", [](GradientTape& tape, const Tensor& y, const Tensor& x) { (void)tape.jacobian(y, x); });
  check("depends", [](GradientTape& tape, const Tensor& y, const Tensor& x) { (void)tape.depends(y, x); });
  check("stop", [](GradientTape& tape, const Tensor&, const Tensor&) { tape.stop(); });
  check("start", [](GradientTape& tape, const Tensor&, const Tensor&) { tape.start(); });
  check("reset", [](GradientTape& tape, const Tensor&, const Tensor&) { tape.reset(); });
  check("StopRecording",
        [](GradientTape& tape, const Tensor&, const Tensor&) { const StopRecording stop(tape); });
  check("gradient", [](GradientTape&, const Tensor& y, const Tensor& x) { (void)gradients(y, x); },
        {.persistent = true});
  const auto around = std::make_shared<GradientTape>();   // around the compiled function
  around->stop();
  check_refused("start of a tape from outside", [around](const Tensor& x) {
    return cond(
        x > 0, {x},
        [around](const Tensor& t) {
          around->start();
          return t;
        },
        [](const Tensor& t) { return t; });
  });
}

TEST_CASE("an accumulator from outside must not be used in a branch", "[recorded][branches][errors]") {
  const auto check = [](const std::string& name, const auto& use) {
    check_refused(name + " of an accumulator from outside of a branch or a loop", [use](const Tensor& x) {
      const auto forward = std::make_shared<ForwardAccumulator>(x, tensor(1.0));
      return cond(
          x > 0, {x},
          [use, forward](const Tensor& t) {
            const Tensor y = t * t;
            use(*forward, y);
            return y;
          },
          [](const Tensor& t) { return t; });
    });
  };
  check("jvp", [](ForwardAccumulator& forward, const Tensor& y) { (void)forward.jvp(y); });
  check("watch", [](ForwardAccumulator& forward, const Tensor& y) { forward.watch(y, y); });
  check("stop", [](ForwardAccumulator& forward, const Tensor&) { forward.stop(); });
  check("start", [](ForwardAccumulator& forward, const Tensor&) { forward.start(); });
}

TEST_CASE("tapes of the function of a branch are used in it", "[recorded][branches][loops]") {
  const auto f = [](const Tensor& x) {
    const auto cubes = [](const Tensor& t) {
      GradientTape tape({.persistent = true});
      tape.watch(t);
      const Tensor y = t * t * t;
      const Tensor dy = tape.gradient(y, t).dense();
      tape.reset();
      tape.watch(t);
      const Tensor inner = cond(
          t > 1, {t},
          [](const Tensor& u) {
            GradientTape own;
            own.watch(u);
            const ForwardAccumulator forward(u, tensor(1.0));
            const Tensor z = u * u;
            return own.gradient(z, u).dense() + forward.jvp(z).dense();
          },
          [](const Tensor& u) { return u; });
      tape.stop();
      const Tensor unseen = t * 7;
      tape.start();
      return dy + tape.gradient(inner + unseen, t).dense();
    };
    GradientTape tape;
    tape.watch(x);
    const Tensor y = cond(x > 0, {x}, cubes, [](const Tensor& t) { return t; });
    const Tensor z = fori_loop(0, 3, [=](const Tensor&, const Tensor& t) { return cubes(t) * 0.25; }, {y});
    return std::pair(z, tape.gradient(z, x).dense());
  };
  const auto recorded = compile(f);
  for (const double x : {0.5, 1.5, -1.0, 2.0}) {
    CHECK(same_bits(recorded(tensor(x)).first, f(tensor(x)).first));
    CHECK(same_bits(recorded(tensor(x)).second, f(tensor(x)).second));
  }
}

TEST_CASE("what a branch or a step computes while recording is stopped has no gradient",
          "[recorded][branches][loops]") {
  const auto f = [](const Tensor& x) {
    GradientTape tape;
    tape.watch(x);
    const ForwardAccumulator forward(x, tensor(1.0));
    const auto stopped = [x](const Tensor& t) {
      Tensor factor;
      {
        const StopRecording stop;
        factor = t * t * x;
      }
      return factor * t;
    };
    const Tensor y = cond(x > 0, {x}, stopped, [](const Tensor& t) { return t; });
    const Tensor z = fori_loop(0, 2, [=](const Tensor&, const Tensor& t) { return stopped(t) * 0.5; }, {y});
    const Tensor tangent = forward.jvp(z).dense();
    return Tensors{z, tangent, tape.gradient(z, x).dense()};
  };
  const auto recorded = compile(f);
  for (const double x : {0.5, 1.5, -1.0, 2.0})
    for (std::size_t k = 0; k < 3; ++k)
      CHECK(same_bits(recorded(tensor(x))[k], f(tensor(x))[k]));
}

TEST_CASE("the checks of a branch or a step run in each replay", "[recorded][branches][loops]") {
  const auto f = compile([](const Tensor& p, const Tensor& x) {
    const Tensor y = cond(
        p, {x}, [](const Tensor& u) { return check_numerics(log(u), "a branch"); },
        [](const Tensor& u) { return u; });
    return scan([](const Tensor& u) { return check_numerics(sqrt(u), "a step"); }, {y}, {}, {.length = 2});
  });
  for (int call = 0; call < 2; ++call) {
    CHECK(f(tensor(true), tensor(1.0)).item() == 0);
    CHECK_THAT(message_of<Error>([&] { f(tensor(true), tensor(-1.0)); }), Catch::Contains("a branch"));
    CHECK(f(tensor(false), tensor(1.0)).item() == 1);
    CHECK_THAT(message_of<Error>([&] { f(tensor(false), tensor(-1.0)); }), Catch::Contains("a step"));
  }
}

TEST_CASE("an op of constants throws only in the branch that is taken", "[recorded][branches]") {
  const Tensor c = tensor({1.0, 2.0});
  const auto f = compile([c](const Tensor& p, const Tensor& x) {
    return cond(
        p, {x}, [c](const Tensor& u) { return u * gather(c, tensor(7)); },
        [](const Tensor& u) { return 2 * u; });
  });
  for (int call = 0; call < 2; ++call) {
    CHECK(f(tensor(false), tensor(3.0)).item() == 6);
    CHECK_THROWS_AS(f(tensor(true), tensor(3.0)), Error);
  }
}

TEST_CASE("declared outputs and undefined operands of recorded branches", "[recorded][branches][errors]") {
  const auto same = [](const Tensor& u) { return u; };
  const auto declared = compile([same](const Tensor& p, const Tensor& x) {
    return cond(p, {x}, same, same, {.outputs = {{DType::f64, {}}}});
  });
  CHECK(message_of<DTypeError>([&] { declared(tensor(true), tensor(1.0)); }) ==
        "cond: output 0 is f32[], f64[] was declared");
  const auto f = [](const Tensor& p, const Tensor& x, const Tensor& y) {
    const auto of = [](const Tensor& a, const Tensor& none, const Tensor& b) {
      return none.defined() ? -a : a - 2 * b;
    };
    return cond(p, {x, Tensor(), y}, of, [](const Tensor& a, const Tensor& none, const Tensor& b) {
      return none.defined() ? -a : 3 * a + b;
    });
  };
  const auto recorded = compile(f);
  for (int call = 0; call < 2; ++call)
    for (const bool p : {true, false})
      CHECK(recorded(tensor(p), tensor(5.0), tensor(1.0)).item() == (p ? 3 : 16));
}

TEST_CASE("branches assign a variable twice, and other variables", "[recorded][branches]") {
  const Variable v(tensor(1.0)), w(tensor(10.0)), z(tensor(100.0));
  const auto f = [=](const Tensor& p, const Tensor& x) {
    const Tensor y = cond(
        p, {x},
        [=](const Tensor& u) {
          v.assign(2 * u), v.assign(v + 1), w.assign(u);
          return u;
        },
        [=](const Tensor& u) {
          z.assign(3 * u);
          return u * v;
        });
    return y + v + w + z;
  };
  const auto recorded = compile(f);
  const auto run = [&](const auto& g, bool p) {
    v.assign(tensor(1.0)), w.assign(tensor(10.0)), z.assign(tensor(100.0));
    const double y = g(tensor(p), tensor(5.0)).item();
    return std::vector{y, v.value().item(), w.value().item(), z.value().item()};
  };
  for (int call = 0; call < 2; ++call) {
    CHECK(run(recorded, true) == std::vector<double>{121, 11, 5, 100});
    CHECK(run(recorded, false) == std::vector<double>{31, 1, 10, 15});
  }
  CHECK(run(f, true) == run(recorded, true));
  CHECK(run(f, false) == run(recorded, false));
}

TEST_CASE("a branch and a step read parts of captured tensors", "[recorded][branches][loops]") {
  const auto recorded = compile([](const Tensor& p, const Tensor& x) {
    const Tensor t = 2 * x;
    const Tensor y = cond(
        p, {x},
        [t](const Tensor& u) {
          return u * t[1] + reshape(t, {1, 2})[0];
        },
        [t](const Tensor& u) { return u * t[0]; });
    return scan([t](const Tensor& u) { return u + t[1]; }, {y}, {}, {.length = 2});
  });
  for (const float k : {1.0F, 2.0F}) {
    const Tensor x = k * tensor({1.0, 3.0});
    CHECK(recorded(tensor(true), x).to_vector() ==
          std::vector<double>{6 * k * k + 14 * k, 18 * k * k + 18 * k});
    CHECK(recorded(tensor(false), x).to_vector() ==
          std::vector<double>{2 * k * k + 12 * k, 6 * k * k + 12 * k});
  }
}

TEST_CASE("a recorded loop with back_prop = false has no gradient", "[recorded][loops]") {
  const auto f = [](const Tensor& x) {
    GradientTape tape;
    tape.watch(x);
    const auto step = [](const Tensor& t) { return t * t; };
    const Tensor y = while_loop([](const Tensor& t) { return t < 10; }, step, {x}, {.back_prop = false});
    const Tensor z = fori_loop(0, 2, [step](const Tensor&, const Tensor& t) { return step(t); }, {x},
                               {.back_prop = false});
    return tape.gradient(y * z * x, x).dense();
  };
  const auto recorded = compile(f);
  CHECK(f(tensor(2.0)).item() == 256);
  for (int call = 0; call < 2; ++call)
    CHECK(recorded(tensor(2.0)).item() == 256);
}

TEST_CASE("what a branch or a step must not do in a recording", "[recorded][branches][loops][errors]") {
  const auto in_branch = [](auto f) {
    return message_of<TraceError>([&] {
      compile([f](const Tensor& p, const Tensor& x) {
        return cond(
            p, {x}, [f](const Tensor& u) { return f(u); }, [](const Tensor& u) { return u; });
      })(tensor(true), tensor(1.0));
    });
  };
  const Variable v(tensor(1.0));
  CHECK_THAT(in_branch([](const Tensor& u) {
               const Variable made(u);
               return made * 2;
             }),
             Catch::Contains("a branch or a loop creates a variable"));
  CHECK_THAT(
      in_branch([v](const Tensor& u) {
        return GradientDescent({.learning_rate = 0.1}).minimize([&] { return u * v; }, {.variables = {{v}}});
      }),
      Catch::Contains("destroyed or moved"));
  // A step that does something else when it is recorded once more for its gradient.
  int runs = 0;
  CHECK_THAT(message_of<TraceError>([&] {
               compile([&runs, v](const Tensor& x) {
                 GradientTape tape;
                 tape.watch(x);
                 return scan(
                     [&runs, v](const Tensor& u) {
                       if (runs++ == 0) v.assign(u);
                       return u * u;
                     },
                     {x}, {}, {.length = 2});
               })(tensor(1.0));
             }),
             Catch::Contains("in one run and not in another"));
  CHECK(v.value().item() == 1);
  const auto few = compile([](const Tensor& x) {
    GradientTape tape;
    tape.watch(x);
    return fori_loop(0, 102, [](const Tensor&, const Tensor& t) { return t * 1.0; }, {x}, {.snapshots = 1});
  });
  CHECK_THAT(message_of<ArgumentError>([&] { few(tensor(1.0)); }),
             Catch::Contains("would run some of them 101 times; use 2 or more"));
}

}   // namespace inner_recordings_test
