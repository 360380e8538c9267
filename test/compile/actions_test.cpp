// Actions that a program calls in each replay, as the function itself would: steps of optimizers, and
// derivatives that read numbers on the host. These must see the tensors and variables of the call, or be
// refused.
#include <catch2/catch.hpp>

#include <memory>

#include "closeness.h"
#include "tapedeck/compile.h"
#include "tapedeck/debug.h"
#include "tapedeck/map.h"
#include "tapedeck/moving_average.h"
#include "tapedeck/op.h"
#include "tapedeck/optimizer.h"
#include "tapedeck/tapedeck.h"
#include "tapedeck/training.h"

using namespace tapedeck;
using Catch::Matchers::Contains;

namespace {

using Derivative = std::function<Tensor(const Tensor& dy)>;

// 2 x, with that gradient.
Tensor doubled(const Tensor& x, const Derivative& backward) {
  return custom_gradient([backward](const Tensor& a) {
    return std::pair(a * 2.0, [backward](const Tensor& dy) { return backward(dy); });
  })(x);
}
Tensor gradient_with(const Tensor& x, const Derivative& backward) {
  GradientTape tape;
  tape.watch(x);
  const Tensor y = doubled(x, backward);
  return tape.gradient(sum(y * y), x).dense();   // dy depends on x
}
Tensor vector_of(double first) { return tensor({first, first + 1, first + 2}); }

struct TensorAttrs {
  Tensor factor;
};
struct KeyAttrs {
  double scale;
  random::Key other;
};
const Variable& shared_variable() {
  static const Variable v(tensor(2.0));
  return v;
}
std::vector<Tensor>& kept() {
  static std::vector<Tensor> all;
  return all;
}
constexpr auto same_spec = [](const Call& c) { return c.x[0].spec(); };
constexpr auto numbers = [](Tensor& y) { return writable<float>(y); };

// Ops of a user, whose kernels and rules do what programs cannot see.
const Op kernels[] = {
    {.name = "tensor_in_attributes",
     .doc = "",
     .infer = same_spec,
     .forward =
         [](const Call& c, std::span<Tensor> y) {
           for (float& e : numbers(y[0]))
             e = static_cast<float>(c.attrs<TensorAttrs>().factor.item());
         },
     .rule = Rule::none()},
    {.name = "key_in_attributes",
     .doc = "",
     .infer = same_spec,
     .forward =
         [](const Call& c, std::span<Tensor> y) {
           for (float& e : numbers(y[0]))
             e = static_cast<float>(std::uint64_t{c.attrs<KeyAttrs>().other.seed});
         },
     .rule = Rule::none()},
    {.name = "reads_a_variable",
     .doc = "",
     .infer = same_spec,
     .forward =
         [](const Call&, std::span<Tensor> y) {
           for (float& e : numbers(y[0]))
             e = static_cast<float>(shared_variable().value().item());
         },
     .rule = Rule::none()},
    {.name = "returns_its_input",
     .doc = "",
     .infer = same_spec,
     .forward = {[](const Call& c, std::span<Tensor> y) {
                   y[0] = c.x[0].at({0}) < 0 ? c.x[0] * 2.0 : c.x[0];
                 },
                 Outputs::by_kernel},
     .rule = Rule::none()},
    {.name = "keeps_its_input",
     .doc = "",
     .infer = same_spec,
     .forward = {[](const Call& c, std::span<Tensor> y) {
                   kept().push_back(c.x[0]);
                   y[0] = c.x[0] * (c.x[0].at({0}) > 0 ? 2.0 : 3.0);
                 },
                 Outputs::by_kernel},
     .rule = Rule::none()},
    {.name = "scaled_by_its_cotangent",
     .doc = "",
     .infer = same_spec,
     .forward = {[](const Call& c, std::span<Tensor> y) { y[0] = c.x[0] * 1.0F; }, Outputs::by_kernel},
     .rule =
         Rule::linear([](const Call&, const Tensor& dy) { return dy * (1 / (1 + max(abs(dy)).item())); })},
};
const Op& kernel(std::string_view name) {
  return *std::find_if(std::begin(kernels), std::end(kernels), [&](const Op& op) { return op.name == name; });
}

}   // namespace

TEST_CASE("a derivative that reads numbers may use only its arguments", "[recorded][replay][actions]") {
  SECTION("arguments alone") {
    const auto f = [](const Tensor& x) {
      return gradient_with(x * x, [](const Tensor& dy) { return dy * (1 + dy.at({0})); });
    };
    const auto compiled = compile(f);
    for (double i = 0; i < 3; ++i)
      CHECK(same_bits(compiled(vector_of(i)), f(vector_of(i))));
  }
  SECTION("a captured tensor") {
    const auto f = compile(
        [](const Tensor& x) { return gradient_with(x, [x](const Tensor& dy) { return dy * x.at({0}); }); });
    CHECK_THROWS_WITH(f(vector_of(1)), Contains("not one of its arguments"));
    CHECK_THROWS_AS(f(vector_of(2)), TraceError);
  }
  SECTION("read by an op before a number is read") {
    const auto f = compile([](const Tensor& x) {
      const Tensor b = x * 3.0;
      return gradient_with(x, [b](const Tensor& dy) { return dy * b * dy.at({0}); });
    });
    CHECK_THROWS_AS(f(vector_of(1)), TraceError);
  }
  SECTION("read by an op after a number is read") {
    const auto f = compile([](const Tensor& x) {
      const Tensor b = x * 3.0;
      return gradient_with(x, [b](const Tensor& dy) { return dy * dy.at({0}) * b; });
    });
    CHECK_THROWS_AS(f(vector_of(1)), TraceError);
  }
  SECTION("a key") {
    const auto f = compile([](const Tensor& x, random::Key key) {
      return gradient_with(x,
                           [key](const Tensor& dy) { return dy * dy.at({0}) * random::uniform({3}, key); });
    });
    CHECK_THROWS_AS(f(vector_of(1), random::Key{.seed = 1}), TraceError);
  }
  SECTION("a constant") {
    const Tensor captured = vector_of(5);
    const auto f = [captured](const Tensor& x) {
      return gradient_with(x, [captured](const Tensor& dy) { return dy * captured * (1 + dy.at({0})); });
    };
    const auto compiled = compile(f);
    for (double i = 0; i < 3; ++i)
      CHECK(same_bits(compiled(vector_of(i)), f(vector_of(i))));
  }
}

TEST_CASE("a derivative that reads numbers sees the variables of the current call",
          "[recorded][replay][actions]") {
  const auto run = [](bool compiled, auto step) {
    const Variable w(vector_of(1)), counter(tensor(0.0));
    const auto f = [&](const Tensor& x) { return step(w, counter, x); };
    const auto g = compile(f);
    std::vector<Tensor> all;
    for (double i = 0; i < 4; ++i) {
      all.push_back(compiled ? g(vector_of(i)) : f(vector_of(i)));
      all.push_back(w.value() + 0.0);
      all.push_back(counter.value() + 0.0);
    }
    return all;
  };
  const auto check = [&](auto step) {
    const std::vector<Tensor> wanted = run(false, step), actual = run(true, step);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      CAPTURE(i);
      CHECK(same_bits(actual[i], wanted[i]));
    }
  };
  SECTION("read after an assignment") {
    check([](const Variable& w, const Variable&, const Tensor& x) {
      w.assign(w * 2.0);
      return gradient_with(x, [&w](const Tensor& dy) { return dy * w * (1 + dy.at({0})); });
    });
  }
  SECTION("assigned") {
    check([](const Variable&, const Variable& counter, const Tensor& x) {
      const Tensor y = gradient_with(x, [&counter](const Tensor& dy) {
        counter += 1;
        return dy * (1 + dy.at({0}));
      });
      return y + sin(cos(x)) + counter;
    });
  }
  SECTION("assigned, as the last step") {
    check([](const Variable&, const Variable& counter, const Tensor& x) {
      return gradient_with(x, [&counter](const Tensor& dy) {
        counter += 1;
        return dy * (1 + dy.at({0}));
      });
    });
  }
  SECTION("changed by an action of its own, after a store") {
    const auto average = std::make_shared<MovingAverage>(Variable(tensor(0.0)));
    check([average](const Variable& w, const Variable&, const Tensor& x) {
      w.assign(w * 2.0);
      return gradient_with(x, [average](const Tensor& dy) {
        average->update(dy.at({0}) * ones({}), 0.5);
        return dy * (1 + dy.at({0}));
      });
    });
  }
}

TEST_CASE("the results of a derivative are checked in a replay", "[recorded][replay][actions]") {
  int kind = 0;
  const auto f = [&kind](const Tensor& x) {
    return gradient_with(x, [&kind](const Tensor& dy) {
      if (dy.at({0}) > 100 || kind == 1) return Tensor();
      return kind == 2 ? ones({50}) : kind == 3 ? ones({200}) : dy * 2.0;
    });
  };
  const auto compiled = compile(f);
  const Tensor x = ones({100}, DType::f64);
  for (int i = 0; i < 2; ++i)
    CHECK(same_bits(compiled(x), f(x)));
  for (kind = 1; kind < 4; ++kind)
    CHECK_THROWS_AS(compiled(x), TraceError);
  kind = 0;
  CHECK(same_bits(compiled(x * 2.0), f(x * 2.0)));
}

TEST_CASE("a variable that one step leaves unchanged may change in the next", "[recorded][replay][actions]") {
  const auto run = [](bool compiled) {
    const Variable w(ones({3}) * 100.0);
    Optimizer sgd = GradientDescent({.learning_rate = 0.1});
    LossScale scale({.initial = 16777216, .growth_interval = 1000});
    const auto f = [&](const Tensor& x) {
      scale.minimize(sgd, [&] { return sum(w * x) * 1.0; }, {});
      return sum(w);
    };
    const auto g = compile(f);
    std::vector<double> all;
    for (int i = 0; i < 4; ++i) {
      const Tensor x = full({3}, i == 0 ? 1e38 : 20.0, DType::f32);
      all.push_back((compiled ? g(x) : f(x)).item());
    }
    return all;
  };
  CHECK(run(true) == run(false));
}

TEST_CASE("a replay notices that its optimizer was destroyed or moved", "[recorded][replay][actions]") {
  const Variable w(ones({3}));
  auto adam = std::make_unique<Optimizer>(Adam({.learning_rate = 0.1}));
  const auto f = compile([&w, &adam] { return adam->minimize([&] { return sum(w * w); }); });
  f();
  f();
  SECTION("another optimizer in the same object takes the steps") {
    *adam = GradientDescent({.learning_rate = 0.5});
    f();
    CHECK(adam->iterations() == 1);
  }
  SECTION("destroyed") {
    adam = std::make_unique<Optimizer>(GradientDescent({.learning_rate = 0.5}));
    const Tensor before = w + 0.0;
    CHECK_THROWS_WITH(f(), Contains("destroyed or moved"));
    CHECK(same_bits(w.value(), before));
  }
  SECTION("moved") {
    const Optimizer elsewhere = std::move(*adam);
    CHECK_THROWS_WITH(f(), Contains("destroyed or moved"));
  }
}

TEST_CASE("state of optimizers and averages cannot be read in a recording", "[recorded][actions]") {
  const Variable w(ones({3}));
  Optimizer adam = Adam({.learning_rate = 0.1});
  LossScale scale;
  CHECK_THROWS_AS(compile([&] { return w * static_cast<double>(adam.iterations()); })(), TraceError);
  CHECK_THROWS_AS(compile([&] { return w * adam.hyperparameter("learning_rate"); })(), TraceError);
  CHECK_THROWS_AS(compile([&] { return w * adam.scalar("beta1_power"); })(), TraceError);
  CHECK_THROWS_AS(compile([&] { return w * scale.value(); })(), TraceError);
  const auto refused = [&](const std::function<void()>& change) {
    CHECK_THROWS_AS(compile([&] {
                      change();
                      return w * 1.0;
                    })(),
                    TraceError);
    CHECK_THROWS_AS(compile([&] {   // a function that catches the error is no program either
                      try {
                        change();
                      } catch (const Error&) {}
                      return w * 1.0;
                    })(),
                    TraceError);
  };
  GradientAccumulator sums;
  refused([&] { adam.set_hyperparameter("learning_rate", 0.2); });
  refused([&] { adam.restore_scalar("iterations", 3); });
  refused([&] { adam.restore_slot(w, "m", ones({3})); });
  refused([&] { adam.restore_slot("w", "m", ones({3})); });
  refused([&] { (void)sums.count(); });
  refused([&] { (void)sums.take_sum(); });
  refused([&] { (void)sums.take_mean(); });
  CHECK(adam.hyperparameter("learning_rate") == 0.1);
  CHECK(adam.iterations() == 0);
}

TEST_CASE("a function that catches an exception is not recorded", "[recorded][actions]") {
  const auto f = compile([](const Tensor& x, const Tensor& i) {
    try {
      return gather(x, i);
    } catch (const Error&) {
      return x * 0.0;
    }
  });
  const Tensor x = vector_of(1);
  CHECK_THROWS_AS(f(x, tensor({0, 7, 1}, DType::i64)), TraceError);
  const Tensor good = tensor({2, 0, 1}, DType::i64);
  CHECK(same_bits(f(x, good), gather(x, good)));

  const auto checked = compile([](const Tensor& v) {
    try {
      return check_numerics(log(v), "log");
    } catch (const Error&) {
      return v;
    }
  });
  CHECK_THROWS_AS(checked(vector_of(-1)), TraceError);

  const auto g = compile([](const Tensor& v) {
    try {
      return v * v.at({0});
    } catch (const Error&) {
      return v;
    }
  });
  CHECK_THROWS_AS(g(x), TraceError);
}

TEST_CASE("a caught error is noticed even if no kernel ran", "[recorded][actions]") {
  const auto caught = [](const std::function<Tensor(const Tensor&)>& f) {
    const auto compiled = compile([f](const Tensor& x) {
      try {
        return f(x);
      } catch (const std::exception&) {
        return x * 100.0;
      }
    });
    return [compiled](double first) { return compiled(vector_of(first)); };
  };
  // Ops whose shapes depend on numbers.
  {
    const Tensor first = tensor({0, 2, 1}), second = tensor({0, 1, 1});
    const auto f = compile([](const Tensor& x, const Tensor& ids) {
      try {
        return segment_sum(x, ids);
      } catch (const Error&) {
        return x * 100.0;
      }
    });
    CHECK_THROWS_WITH(f(vector_of(1), first), Contains("segment_sum has thrown"));
    CHECK(same_bits(f(vector_of(1), second), segment_sum(vector_of(1), second)));
  }
  // A derivative that reads numbers.
  const auto limited = caught([](const Tensor& x) {
    return gradient_with(x, [](const Tensor& dy) {
      if (dy.at({0}) > 10) throw std::runtime_error("too large");
      return dy * 3.0;
    });
  });
  CHECK_THROWS_WITH(limited(5), Contains("has thrown"));
  // A step.
  const Variable w(zeros({3}), {.constraint = [](const Tensor& x) {
                     if (x.at({0}) < -10) throw std::runtime_error("too small");
                     return x;
                   }});
  GradientDescent descent({.learning_rate = 1.0});
  const auto step = caught([&](const Tensor& x) {
    descent.apply_gradients({{x, w}});
    return x * 1.0;
  });
  CHECK_THROWS_WITH(step(20), Contains("a step of an optimizer or the like has thrown"));
  // A number that is refused.
  CHECK_THROWS_WITH(caught([&](const Tensor& x) { return x * double(descent.iterations()); })(1),
                    Contains("gradient_descent has thrown"));
  // Shapes are those of each replay.
  CHECK(same_bits(caught([](const Tensor& x) { return x + ones({2}); })(1), vector_of(1) * 100.0));
}

TEST_CASE("a replay throws the same first error as the function, after the same steps",
          "[recorded][replay][actions]") {
  const auto fails_first = [](Tensor (*checked)(const Tensor&, const Tensor&), const Tensor& good,
                              const Tensor& bad) {
    const Variable w(zeros({2}));
    GradientDescent descent({.learning_rate = 1.0});
    const auto f = compile([&](const Tensor& x, const Tensor& i) {
      const Tensor part = checked(x, i);
      descent.apply_gradients({{x, w}});
      return std::pair(part, tanh(w.value()) + tanh(x));
    });
    const Tensor x = tensor({1.0, 1.0});
    f(x, good), f(x, good);
    CHECK_THROWS_AS(f(x, bad), Error);
    CHECK(descent.iterations() == 2);
    CHECK(w.value().to_vector() == std::vector<double>{-2, -2});
  };
  fails_first([](const Tensor& x, const Tensor& i) { return check_numerics(x / sum(x + i), "share"); },
              tensor({0.0, 0.0}), tensor({-1.0, -1.0}));
  fails_first([](const Tensor& x, const Tensor& i) { return gather(exp(x), i); }, tensor({0, 1}),
              tensor({0, 7}));
  fails_first([](const Tensor& x, const Tensor& i) { return cholesky(exp(x) * i); },
              tensor({{1.0, 0.0}, {0.0, 1.0}}), tensor({{-1.0, 0.0}, {0.0, -1.0}}));

  const auto two = compile([](const Tensor& x) {
    const Tensor a = check_numerics(tanh(sqrt(x)), "first");
    return a * check_numerics(1.0 / (x * 0.0 + x), "second");
  });
  two(ones({2}));
  CHECK_THROWS_WITH(two(tensor({-1.0, 0.0})), Contains("first"));
}

TEST_CASE("a replay checks shapes that depend on numbers before it uses them",
          "[recorded][replay][actions]") {
  const auto f = compile([](const Tensor& x, const Tensor& ids) {
    GradientTape tape;
    tape.watch(x);
    const Tensor y = segment_mean(exp(x), ids);
    return std::pair(tape.gradient(y, x).dense(), tanh(x));
  });
  f(ones({2}), tensor({0, 0}));
  CHECK_THROWS_WITH(f(ones({2}), tensor({0, 1})), Contains("segment_mean") && Contains("f32[1]"));
}

TEST_CASE("an error leaves variables unchanged, even with derivatives that read numbers",
          "[recorded][replay][actions]") {
  const Variable w(zeros({4}));
  const auto f = compile([&](const Tensor& x, const Tensor& at) {
    w.assign(x);
    const ForwardAccumulator outer(x, ones({4}));
    Tensor t, y;
    {
      const ForwardAccumulator inner(x, full({4}, 0.5));
      y = map([](auto a, auto b) { return a * a * sin(b); }, x, w.value());
      t = inner.jvp(y);
    }
    return gather(outer.jvp(t) + y, at);
  });
  const Tensor good = tensor({0, 1, 2, 3});
  f(ones({4}), good), f(full({4}, 2.0), good);
  CHECK(w.value().at({0}) == 2);
  CHECK_THROWS_AS(f(full({4}, 3.0), tensor({0, 1, 2, 33})), Error);
  CHECK(w.value().at({0}) == 2);
}

TEST_CASE("observers created inside a function are rejected", "[recorded][actions]") {
  const auto f = compile([](const Tensor& x) {
    const NumericsCheck check;
    return log(x);
  });
  CHECK_THROWS_WITH(f(vector_of(1)), Contains("inside the function"));
}

TEST_CASE("numeric checks run even if their results are unused", "[recorded][replay][actions]") {
  const auto f = compile([](const Tensor& x) {
    (void)check_numerics(log(x), "log");
    return x * 2.0;
  });
  CHECK(same_bits(f(vector_of(1)), vector_of(1) * 2.0));
  CHECK(same_bits(f(vector_of(2)), vector_of(2) * 2.0));
  CHECK_THROWS_WITH(f(vector_of(-1)), Contains("check_numerics"));
}

TEST_CASE("forbidden captures are rejected wherever they are read", "[recorded][captures]") {
  const Tensor k = vector_of(7);
  const Variable w(vector_of(0));
  const CompileOptions forbid = {.captures = Captures::forbid};
  const Tensor x = vector_of(1);
  CHECK_THROWS_AS(compile([&](const Tensor& v) { return w.assign(k), v * w; }, forbid)(x), TraceError);
  CHECK_THROWS_AS(compile([&](const Tensor& v) { return v * k.at({0}); }, forbid)(x), TraceError);
  CHECK_THROWS_AS(compile([&](const Tensor& v) { return v * reshape(k, {3, 1}); }, forbid)(x), TraceError);
  CHECK_THROWS_AS(compile([](const Tensor& v) { return v * random::uniform({3}, {.seed = 1}); }, forbid)(x),
                  TraceError);
  const auto f =
      compile([&](const Tensor& v, random::Key key) { return v * w + random::uniform({3}, key); }, forbid);
  CHECK(f(x, random::Key{.seed = 1}).shape() == Shape{3});
}

TEST_CASE("check compares lists and NaN, and rejects optimizer steps before they run", "[recorded][check]") {
  int n = 2;
  const auto lists =
      compile([&](const Tensor& x) { return std::vector<Tensor>(static_cast<std::size_t>(n), x * 2.0); },
              {.check = 1});
  lists(vector_of(1));
  for (const int other : {1, 3}) {
    n = other;
    CHECK_THROWS_AS(lists(vector_of(1)), TraceError);
  }

  const auto nan = compile([](const Tensor& a, const Tensor& b) { return exp(a + b) * a; }, {.check = 1});
  const Tensor a = full({9}, NAN), b = full({9}, -NAN);
  nan(a, b);
  CHECK_NOTHROW(nan(b, a));

  const Variable w(ones({3}));
  Optimizer sgd = GradientDescent({.learning_rate = 0.1});
  const auto step = compile([&] { return sgd.minimize([&] { return sum(w * w); }); }, {.check = 1});
  CHECK_THROWS_AS(step(), TraceError);
  CHECK(sgd.iterations() == 0);
  CHECK(same_bits(w.value(), ones({3})));
}

TEST_CASE("a function may make variables once for each signature", "[recorded][variables]") {
  std::vector<Variable> heads;
  const auto f = compile([&](const Tensor& x, int head) {
    while (static_cast<int>(heads.size()) <= head)
      heads.emplace_back(ones({3}) * static_cast<double>(heads.size() + 1));
    return x * heads[static_cast<std::size_t>(head)];
  });
  const Tensor x = vector_of(1);
  for (int i = 0; i < 3; ++i)
    for (int head = 0; head < 3; ++head)
      CHECK(same_bits(f(x, head), x * static_cast<double>(head + 1)));
}

TEST_CASE("into returns the result tensors after an exception", "[recorded][replay][into]") {
  const auto f = compile([](const Tensor& x, const Tensor& i) {
    return std::vector<Tensor>{gather(x, i), x * 2.0};
  });
  const Tensor x = vector_of(1), good = tensor({2, 0, 1}, DType::i64), bad = tensor({2, 0, 9}, DType::i64);
  f(x, good);
  const std::vector<Tensor> were = {ones({3}), ones({2}), ones({70}), zeros({70})};
  std::vector<Tensor> result;
  for (const Tensor& t : were)
    result.push_back(t + 0.0);
  CHECK_THROWS_AS(f.into(result, x, bad), Error);
  REQUIRE(result.size() == 4);
  for (std::size_t i = 0; i < 4; ++i)
    CHECK(result[i].spec() == were[i].spec());
  CHECK(same_bits(result[2], were[2]));
  f.into(result, x, good);
  REQUIRE(result.size() == 2);
  CHECK(same_bits(result[0], gather(x, good)));
}

TEST_CASE("kernels may use only their inputs", "[recorded][actions][kernels]") {
  const Tensor x = full({4}, 3.0F, DType::f32);
  CHECK_THROWS_WITH(
      compile([](const Tensor& v) { return kernel("tensor_in_attributes")(v, TensorAttrs{mean(v)}); })(x),
      Contains("not one of its inputs"));
  CHECK_THROWS_AS(compile([](const Tensor& v) {
                    const Tensor m = mean(v);
                    return map([m](auto e) { return e + m.item<float>(); }, v);
                  })(x),
                  TraceError);
  CHECK_THROWS_AS(compile([](const Tensor& v, random::Key k) {
                    return kernel("key_in_attributes")(v, KeyAttrs{1, k});
                  })(x, random::Key{.seed = 3}),
                  TraceError);
  CHECK_THROWS_WITH(compile([](const Tensor& v) { return kernel("reads_a_variable")(v, Attrs()); })(x),
                    Contains("variable"));
}

TEST_CASE("a result that is also an input is a separate value", "[recorded][replay][actions][kernels]") {
  const auto by_kernel = [](const Tensor& x) {
    const Tensor a = x * 1.0F, y = kernel("returns_its_input")(a, Attrs());
    return std::vector<Tensor>{y, a * 3.0F, y + a};
  };
  const auto by_rule = [](const Tensor& x) {
    const Derivative clip = [](const Tensor& dy) { return dy.at({0}) > 9 ? dy * 0.5 : dy; };
    GradientTape tape;
    tape.watch(x);
    const Tensor y = doubled(x, clip) + x;
    return std::vector<Tensor>{tape.gradient(sum(y * y), x).dense()};
  };
  const auto check = [](const auto& f) {
    const auto compiled = compile(f);
    for (const double first : {1.0, -2.0, 30.0, 2.0}) {
      const Tensor x = full({4}, first, DType::f32);
      const std::vector<Tensor> wanted = f(x), actual = compiled(x);
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        CAPTURE(first, i);
        CHECK(same_bits(actual[i], wanted[i]));
      }
    }
  };
  check(by_kernel);
  check(by_rule);
}

TEST_CASE("higher derivatives of a rule that reads numbers are rejected", "[recorded][actions]") {
  const auto f = compile([](const Tensor& x) {
    GradientTape outer, inner;
    outer.watch(x), inner.watch(x);
    const Tensor y = kernel("scaled_by_its_cotangent")(x, Attrs());
    const Tensor d = inner.gradient(sum(y * y * y), x).dense();
    return outer.gradient(sum(d * d), x).dense();
  });
  CHECK_THROWS_WITH(f(full({4}, 3.0F, DType::f32)), Contains("further derivative"));
}

TEST_CASE("tensors that a user's function keeps from a replay do not change", "[recorded][replay][actions]") {
  kept().clear();
  const auto kernels_of =
      compile([](const Tensor& x) { return kernel("keeps_its_input")(x * 2.0F, Attrs()); });
  const auto rules_of = compile([](const Tensor& x) {
    return gradient_with(x, [](const Tensor& dy) {
      kept().push_back(dy);
      return dy * (1 + dy.at({0}));
    });
  });
  std::vector<Tensor> wanted;
  for (const double first : {1.0, 2.0, 3.0}) {
    kernels_of(full({40}, first, DType::f32)), rules_of(full({40}, first, DType::f32));
    wanted.push_back(full({40}, 2 * first, DType::f32)), wanted.push_back(full({40}, 4 * first, DType::f32));
  }
  REQUIRE(kept().size() == wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i)
    CHECK(same_bits(kept()[i], wanted[i]));
  kept().clear();
}

TEST_CASE("the results of a replay have the identities of the function's", "[recorded][replay][results]") {
  const Tensor captured = vector_of(3), x = vector_of(1);
  const auto f = compile([captured](const Tensor& v) {
    const Tensor y = exp(v);
    return std::vector<Tensor>{v, stop_gradient(v), captured,  identity(captured), y,
                               y, identity(y),      zeros({3})};
  });
  for (int call = 0; call < 3; ++call) {
    CAPTURE(call);
    const std::vector<Tensor> r = f(x), again = f(x);
    CHECK(r[0].id() == x.id());
    CHECK(r[1].id() != x.id());
    CHECK(r[2].id() == captured.id());
    CHECK(r[3].id() != captured.id());
    CHECK(r[4].id() == r[5].id());
    CHECK(r[4].id() != r[6].id());
    CHECK(r[4].id() != again[4].id());
    CHECK(r[7].id() != again[7].id());
    CHECK(same_bits(r[6], exp(x)));
    CHECK(same_bits(r[3], captured));
  }
}

TEST_CASE("into with check returns the result tensors", "[recorded][check][into]") {
  double factor = 2;
  const auto f = compile([&](const Tensor& x) { return std::vector<Tensor>{x * factor}; }, {.check = 1});
  const Tensor x = vector_of(1);
  f(x);
  factor = 3;
  std::vector<Tensor> result(5, x);
  CHECK_THROWS_AS(f.into(result, x), TraceError);
  for (const Tensor& t : result)
    CHECK(t.id() == x.id());
}

TEST_CASE("unread constants are freed", "[recorded][memory]") {
  const auto f = compile([](const Tensor& x) {
    Tensor c = ones({1 << 16});
    for (int i = 0; i < 50; ++i)
      c = sin(c) * 1.01;
    return x * c;
  });
  const Tensor x = ones({1 << 16});
  const std::int64_t before = live_bytes();
  f(x);
  CHECK(live_bytes() - before < 8 * x.nbytes());
}

TEST_CASE("the time of a call is linear in the number of arguments", "[recorded][signature]") {
  const auto f = compile([](const std::vector<Tensor>& x) { return add_n(x); });
  std::vector<Tensor> many(40'000, vector_of(1));
  for (std::size_t i = 0; i < many.size(); i += 2)
    many[i] = identity(many[i]);
  const Tensor first = f(many);
  CHECK(same_bits(f(many), first));
  CHECK(f.programs().size() == 1);
  many[1] = identity(many[1]);
  CHECK(same_bits(f(many), first));
  CHECK(f.programs().size() == 2);
}
