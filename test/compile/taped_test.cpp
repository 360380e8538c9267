// Compiled functions under tapes and accumulators of the caller. Every call is compared with the function
// itself: results bit by bit, gradients where no more than two terms add up also, others up to rounding.
// The first two calls run the function; later ones are one op for the recorders.
#include <catch2/catch.hpp>
#include <cmath>
#include <optional>
#include <thread>

#include "closeness.h"
#include "compile/unchanged.h"
#include "tapedeck/compile.h"
#include "tapedeck/tapedeck.h"

using namespace tapedeck;

namespace taped_test {
namespace {

Tensor numbers(std::uint64_t i, Shape shape = {2, 3}) {
  return random::normal(shape, {.seed = 5, .stream = i});
}
bool close(const Tensor& a, const Tensor& b, double tolerance = 1e-6) {
  return a.spec() == b.spec() && max(abs(a - b)).item() <= tolerance * (1 + max(abs(b)).item());
}
template <class F> Compiled<F> one_op(F f) { return compile(std::move(f), {.as_one_op = true}); }

void watch(GradientTape& tape, const Tensor& x) {
  if (is_trainable(x.dtype())) tape.watch(x);
}
void watch(GradientTape&, const random::Key&) {}
// Whether the third call with these arguments, which are different tensors, is one op for a tape, besides
// reads of variables.
template <class F, class... X> bool is_one_op(const F& f, const X&... x) {
  bool is_one = false;
  for (int call = 0; call < 3; ++call) {
    GradientTape tape;
    (watch(tape, x), ...);
    const auto y = f(x...);   // as long as it is there, the tape keeps its ops
    std::vector<RecordedOp> ops = tape.recorded();
    std::erase_if(ops, [](const RecordedOp& op) { return op.name == "read_variable"; });
    is_one = ops.size() == 1 && ops[0].name == "function function";
  }
  return is_one;
}

}   // namespace

TEST_CASE("under a tape of the caller a compiled function is one op from the third call on",
          "[recorded][taped]") {
  int runs = 0;
  const auto f = one_op([&](const Tensor& x) {
    ++runs;
    return exp(x) * x;
  });
  for (int call = 0; call < 6; ++call) {
    const Tensor x = numbers(static_cast<std::uint64_t>(call));
    GradientTape tape;
    tape.watch(x);
    const Tensor y = f(x);
    CHECK(same_bits(y, exp(x) * x));
    CHECK(same_bits(tape.gradient(y, x).dense(), exp(x) * x + exp(x)));
  }
  CHECK(runs == 4);   // two calls, and two recordings
}

TEST_CASE("tapes differentiate a compiled function to any order", "[recorded][taped]") {
  const auto plain = [](const Tensor& x, const Tensor& a) { return sum(sin(x * a) * x); };
  const auto f = one_op(plain);
  const auto derivatives = [](const auto& g, const Tensor& x, const Tensor& a) {
    GradientTape outer({.persistent = true}), middle({.persistent = true}), inner;
    outer.watch(x), middle.watch(x), inner.watch(x);
    outer.watch(a), middle.watch(a), inner.watch(a);
    const auto first = inner.gradient(g(x, a), std::vector<Tensor>{x, a});
    const Tensor s = sum(first[0].dense() * first[1].dense());
    const auto second = middle.gradient(s, std::vector<Tensor>{x, a});
    const Tensor t = sum(second[0].dense()) + sum(second[1].dense());
    const auto third = outer.gradient(t, std::vector<Tensor>{x, a});
    return std::vector<Tensor>{first[0], first[1], second[0], second[1], third[0], third[1]};
  };
  for (std::uint64_t call = 0; call < 8; ++call) {
    const Tensor x = numbers(call), a = numbers(call + 100);
    const auto got = derivatives(f, x, a), wanted = derivatives(plain, x, a);
    for (std::size_t k = 0; k < got.size(); ++k)
      CHECK(close(got[k], wanted[k], 1e-5));
  }
  CHECK(is_one_op(f, numbers(0), numbers(1)));
}

TEST_CASE("tangents and tapes around tangents of a compiled function", "[recorded][taped]") {
  const auto plain = [](const Tensor& x) { return tanh(x) * exp(x); };
  const auto f = one_op(plain);
  const auto run = [](const auto& g, const Tensor& x, const Tensor& v) {
    GradientTape tape;
    tape.watch(x);
    const ForwardAccumulator forward(x, v);
    const Tensor y = g(x);
    const Tensor jv = forward.jvp(y).dense();
    return std::vector<Tensor>{y, jv, tape.gradient(sum(jv), x)};
  };
  for (std::uint64_t call = 0; call < 8; ++call) {
    const Tensor x = numbers(call), v = numbers(call + 50);
    const auto got = run(f, x, v), wanted = run(plain, x, v);
    CHECK(same_bits(got[0], wanted[0]));
    CHECK(close(got[1], wanted[1]));
    CHECK(close(got[2], wanted[2], 1e-5));
    const ForwardAccumulator alone(x, v);
    CHECK(close(alone.jvp(f(x)).dense(), wanted[1]));
  }
  CHECK(is_one_op(f, numbers(0)));
}

TEST_CASE("variables and captured tensors of a compiled function get gradients of the caller's tape",
          "[recorded][taped]") {
  Variable w(numbers(1)), idle(numbers(2), {.trainable = false});
  const Tensor c = numbers(3);
  const auto plain = [&](const Tensor& x) { return sum(w * x * c + idle); };
  const auto f = one_op(plain);
  for (std::uint64_t call = 0; call < 8; ++call) {
    const Tensor x = numbers(call + 10);
    const auto run = [&](const auto& g) {
      GradientTape tape;
      tape.watch(c);
      const Tensor y = g(x);
      auto d = tape.gradient(y, std::vector<Source>{w, c, idle, x});
      CHECK(!d[2].defined());
      CHECK(!d[3].defined());
      return std::vector<Tensor>{y, d[0], d[1]};
    };
    const auto got = run(f), wanted = run(plain);
    for (std::size_t k = 0; k < got.size(); ++k)
      CHECK(same_bits(got[k], wanted[k]));
    w -= 0.1 * got[1];
  }
  CHECK(is_one_op(f, numbers(0)));
}

TEST_CASE("gradients through a compiled function stay sparse, or none", "[recorded][taped]") {
  Variable table(numbers(1, {7, 3}));
  const auto f =
      one_op([&](const Tensor& rows, const Tensor& x) { return std::pair(gather(table, rows), x * 2.0); });
  for (std::uint64_t call = 0; call < 5; ++call) {
    const Tensor rows = tensor({1, static_cast<int>(call), 1}), x = numbers(call);
    GradientTape tape({.persistent = true});
    tape.watch(x);
    const auto [picked, twice] = f(rows, x);
    const auto d = tape.gradient(sum(picked * picked), std::vector<Source>{table, x});
    REQUIRE(d[0].slices());
    CHECK(same_bits(d[0].slices()->indices, rows));
    CHECK(same_bits(d[0].slices()->values, picked * 2));
    CHECK(!d[1].defined());
    const auto e = tape.gradient(twice, std::vector<Source>{table, x});
    CHECK(!e[0].defined());
    CHECK(same_bits(e[1].dense(), full(x.shape(), 2.0, x.dtype())));
    const auto both = tape.gradient(Targets{picked, twice}, std::vector<Source>{table, x});
    CHECK(both[0].slices());
    CHECK(both[1].defined());
  }
  CHECK(is_one_op(f, tensor({1, 2, 3}), numbers(0)));
}

TEST_CASE("a compiled function that assigns variables does it once under a tape", "[recorded][taped]") {
  struct Model {
    Variable average{zeros({3})}, count{tensor(0.0)}, w{ones({3})};
    Tensor operator()(const Tensor& x) {
      average.assign(average * 0.5 + mean(x, 0) * w * 0.5);
      count += 1.0;
      return sum((x - average) * x);
    }
  };
  Model compiled, plain;
  const auto f = one_op([&](const Tensor& x) { return compiled(x); });
  for (std::uint64_t call = 0; call < 6; ++call) {
    const Tensor x = numbers(call);
    const auto run = [&](const auto& g, const Model& m) {
      GradientTape tape;
      tape.watch(x);
      const Tensor y = g(x);
      const auto d = tape.gradient(y, std::vector<Source>{x, m.w, m.average});
      CHECK(!d[1].defined());   // no gradient passes through an assignment
      return std::vector<Tensor>{y, m.average, m.count, d[0], d[2]};
    };
    const auto got = run(f, compiled), wanted = run([&](const Tensor&t) { return plain(t); }, plain);
    for (std::size_t k = 0; k < got.size(); ++k)
      CHECK(close(got[k], wanted[k]));
    CHECK(same_bits(got[1], wanted[1]));
    CHECK(same_bits(got[2], wanted[2]));
  }
  CHECK(is_one_op(f, numbers(0)));
}

TEST_CASE("nested tapes around a compiled function that assigns variables", "[recorded][taped]") {
  Variable count(tensor(0.0));
  const auto f = one_op([&](const Tensor& x) {
    count += 1.0;
    return x * x * x;
  });
  for (int call = 0; call < 5; ++call) {
    const Tensor x = tensor(2.0);
    GradientTape outer, inner;
    outer.watch(x), inner.watch(x);
    const Tensor dx = inner.gradient(f(x), x);
    CHECK(dx.item() == 12);
    CHECK(outer.gradient(dx, x).dense().item() == 12);
    CHECK(count.value().item() == call + 1);
  }
}

TEST_CASE("one tensor as two arguments of a compiled function under a tape", "[recorded][taped]") {
  const auto plain = [](const Tensor& a, const Tensor& b) {
    GradientTape tape;   // whose gradient depends on whether the two are one
    tape.watch(a);
    return tape.gradient(a * a * b, a).dense();
  };
  const auto f = one_op(plain);
  for (std::uint64_t call = 0; call < 10; ++call) {
    const Tensor x = numbers(call), y = call % 2 ? x : numbers(call + 20);
    const auto run = [&](const auto& g) {
      GradientTape tape;
      tape.watch(x);
      if (y.id() != x.id()) tape.watch(y);
      const Tensor z = g(x, y);
      return std::pair(z, tape.gradient(z, x).dense());
    };
    CHECK(close(run(f).first, run(plain).first));
    CHECK(close(run(f).second, run(plain).second));
  }
  CHECK(is_one_op(f, numbers(0), numbers(1)));
}

TEST_CASE("results that are arguments, captured tensors, variables, or undefined, under a tape",
          "[recorded][taped]") {
  const Tensor c = numbers(1);
  Variable v(numbers(2));
  const auto plain = [&](const Tensor& x) {
    return std::vector<Tensor>{x, c, v, Tensor(), x, astype(x, DType::i32), x * v * c};
  };
  const auto f = one_op(plain);
  for (std::uint64_t call = 0; call < 5; ++call) {
    const Tensor x = numbers(call + 3);
    const auto run = [&](const auto& g) {
      GradientTape tape({.persistent = true});
      tape.watch(x), tape.watch(c);
      const std::vector<Tensor> y = g(x);
      tape.stop();
      std::vector<Gradient> all;
      REQUIRE(y.size() == 7);
      CHECK(!y[3].defined());
      for (const std::size_t k : std::vector<std::size_t>{0, 1, 2, 4, 6})
        for (const Source& s : std::vector<Source>{x, c, v})
          all.push_back(tape.gradient(y[k], s));
      for (Gradient& d : tape.gradient(Targets{y[0], y[4], y[6]}, std::vector<Source>{x, c, v}))
        all.push_back(d);
      CHECK(same_bits(y[5], astype(x, DType::i32)));
      return all;
    };
    const auto got = run(f), wanted = run(plain);
    for (std::size_t k = 0; k < got.size(); ++k) {
      CAPTURE(k, call);
      REQUIRE(got[k].defined() == wanted[k].defined());
      if (wanted[k].defined()) CHECK(close(got[k], wanted[k]));
    }
  }
  CHECK(is_one_op(f, numbers(0)));
}

TEST_CASE("cotangents that are missing are not zeros that meet infinities", "[recorded][taped]") {
  const auto f = one_op([](const Tensor& x) { return std::pair(sqrt(x), x * 2.0); });
  for (int call = 0; call < 5; ++call) {
    const Tensor x = tensor({0.0, 1.0});
    GradientTape tape;
    tape.watch(x);
    const auto [root, twice] = f(x);
    CHECK(same_bits(tape.gradient(twice, x).dense(), tensor({2.0, 2.0})));
  }
  CHECK(is_one_op(f, numbers(0)));
}

TEST_CASE("Jacobians, Hessians and gradients() through a compiled function", "[recorded][taped]") {
  const auto plain = [](const Tensor& x) { return sin(x) * cumsum(x * x, 0); };
  const auto f = one_op(plain);
  const auto scalar = one_op([&](const Tensor& x) { return sum(plain(x) * x); });
  for (std::uint64_t call = 0; call < 5; ++call) {
    const Tensor x = numbers(call, {4});
    for (const JacobianMode mode : {JacobianMode::forward, JacobianMode::reverse})
      CHECK(close(jacobian(f, x, {.mode = mode}), jacobian(plain, x)));
    CHECK(close(hessian(scalar, x), hessian([&](const Tensor& t) { return sum(plain(t) * t); }, x), 1e-5));
    GradientTape a, b;
    a.watch(x), b.watch(x);
    CHECK(close(a.jacobian(f(x), x), b.jacobian(plain(x), x)));
  }
  CHECK(is_one_op(f, numbers(0, {4})));
}

TEST_CASE("control flow and keys in a compiled function under a tape", "[recorded][taped]") {
  const auto plain = [](const Tensor& x, const Tensor& n, const random::Key& key) {
    const Tensor noise = random::normal(x.shape(), key.split(1));
    const Tensor y = cond(
        sum(x) > 0.0, {x}, [&](const Tensor& t) { return t * noise; },
        [](const Tensor& t) { return exp(t); });
    return while_loop([&](const Tensor& k, const Tensor&) { return k < n; },
                      [&](const Tensor& k, const Tensor& t) {
                        return std::vector{k + 1, sin(t) + x};
                      },
                      {zeros({}, DType::i32), y})[1];
  };
  const auto f = one_op(plain);
  for (std::uint64_t call = 0; call < 10; ++call) {
    const Tensor x = numbers(call), n = tensor(static_cast<int>(call % 4));
    const random::Key key{.seed = call};
    const auto run = [&](const auto& g) {
      GradientTape tape;
      tape.watch(x);
      const Tensor z = g(x, n, key);
      return std::pair(z, tape.gradient(z, x).dense());
    };
    CHECK(same_bits(run(f).first, run(plain).first));
    CHECK(close(run(f).second, run(plain).second));
  }
  CHECK(is_one_op(f, numbers(0), tensor(2), random::Key{.seed = 1}));
}

TEST_CASE("a tape may outlive the compiled function that it has recorded", "[recorded][taped]") {
  for (int call = 0; call < 4; ++call) {
    const Tensor x = tensor(2.0);
    GradientTape outer, inner;
    outer.watch(x), inner.watch(x);
    Tensor y;
    {
      const auto factor = std::make_shared<double>(3.0);
      const auto f = one_op([factor](const Tensor& t) { return t * t * t * *factor; });
      for (int k = 0; k <= call; ++k)
        y = f(x);
    }
    const Tensor dx = inner.gradient(y, x);
    CHECK(dx.item() == 36);
    CHECK(outer.gradient(dx, x).dense().item() == 36);
  }
}

TEST_CASE("what cannot be recorded with zeros runs uncompiled under a tape", "[recorded][taped]") {
  int runs = 0;
  const auto f = one_op([&](const Tensor& x) {
    ++runs;
    return x.at({0}) > 0 ? x * 2.0 : x * 3.0;
  });
  for (int call = 0; call < 6; ++call) {
    const Tensor x = tensor({call % 2 ? 1.0 : -1.0, 1.0});
    GradientTape tape;
    tape.watch(x);
    CHECK(tape.gradient(f(x), x).dense().at({0}) == (call % 2 ? 2 : 3));
  }
  CHECK(runs >= 6);
  std::vector<Tensor> seen;
  const auto leaky = one_op([&](const Tensor& x) {
    seen.push_back(x * 2.0);
    return x * x;
  });
  for (int call = 0; call < 2; ++call) {
    const Tensor x = tensor({1.0, static_cast<double>(call)});
    GradientTape tape;
    tape.watch(x);
    leaky(x);
    CHECK(same_bits(seen.back(), x * 2.0));
  }
  CHECK(!is_one_op(f, numbers(0, {2})));
}

TEST_CASE("under a tape that follows nothing, a compiled function is replayed as without one",
          "[recorded][taped]") {
  int runs = 0;
  Variable v(tensor(2.0), {.trainable = false});
  const auto f = one_op([&](const Tensor& x) {
    ++runs;
    return x * v;
  });
  for (int call = 0; call < 6; ++call) {
    const GradientTape tape;
    CHECK(f(tensor(static_cast<double>(call))).item() == 2 * call);
  }
  CHECK(runs == 4);
  CHECK(f.programs().at(0).calls == 3);
}

TEST_CASE("a variable that was updated before a second derivative", "[recorded][taped]") {
  Variable v(tensor(2.0));
  const auto f = one_op([&](const Tensor& x) { return x * x * v * v; });
  for (int call = 0; call < 4; ++call) {
    v.assign(tensor(2.0));
    const Tensor x = tensor(3.0);
    GradientTape tape;
    tape.watch(x);
    const Tensor y = f(x);
    v.assign(tensor(100.0));
    CHECK(tape.gradient(y, x).dense().item() == 24);   // with the values of the forward pass
  }
  for (int call = 0; call < 4; ++call) {
    v.assign(tensor(2.0));
    const Tensor x = tensor(3.0);
    GradientTape outer, inner({.persistent = true});
    outer.watch(x), inner.watch(x);
    const Tensor y = f(x);
    v.assign(tensor(100.0));
    const Tensor dx = inner.gradient(y, x);
    CHECK(dx.item() == 24);
    CHECK(outer.gradient(dx, x).dense().item() == 8);
    CHECK(v.value().item() == 100);
  }
  CHECK(is_one_op(f, tensor(3.0)));
}

TEST_CASE("without as_one_op a compiled function runs uncompiled under a tape", "[recorded][taped]") {
  int runs = 0;
  const auto f = compile([&](const Tensor& x) {
    ++runs;
    return x * x;
  });
  for (int call = 0; call < 5; ++call) {
    GradientTape tape;
    f(tensor(1.0));
  }
  CHECK(runs == 5);
}

TEST_CASE("a captured tensor that is watched in some calls, or is the argument, too", "[recorded][taped]") {
  const Tensor c = numbers(1);
  const auto plain = [=](const Tensor& x) { return sum(x * x * c * c); };
  const auto f = one_op(plain);
  for (std::uint64_t call = 0; call < 12; ++call) {
    const Tensor x = call % 3 == 2 ? c : numbers(call + 10);
    const auto run = [&](const auto& g) {
      GradientTape outer, tape;
      outer.watch(x), tape.watch(x);
      if (call >= 3 && x.id() != c.id()) outer.watch(c), tape.watch(c);
      const Tensor d = tape.gradient(g(x), c, {.unconnected = UnconnectedGradients::zero});
      const Tensor e = outer.gradient(sum(d), x, {.unconnected = UnconnectedGradients::zero});
      return std::pair(d, e);
    };
    // A function of an argument and a captured tensor takes the two for different ones.
    CHECK(close(run(f).first, run(plain).first));
    CHECK(close(run(f).second, run(plain).second));
  }
  CHECK(is_one_op(f, numbers(0)));
}

TEST_CASE("functions whose shapes depend on numbers, or with undefined arguments, under a tape",
          "[recorded][taped]") {
  const auto positive = [](const Tensor& x) { return sum(square(boolean_mask(x, x > 0.0))); };
  const auto optional = [](const Tensor& x, const Tensor& u) {
    return u.defined() ? sum(x * u) : sum(x * 2.0);
  };
  const auto f = one_op(positive);
  const auto g = one_op(optional);
  for (std::uint64_t call = 0; call < 6; ++call) {
    const Tensor x = numbers(call);
    const auto run = [&](const auto& h, const auto&... more) {
      GradientTape tape;
      tape.watch(x);
      return tape.gradient(h(x, more...), x).dense();
    };
    CHECK(close(run(f), run(positive)));
    CHECK(close(run(g, Tensor()), run(optional, Tensor())));
    CHECK(close(run(g, x), run(optional, x)));
  }
  CHECK(!is_one_op(f, numbers(0)));
  CHECK(is_one_op(g, numbers(0), numbers(1)));
}

TEST_CASE("a function that uses a tape of the caller runs uncompiled", "[recorded][taped]") {
  GradientTape* tape = nullptr;
  const auto plain = [&](const Tensor& x) {
    Tensor factor;
    {
      const StopRecording stop(*tape);
      factor = x * x;
    }
    return sum(factor * x);
  };
  const auto f = one_op(plain);
  for (std::uint64_t call = 0; call < 5; ++call) {
    const Tensor x = numbers(call);
    GradientTape own;
    own.watch(x);
    tape = &own;
    CHECK(close(own.gradient(f(x), x).dense(), x * x));
  }
}

TEST_CASE("the default dtype of a call holds for its derivatives", "[recorded][taped]") {
  const auto f = one_op([](const Tensor& x) { return sum(x * x * x * full({3}, 2.0)); });
  for (int call = 0; call < 4; ++call) {
    const Tensor x = ones({3});
    GradientTape outer, inner;
    outer.watch(x), inner.watch(x);
    const Tensor y = f(x);
    set_default_dtype(DType::f64);
    const Tensor dx = inner.gradient(y, x);
    CHECK(default_dtype() == DType::f64);
    set_default_dtype(DType::f32);
    CHECK(same_bits(outer.gradient(dx, x).dense(), full({3}, 12.0)));
  }
  CHECK(is_one_op(f, ones({3})));
}

TEST_CASE("a recomputed function in a function that is one op, under nested tapes", "[recorded][taped]") {
  Variable v(numbers(1));
  const auto plain = [=](const Tensor& x) {
    return sum(recompute_grad([=](const Tensor& t) { return tanh(t * v); })(x) * x);
  };
  const auto f = one_op(plain);
  for (std::uint64_t call = 0; call < 5; ++call) {
    const Tensor x = numbers(call + 10);
    const auto run = [&](const auto& g) {
      GradientTape outer, middle, inner;
      outer.watch(x), middle.watch(x), inner.watch(x);
      const Tensor first = inner.gradient(g(x), x);
      const Tensor second = middle.gradient(sum(first * first), x);
      return outer.gradient(sum(second), x).dense();
    };
    CHECK(close(run(f), run(plain), 1e-5));
  }
  CHECK(is_one_op(f, numbers(0)));
}

TEST_CASE("several threads differentiate one compiled function", "[recorded][taped][threads]") {
  Variable w(numbers(1));
  const auto plain = [&](const Tensor& x) { return sum(tanh(x * w) * x); };
  const auto f = one_op(plain);
  std::vector<int> same(4);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      for (std::uint64_t call = 0; call < 30; ++call) {
        const Tensor x = numbers(call + 100 * i);
        const auto run = [&](const auto& g) {
          GradientTape tape;
          tape.watch(x);
          return tape.gradient(g(x), x).dense();
        };
        same[i] += close(run(f), run(plain));
      }
    });
  for (std::thread& t : threads)
    t.join();
  CHECK(same == std::vector<int>{30, 30, 30, 30});
}

TEST_CASE("options and errors of a function that is one op", "[recorded][taped][errors]") {
  const Tensor c = numbers(1);
  const auto captures = [c](const Tensor& x) { return sum(x * c); };
  CHECK(is_one_op(compile(captures, {.as_one_op = true}), numbers(0)));
  CHECK(!is_one_op(compile(captures, {.captures = Captures::forbid, .as_one_op = true}), numbers(0)));
  CHECK(!is_one_op(compile(captures, {.check = 1, .as_one_op = true}), numbers(0)));
  CHECK(!is_one_op(compile(captures, {.max_programs = 0, .as_one_op = true}), numbers(0)));
  // A replay that throws records nothing, and leaves variables.
  Variable v(tensor(1.0));
  const auto f = one_op([=](const Tensor& x, const Tensor& i) mutable {
    v.assign(sum(x));
    return gather(x, i) * v;
  });
  const Tensor x = tensor({1.0, 2.0, 3.0});
  for (int call = 0; call < 3; ++call) {
    GradientTape tape;
    tape.watch(x);
    CHECK(f(x, tensor(1)).item() == 12);
  }
  v.assign(tensor(5.0));
  GradientTape tape({.persistent = true});
  tape.watch(x);
  CHECK_THROWS_AS(f(x, tensor(7)), Error);
  CHECK(v.value().item() == 5);
  const Tensor y = f(x, tensor(2));
  tape.stop();
  CHECK(same_bits(tape.gradient(y, x).dense(), tensor({0.0, 0.0, 6.0})));
}

}   // namespace taped_test
