// Optimizers: trajectories compared with the formulas in plain double, sparse gradients, unchanged state
// after errors, and which memory is overwritten.
#include <cmath>
#include <map>

#include <catch2/catch.hpp>

#include "case.h"
#include "core/bytes.h"
#include "core/sanitizers.h"
#include "message_of.h"
#include "tape/variable.h"
#include "tapedeck/tapedeck.h"

namespace optimizer_test {

using namespace tapedeck;
using namespace tapedeck::test;
using Catch::Matchers::Equals;

namespace {

/// Adam for one number, step by step.
struct ScalarAdam {
  double rate = 1e-3, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double m = 0, v = 0, power1 = 1, power2 = 1;

  double step(double x, double g) {
    power1 *= beta1, power2 *= beta2;
    m = beta1 * m + (1 - beta1) * g;
    v = beta2 * v + (1 - beta2) * g * g;
    return x - rate * std::sqrt(1 - power2) / (1 - power1) * m / (std::sqrt(v) + epsilon);
  }
};

Tensor wave(const Shape& shape, double phase, DType dtype) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < shape.size(); ++i)
    values.push_back(std::sin(0.7 * static_cast<double>(i) + phase));
  return astype(tensor(values, shape), dtype);
}

using Numbers = std::map<std::string, double>;

void check_numbers(const Optimizer& optimizer, std::string_view rule, const Numbers& numbers) {
  CAPTURE(rule);
  CHECK(optimizer.name() == rule);
  for (const auto& [name, number] : numbers) {
    CAPTURE(name);
    CHECK(optimizer.hyperparameter(name) == number);
  }
}

void check_close(const Tensor& actual, const std::vector<double>& expected, double tolerance) {
  const std::vector<double> values = actual.to_vector();
  REQUIRE(values.size() == expected.size());
  std::size_t close = 0;
  for (std::size_t i = 0; i < values.size(); ++i)
    close += std::abs(values[i] - expected[i]) <= tolerance * (1 + std::abs(expected[i]));
  CHECK(close == values.size());
}

Gradient slices(const Tensor& values, const Tensor& indices, const Shape& dense_shape) {
  return IndexedSlices{values, indices, dense_shape};
}

template <class E, class F> void check_error(const F& f, const std::string& message) {
  CHECK_THROWS_MATCHES(f(), E, Catch::Matchers::Message(message));
}

}   // namespace

TEST_CASE("gradient descent moves against the gradient", "[optimizer]") {
  const DType dtype = GENERATE(DType::f32, DType::f64);
  const std::int64_t n = GENERATE(0, 1, 7, 16, 37, 70000);
  const Variable x(wave({n}, 0, dtype));
  GradientDescent descent({.learning_rate = 0.25});
  std::vector<double> expected = x.value().to_vector();
  for (int step = 0; step < 3; ++step) {
    const Tensor g = wave({n}, step, dtype);
    const std::vector<double> slope = g.to_vector();
    for (std::size_t i = 0; i < expected.size(); ++i)
      expected[i] -= 0.25 * slope[i];
    descent.apply_gradients({{g, x}});
  }
  check_close(x.value(), expected, dtype == DType::f32 ? 1e-6 : 1e-14);
  CHECK(descent.iterations() == 3);
}

TEST_CASE("adam follows its formula", "[optimizer]") {
  const DType dtype = GENERATE(DType::f32, DType::f64);
  const std::int64_t n = GENERATE(0, 1, 7, 16, 37, 70000);
  const double tolerance = dtype == DType::f32 ? 1e-5 : 1e-13;
  const Variable x(wave({n}, 0, dtype));
  Adam adam({.learning_rate = 0.1, .beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-3});
  std::vector<double> expected = x.value().to_vector(), m, v;
  std::vector<ScalarAdam> scalar(expected.size(),
                                 ScalarAdam{.rate = 0.1, .beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-3});
  for (int step = 0; step < 5; ++step) {
    const Tensor g = wave({n}, step, dtype);
    const std::vector<double> slope = g.to_vector();
    for (std::size_t i = 0; i < expected.size(); ++i)
      expected[i] = scalar[i].step(expected[i], slope[i]);
    adam.apply_gradients({{g, x}});
  }
  for (const ScalarAdam& s : scalar)
    m.push_back(s.m), v.push_back(s.v);
  check_close(x.value(), expected, tolerance);
  check_close(adam.slot(x, "m"), m, tolerance);
  check_close(adam.slot(x, "v"), v, tolerance);
}

TEST_CASE("a sparse gradient is the dense one with zeros", "[optimizer]") {
  const DType dtype = GENERATE(DType::f32, DType::f64), index_dtype = GENERATE(DType::i32, DType::i64);
  const std::int64_t width = GENERATE(1, 5, 16, 37, 2500);
  const std::string rule = GENERATE("gradient_descent", "adam", "lamb");
  const std::int64_t rows = width == 2500 ? 40 : GENERATE(6, kAddressSanitizer ? 4000 : 40000);
  CAPTURE(rule, width, rows);
  const Tensor start = wave({rows, width}, 0, dtype);
  const Variable a(start), b(start);
  const double rate = rule == "lamb" ? 1e-3 : 0.1;   // lamb moves its few rows far
  Optimizer sparse(rule, {{"learning_rate", rate}}), dense(rule, {{"learning_rate", rate}});
  for (int step = 0; step < 3; ++step) {
    const Tensor values = wave({4, width}, step, dtype),
                 indices = astype(tensor<std::int64_t>({4, step, rows - 1, 4}), index_dtype);
    sparse.apply_gradients({{slices(values, indices, start.shape()), a}});
    dense.apply_gradients({{scatter_add(values, indices, start.shape()), b}});
  }
  check_close(sub(a.value(), b.value()), std::vector<double>(static_cast<std::size_t>(rows * width)),
              dtype == DType::f32 ? 1e-6 : 1e-14);
}

TEST_CASE("a gradient that is none leaves its variable unchanged", "[optimizer]") {
  Adam adam;
  const Variable a(ones({3})), b(ones({3}));
  adam.apply_gradients({{Gradient(), a}, {ones({3}), b}});
  CHECK_THAT(a.value().to_vector(), Equals(std::vector<double>{1, 1, 1}));
  CHECK(b.value().at({0}) < 1);
  CHECK_FALSE(adam.slot(a, "m").defined());
  CHECK(adam.slot(b, "m").defined());
  CHECK_FALSE(adam.slot(b, "momentum").defined());
}

TEST_CASE("everything is checked before anything changes", "[optimizer]") {
  Adam adam;
  const Variable good(ones({2}), {.name = "good"}), bad(ones({2, 3}), {.name = "bad"}),
      counts(tensor<std::int32_t>({1, 2}), {.name = "counts"});
  const auto apply = [&](const Gradient& g, const Variable& v) {
    return [&adam, &good, g, v] { adam.apply_gradients({{ones({2}), good}, {g, v}}); };
  };

  check_error<ArgumentError>([&] { adam.apply_gradients({}); }, "apply_gradients: no variables given");
  check_error<ArgumentError>(
      [&] {
        adam.apply_gradients({{{}, good}, {{}, bad}});
      },
      "apply_gradients: no gradient reaches variable \"good\", variable \"bad\"; compute the loss from their "
      "values by ops, while the tape records");
  check_error<ArgumentError>(
      [&] { adam.apply_gradients(std::vector<Gradient>(2), std::vector<Variable>{good}); },
      "apply_gradients: the lists differ in length: 2 gradients, 1 variables");
  check_error<ShapeError>(apply(ones({3, 2}), bad),
                          "apply_gradients: the gradient does not fit variable \"bad\": gradient is "
                          "f32[3,2], variable is f32[2,3]");
  check_error<DTypeError>(apply(ones({2, 3}, DType::f64), bad),
                          "apply_gradients: the gradient does not fit variable \"bad\": gradient is "
                          "f64[2,3], variable is f32[2,3]");
  check_error<DTypeError>(apply(tensor<std::int32_t>({1, 2}), counts),
                          "apply_gradients: variable \"counts\" is i32[2]; use f32 or f64");

  const Tensor row = ones({1, 3}), first = tensor<std::int64_t>({0});
  check_error<ShapeError>(apply(slices(row, first, {4, 3}), bad),
                          "apply_gradients: the gradient does not fit variable \"bad\": gradient is "
                          "f32[4,3], variable is f32[2,3]");
  check_error<ShapeError>(apply(slices(ones({1, 2}), first, {2, 3}), bad),
                          "apply_gradients: the parts of the slices do not fit together: values is f32[1,2], "
                          "indices is i64[1], dense_shape is [2,3], variable is \"bad\"");
  check_error<DTypeError>(apply(slices(row, ones({1}), {2, 3}), bad),
                          "apply_gradients: the indices of slices must be integers: values is f32[1,3], "
                          "indices is f32[1], dense_shape is [2,3], variable is \"bad\"");
  for (const std::int64_t index : {2, -1})
    check_error<ShapeError>(
        apply(slices(row, tensor<std::int64_t>({index}), {2, 3}), bad),
        "apply_gradients: index " + std::to_string(index) +
            " at position 0 of the slices is out of range: values is f32[1,3], indices is i64[1], "
            "dense_shape is [2,3], variable is \"bad\"");

  CHECK(adam.iterations() == 0);
  CHECK_FALSE(adam.slot(good, "m").defined());
  CHECK_THAT(good.value().to_vector(), Equals(std::vector<double>{1, 1}));
}

TEST_CASE("hyperparameters are checked, read and set", "[optimizer]") {
  Adam adam({.beta1 = 0.5});
  CHECK(adam.hyperparameter("beta1") == 0.5);
  CHECK(adam.hyperparameter("beta2") == 0.999);
  CHECK_THAT(adam.slot_names(), Equals(std::vector<std::string>{"m", "v"}));
  CHECK(GradientDescent({.learning_rate = 1}).slot_names().empty());

  check_error<ArgumentError>([] { Optimizer("adams"); },
                             "optimizer: there is no update rule \"adams\"; use one of gradient_descent, "
                             "momentum, keras_sgd, adagrad, keras_adagrad, "
                             "adagrad_da, adadelta, adam, adamw, adamax, nadam, rmsprop, keras_rmsprop, "
                             "ftrl, proximal_gradient_descent, proximal_adagrad, lamb, lion");
  check_error<ArgumentError>(
      [] { Optimizer("gradient_descent"); },
      "gradient_descent: learning_rate is missing, or not a number; use a finite number of 0 or more");
  check_error<ArgumentError>([] { Adam({.beta1 = 1}); },
                             "adam: beta1 is out of range: 1; use a number from 0 up to but without 1");
  check_error<ArgumentError>([&] { adam.set_hyperparameter("epsilon", -1); },
                             "adam: epsilon is out of range: -1; use a finite number of 0 or more");
  check_error<ArgumentError>([&] { (void)adam.hyperparameter("rho"); },
                             "adam: there is no hyperparameter \"rho\"; use one of learning_rate, beta1, "
                             "beta2, epsilon, lazy, amsgrad");

  check_error<ArgumentError>([] { Momentum({.learning_rate = 1.0}); },
                             "momentum: momentum is missing, or not a number; use a finite number");
  CHECK(RMSProp({.learning_rate = 1}).hyperparameter("epsilon") == 1e-10);
  CHECK(RMSProp({.learning_rate = 1}).hyperparameter("initial_mean_square") == 1);
  CHECK(Adam().hyperparameter("epsilon") == 1e-8);
  CHECK(Adadelta().hyperparameter("epsilon") == 1e-8);

  const Variable x(tensor(1.0, DType::f64));
  GradientDescent descent({.learning_rate = 0.5});
  descent.apply_gradients({{tensor(1.0, DType::f64), x}});
  descent.set_hyperparameter("learning_rate", 0.25);
  descent.apply_gradients({{tensor(1.0, DType::f64), x}});
  CHECK(x.value().item() == 0.25);
}

TEST_CASE("an update writes in place if the value has no other owner", "[optimizer]") {
  const std::string rule = GENERATE("gradient_descent", "adam");
  const std::int64_t n = GENERATE(3, 1000);
  Optimizer optimizer(rule, {{"learning_rate", 0.5}});
  const Variable x(ones({n}));
  const Tensor g = ones({n});
  optimizer.apply_gradients({{g, x}});   // the initial value still had another handle

  const std::byte* memory = x.cell().value.raw();
  const std::uint64_t id = x.cell().value.id();
  optimizer.apply_gradients({{g, x}});
  CHECK(x.cell().value.raw() == memory);
  CHECK(x.cell().value.id() != id);

  const Tensor kept = x.value(), part = slice(kept, {0}, {2});
  const std::vector<double> before = kept.to_vector();
  optimizer.apply_gradients({{g, x}});
  CHECK((x.cell().value.raw() == memory) == (n == 3));   // a read of a small variable has a copy
  CHECK_THAT(kept.to_vector(), Equals(before));
  CHECK(part.at({1}) == before[1]);
  CHECK(x.value().at({0}) < before[0]);
}

TEST_CASE("slots that were read keep their value", "[optimizer]") {
  Adam adam;
  const Variable x(ones({100}));
  adam.apply_gradients({{ones({100}), x}});
  const Tensor m = adam.slot(x, "m");
  adam.apply_gradients({{ones({100}), x}});
  CHECK(m.at({0}) == Approx(0.1));
  CHECK(adam.slot(x, "m").at({0}) == Approx(0.19));
}

TEST_CASE("an update while a tape has saved the old value", "[optimizer]") {
  const Variable x(full({100}, 3, DType::f64));
  GradientDescent descent({.learning_rate = 1});
  GradientTape tape;
  const Tensor y = x * x;
  descent.apply_gradients({{ones({100}, DType::f64), x}});
  CHECK(x.value().at({7}) == 2);
  CHECK(tape.gradient(y, x).dense().at({7}) == 6);
}

TEST_CASE("a variable that is listed twice is updated twice", "[optimizer]") {
  const Variable x(ones({4}));
  const Tensor held = x.value();
  GradientDescent({.learning_rate = 1}).apply_gradients({{ones({4}), x}, {ones({4}), x}});
  CHECK(x.value().at({0}) == -1);
  CHECK(held.at({0}) == 1);
}

TEST_CASE("a gradient may be the variable's own value", "[optimizer]") {
  const Variable x(ones({40}));
  GradientDescent({.learning_rate = 0.5}).apply_gradients({{x.value(), x}});
  CHECK(x.value().at({0}) == 0.5);
}

TEST_CASE("cases: gradient descent", "[cases][optimizer]") {
  for (const char* id : {"opt-sgd-basic", "opt-sgd-global-step"}) {
    check_case(id, [&](Case& c) {
      const Variable a = c.variable(c.input("var0")), b = c.variable(c.input("var1"));
      GradientDescent& descent = c.keep([&] { return GradientDescent({.learning_rate = c.number("lr")}); });
      descent.apply_gradients({{c.input("grad0"), a}, {c.input("grad1"), b}});
      c.check("var0", a.value());
      c.check("var1", b.value());
      if (std::string(id) == "opt-sgd-basic")
        c.check("n_optimizer_variables", descent.slot_names().size());
      else
        c.check("global_step", descent.iterations());
    });
  }
  check_case("opt-sgd-sparse", [&](Case& c) {
    const Variable a = c.variable(tensor({{1.0}, {2.0}})), b = c.variable(tensor({{3.0}, {4.0}}));
    GradientDescent& descent = c.keep([&] { return GradientDescent({.learning_rate = c.number("lr")}); });
    descent.apply_gradients({{slices(tensor({{0.1}}), tensor<std::int64_t>({0}), {2, 1}), a},
                             {slices(tensor({{0.01}}), tensor<std::int64_t>({1}), {2, 1}), b}});
    c.check("var0", a.value());
    c.check("var1", b.value());
  });
  check_case("opt-sgd-minimize-matmul", [&](Case& c) {
    const Variable a = c.variable(tensor({{1.0, 2.0}})), b = c.variable(tensor({3.0}));
    GradientTape tape;
    const Tensor loss = square(matmul(a, tensor({{4.0}, {5.0}})) + b);
    const auto [da, db] = tape.gradient(loss, a, b);
    GradientDescent& descent = c.keep([&] { return GradientDescent({.learning_rate = c.number("lr")}); });
    descent.apply_gradients({{da, a}, {db, b}});
    c.check("var0", a.value());
    c.check("var1", b.value());
  });
}

TEST_CASE("cases: adam", "[cases][optimizer]") {
  check_case("opt-adam-v1-basic", DType::f64, [&](Case& c) {
    const Variable a = c.variable(c.input("var0")), b = c.variable(c.input("var1"));
    Adam& adam = c.keep([&] { return Adam(); });
    std::vector<Tensor> as, bs;
    std::vector<double> powers;
    for (int step = 0; step < 3; ++step) {
      adam.apply_gradients({{c.input("grad0"), a}, {c.input("grad1"), b}});
      as.push_back(identity(a)), bs.push_back(identity(b));
      powers.push_back(std::pow(adam.hyperparameter("beta1"), static_cast<double>(adam.iterations() + 1)));
    }
    c.check("var0", as);
    c.check("var1", bs);
    c.check("beta1_power_after", powers);
  });
  check_case("opt-adam-two-updates-share", DType::f64, [&](Case& c) {
    const Variable a = c.variable(c.input("var0")), b = c.variable(c.input("var1"));
    const std::vector<GradientAndVariable> pairs = {{c.input("grad0"), a}, {c.input("grad1"), b}};
    Adam& adam = c.keep([&] { return Adam(); });
    for (int step = 0; step < 3; ++step)
      adam.apply_gradients(pairs);
    c.check("var0", a.value());
  });
  check_case("opt-adam-repeated-indices", [&](Case& c) {
    const Variable x = c.variable(tensor({{1.0}, {2.0}}, DType::f64));
    Adam& adam = c.keep([&] { return Adam(); });
    std::vector<double> row1;
    for (int step = 0; step < 3; ++step) {
      adam.apply_gradients(
          {{slices(tensor({{0.1}, {0.1}}, DType::f64), tensor<std::int64_t>({1, 1}), {2, 1}), x}});
      row1.push_back(x.value().at({1, 0}));
    }
    c.check("var_row1", row1);
    c.check("row0", x.value().at({0, 0}));
  });
  check_case("opt-adam-sparse-stale-row-moves", [&](Case& c) {
    const Variable x = c.variable(tensor({{1.0}, {2.0}}, DType::f64));
    Adam& adam = c.keep([&] { return Adam({.learning_rate = c.number("lr")}); });
    std::vector<double> row1;
    for (const std::int64_t row : {1, 0, 0}) {
      adam.apply_gradients({{slices(tensor({{0.2}}, DType::f64), tensor<std::int64_t>({row}), {2, 1}), x}});
      row1.push_back(x.value().at({1, 0}));
    }
    c.check("row1_by_step", row1);
  });
}

TEST_CASE("a learning rate is not negative", "[optimizer][errors]") {
  CHECK_THROWS_WITH(
      GradientDescent({.learning_rate = -0.1}),
      "gradient_descent: learning_rate is out of range: -0.1; use a finite number of 0 or more");
}

// TensorFlow's kernel ApplyAdagradDA, with T = global_step + 1, in plain double.
TEST_CASE("adagrad by dual averaging counts by the global step", "[optimizer]") {
  const Variable x(tensor(5.0, DType::f64)), count(tensor(std::int64_t{10}), {.trainable = false});
  AdagradDA adagrad({.learning_rate = 0.5, .l1 = 0.01, .l2 = 0.02, .global_step = count});
  double sum = 0, squares = 0.1;
  for (int i = 1; i <= 4; ++i) {
    const double g = 2.5 - i, t = 10 + i;
    sum += g, squares += g * g;
    adagrad.apply_gradients({{tensor(g, DType::f64), x}}, count);
    const double pulled = std::copysign(std::max(std::abs(sum) - 0.01 * t, 0.0), sum);
    CHECK(x.value().item() == Approx(-0.5 * pulled / (0.02 * t * 0.5 + std::sqrt(squares))).epsilon(1e-14));
  }
  CHECK(count.value().item() == 14);
  CHECK(adagrad.hyperparameter("global_step") == 14);

  const auto after_one = [&](Optimizer&& optimizer) {
    x.assign(tensor(5.0, DType::f64));
    optimizer.apply_gradients({{tensor(1.0, DType::f64), x}});
    return x.value().item();
  };
  count.assign(tensor(std::int64_t{10}));
  CHECK(after_one(AdagradDA({.learning_rate = 1.0, .l1 = 0.01, .global_step = count})) ==
        Approx(-(1 - 0.11) / std::sqrt(1.1)));
  CHECK(after_one(AdagradDA({.learning_rate = 1.0, .l1 = 0.01})) == Approx(-(1 - 0.01) / std::sqrt(1.1)));
  CHECK(after_one(Optimizer("adagrad_da", {{"learning_rate", 1.0}, {"l1", 0.01}, {"global_step", 10.0}})) ==
        Approx(-(1 - 0.11) / std::sqrt(1.1)));
  const Variable half(tensor(0.5));
  CHECK(message_of<ArgumentError>([&] { AdagradDA({.learning_rate = 1.0, .global_step = half}); }) ==
        "adagrad_da: global_step is out of range: 0.5; use a whole number of 0 or more, or -1 for the "
        "optimizer's own count");
}

TEST_CASE("the presets have Keras's numbers", "[optimizer]") {
  check_numbers(Momentum(keras::sgd()), "keras_sgd",
                {{"learning_rate", 0.01}, {"momentum", 0}, {"nesterov", 0}});
  check_numbers(Adagrad(keras::adagrad()), "keras_adagrad",
                {{"learning_rate", 1e-3}, {"initial_accumulator_value", 0.1}, {"epsilon", 1e-7}});
  check_numbers(Adadelta(keras::adadelta()), "adadelta",
                {{"learning_rate", 1e-3}, {"rho", 0.95}, {"epsilon", 1e-7}});
  check_numbers(Adam(keras::adam()), "adam",
                {{"learning_rate", 1e-3},
                 {"beta1", 0.9},
                 {"beta2", 0.999},
                 {"epsilon", 1e-7},
                 {"lazy", 0},
                 {"amsgrad", 0}});
  check_numbers(RMSProp(keras::rmsprop()), "keras_rmsprop",
                {{"learning_rate", 1e-3},
                 {"rho", 0.9},
                 {"momentum", 0},
                 {"epsilon", 1e-7},
                 {"centered", 0},
                 {"initial_mean_square", 0}});
  check_numbers(Ftrl(keras::ftrl()), "ftrl",
                {{"learning_rate", 1e-3},
                 {"learning_rate_power", -0.5},
                 {"initial_accumulator_value", 0.1},
                 {"l1", 0},
                 {"l2", 0},
                 {"l2_shrinkage", 0},
                 {"beta", 0}});
  for (const std::string_view rule : {"keras_sgd", "keras_adagrad", "keras_rmsprop"})
    CHECK(Optimizer(rule).hyperparameter("learning_rate") == (rule == "keras_sgd" ? 0.01 : 1e-3));

  CHECK(Momentum(keras::sgd(0.5, 0.25)).hyperparameter("momentum") == 0.25);
  CHECK(Adam(keras::adam(schedule::constant(0.5))).hyperparameter("learning_rate") == 0.5);
  static_assert(!std::is_default_constructible_v<Momentum> && !std::is_default_constructible_v<Adagrad> &&
                !std::is_default_constructible_v<RMSProp> && !std::is_default_constructible_v<Ftrl>);
  AdamOptions options = keras::adam();
  options.beta1 = 0.5;
  CHECK(Adam(options).hyperparameter("beta1") == 0.5);
}

TEST_CASE("options choose the formula", "[optimizer]") {
  CHECK(Momentum({.learning_rate = 0.5, .momentum = 0.9}).name() == "momentum");
  CHECK(Momentum({.learning_rate = 0.5, .momentum = 0.9, .accumulate_steps = true}).name() == "keras_sgd");
  CHECK(Adagrad({.learning_rate = 0.5}).name() == "adagrad");
  CHECK(Adagrad({.learning_rate = 0.5, .epsilon = 1e-3}).name() == "keras_adagrad");
  CHECK(Adagrad({.learning_rate = 0.5, .epsilon = [] { return 0.0; }}).name() == "keras_adagrad");
  CHECK(Adagrad({.learning_rate = 0.5, .initial_accumulator_value = 0, .epsilon = 1e-3})
            .hyperparameter("initial_accumulator_value") == 0);

  // With x = 0 and g = 3: s = 0.75·s + 0.25·9.
  const auto after_one = [](RMSProp rule) {
    const Variable x(tensor(0.0, DType::f64));
    rule.apply_gradients({{tensor(3.0, DType::f64), x}});
    return std::pair(rule.slot(x, "rms").item(), x.value().item());
  };
  using Result = std::pair<double, double>;
  CHECK(after_one(RMSProp({.learning_rate = 1, .decay = 0.75, .epsilon = 1.75, .initial_mean_square = 0})) ==
        Result(2.25, -1.5));
  CHECK(after_one(RMSProp({.learning_rate = 1, .decay = 0.75, .epsilon = 1})) == Result(3, -1.5));
  RMSPropOptions outside = {.learning_rate = 1, .decay = 0.75, .epsilon = 1, .initial_mean_square = 9};
  outside.epsilon_outside = true;
  CHECK(after_one(RMSProp(outside)) == Result(9, -0.75));
  CHECK_THROWS_AS(RMSProp({.learning_rate = 1, .initial_mean_square = -1}), ArgumentError);
}

// The variance of a gradient that hardly changes is less than its rounding.
TEST_CASE("centered RMSProp stays finite where a gradient hardly changes", "[optimizer]") {
  for (const bool of_keras : {false, true})
    for (const double momentum : {0.0, 0.9})
      for (const double falls : {1e-5, 3e-5}) {
        CAPTURE(of_keras, momentum, falls);
        const Variable x(zeros({3}));
        RMSPropOptions options = of_keras ? keras::rmsprop() : RMSPropOptions{.learning_rate = 1e-3};
        options.momentum = momentum;
        options.centered = true;
        RMSProp rule(options);
        for (int t = 0; t < 400; ++t)
          rule.apply_gradients({{full({3}, std::exp(-falls * t)), x}});
        CHECK(std::isfinite(x.value().at({1})));
      }
}

}   // namespace optimizer_test
