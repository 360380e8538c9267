// The cases of test/data/cases.json on optimizers.
#include <catch2/catch.hpp>

#include "case.h"
#include "tapedeck/gradient_transform.h"
#include "tapedeck/keras.h"
#include "tapedeck/moving_average.h"
#include "values.h"

namespace optimizer_cases_test {

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

Tensor column(double a, double b) { return tensor({{a}, {b}}, DType::f64); }
Gradient row(std::int64_t index, double value) {
  return IndexedSlices{tensor({{value}}, DType::f64), tensor({index}), Shape{2, 1}};
}

/// The two variables of most cases, with the same gradients in every step.
struct Pair {
  Variable a, b;
  Tensor da, db;

  explicit Pair(Case& c) : Pair(c, c.input("grad0"), c.input("grad1")) {}
  Pair(Case& c, Tensor ga, Tensor gb)
      : a(c.variable(c.input("var0"))), b(c.variable(c.input("var1"))), da(ga), db(gb) {}

  void step(Optimizer& optimizer, int n = 1) const {
    for (int i = 0; i < n; ++i)
      optimizer.apply_gradients({{da, a}, {db, b}});
  }
  void check(Case& c) const {
    c.check("var0", a.value());
    c.check("var1", b.value());
  }
  /// The values after each of that many steps.
  void check_steps(Case& c, Optimizer& optimizer, int n) const {
    std::vector<Tensor> as, bs;
    for (int i = 0; i < n; ++i) {
      step(optimizer);
      as.push_back(identity(a)), bs.push_back(identity(b));
    }
    c.check("var0", as);
    c.check("var1", bs);
  }
};

/// The gradients that the cases of Ftrl and the proximal rules name in words.
Pair regularised(Case& c) { return Pair(c, f64({0.1, 0.2}), f64({0.01, 0.02})); }

}   // namespace

TEST_CASE("cases: adagrad", "[cases][optimizer]") {
  check_case("opt-adagrad-basic", DType::f64, [&](Case& c) {
    const Pair p(c);
    Adagrad& adagrad =
        c.keep([&] { return Adagrad({.learning_rate = c.number("lr"), .initial_accumulator_value = 0.1}); });
    p.step(adagrad, 3);
    p.check(c);
  });
  check_case("opt-adagrad-da-plain", DType::f64, [&](Case& c) {
    const Pair p(c);
    AdagradDA& adagrad = c.keep([&] {
      return AdagradDA({.learning_rate = c.number("lr"),
                        .initial_gradient_squared_accumulator_value = 0.1,
                        .l1 = c.number("l1"),
                        .l2 = c.number("l2")});
    });
    p.step(adagrad);
    p.check(c);
  });
  check_case("opt-keras-adagrad-large-eps", DType::f64, [&](Case& c) {
    const Pair p(c);
    Adagrad& adagrad = c.keep([&] {
      AdagradOptions options = keras::adagrad(3.0);
      options.epsilon = 1;
      return Adagrad(options);
    });
    p.check_steps(c, adagrad, 3);
  });
}

TEST_CASE("cases: adadelta", "[cases][optimizer]") {
  for (const char* id : {"opt-adadelta-g0.2-lr1", "opt-adadelta-g0.1-lr1", "opt-adadelta-g0.1-lr0.5",
                         "opt-adadelta-g0.01-lr1", "opt-adadelta-g0.01-lr0.5", "opt-adadelta-g0.01-lr0.1"}) {
    check_case(id, DType::f64, [&](Case& c) {
      const Variable x = c.variable(c.input("var0"));
      Adadelta& adadelta = c.keep([&] { return Adadelta({.learning_rate = c.number("lr")}); });
      std::vector<Tensor> xs;
      std::vector<double> a, u;
      for (int i = 0; i < 4; ++i) {
        adadelta.apply_gradients({{c.input("grad"), x}});
        xs.push_back(identity(x));
        a.push_back(adadelta.slot(x, "accum").at({0}));
        u.push_back(adadelta.slot(x, "accum_update").at({1}));
      }
      c.check("var0_by_step", xs);
      c.check("accum", a);
      c.check("accum_update", u);
    });
  }
}

TEST_CASE("cases: relatives of adam", "[cases][optimizer]") {
  check_case("opt-adam-keras-amsgrad-sparse", [&](Case& c) {
    const Variable x = c.variable(column(1, 2));
    Adam& adam = c.keep([&] {
      AdamOptions options = keras::adam();
      options.amsgrad = true;
      return Adam(options);
    });
    std::vector<double> row1;
    for (int i = 0; i < 3; ++i) {
      adam.apply_gradients({{row(1, 0.2), x}});
      row1.push_back(x.value().at({1, 0}));
    }
    c.check("var_row1", row1);
    c.check("row0", x.value().at({0, 0}));
    CHECK(adam.slot(x, "vhat").at({1, 0}) == adam.slot(x, "v").at({1, 0}));
  });
  check_case("opt-adamax-basic", DType::f64, [&](Case& c) {
    const Pair p(c);
    Adamax& adamax = c.keep([&] { return Adamax(); });
    p.check_steps(c, adamax, 3);
  });
  check_case("opt-nadam-basic", DType::f64, [&](Case& c) {
    const Pair p(c);
    Nadam& nadam = c.keep([&] { return Nadam(); });
    p.check_steps(c, nadam, 3);
  });
}

TEST_CASE("cases: rmsprop", "[cases][optimizer]") {
  for (const char* id : {"opt-rmsprop-v1-1", "opt-rmsprop-v1-3", "opt-rmsprop-v1-5"}) {
    check_case(id, DType::f64, [&](Case& c) {
      const Pair p(c, f64({0.1, 0.2}), f64({0.01, 0.2}));
      const bool centered = std::string(id) == "opt-rmsprop-v1-5";
      RMSProp& rmsprop = c.keep([&] {
        return RMSProp({.learning_rate = c.number("lr"),
                        .decay = c.number("decay"),
                        .momentum = c.number("momentum"),
                        .epsilon = c.number("epsilon"),
                        .centered = centered});
      });
      p.check_steps(c, rmsprop, 4);
      c.check("rms0_final", rmsprop.slot(p.a, "rms"));
      c.check("mom0_final", rmsprop.slot(p.a, "momentum"));
      c.check("mg0_final", centered ? Gradient(rmsprop.slot(p.a, "mg")) : Gradient());
    });
  }
  check_case("opt-rmsprop-v1-momentum", DType::f64, [&](Case& c) {
    const Pair p(c);
    RMSProp& rmsprop = c.keep(
        [&] { return RMSProp({.learning_rate = 2.0, .decay = 0.9, .momentum = 0.5, .epsilon = 1e-5}); });
    std::vector<Tensor> xs;
    std::vector<double> momentum;
    for (int i = 0; i < 2; ++i) {
      p.step(rmsprop);
      xs.push_back(identity(p.a));
      momentum.push_back(rmsprop.slot(p.a, "momentum").at({0}));
    }
    c.check("mom0", momentum);
    c.check("var0", xs);
  });
  struct Setting {
    const char* id;
    double rate, epsilon, momentum;
  };
  for (const Setting& s : {Setting{"opt-rmsprop-keras-0", 0.05, 1e-3, 0},
                           {"opt-rmsprop-keras-2", 0.1, 1e-3, 0},
                           {"opt-rmsprop-keras-3", 0.01, 1e-5, 0},
                           {"opt-rmsprop-keras-4", 0.01, 1e-5, 0.9}}) {
    check_case(s.id, DType::f64, [&](Case& c) {
      const Pair p(c, f64({0.1, 0.2}), f64({0.01, 0.2}));
      RMSProp& rmsprop = c.keep([&] {
        RMSPropOptions options = keras::rmsprop(s.rate);
        options.momentum = s.momentum;
        options.epsilon = s.epsilon;
        options.centered = true;
        return RMSProp(options);
      });
      p.check_steps(c, rmsprop, 3);
    });
  }
}

TEST_CASE("cases: ftrl", "[cases][optimizer]") {
  check_case("opt-ftrl-beta", DType::f64, [&](Case& c) {
    const Pair p = regularised(c);
    Ftrl& ftrl = c.keep([&] { return Ftrl({.learning_rate = 3.0, .beta = c.number("beta")}); });
    p.step(ftrl, 10);
    p.check(c);
  });
  check_case("opt-ftrl-l2-beta", DType::f64, [&](Case& c) {
    const Pair p = regularised(c);
    Ftrl& ftrl =
        c.keep([&] { return Ftrl({.learning_rate = 3.0, .l2 = c.number("l2"), .beta = c.number("beta")}); });
    p.step(ftrl, 10);
    p.check(c);
  });
  check_case("opt-ftrl-l1-l2", DType::f64, [&](Case& c) {
    const Pair p = regularised(c);
    Ftrl& ftrl =
        c.keep([&] { return Ftrl({.learning_rate = 3.0, .l1 = c.number("l1"), .l2 = c.number("l2")}); });
    p.step(ftrl, 10);
    p.check(c);
  });
  check_case("opt-ftrl-shrinkage-sparse", DType::f64, [&](Case& c) {
    const Variable a = c.variable(column(1, 2)), b = c.variable(column(4, 3));
    Ftrl& ftrl =
        c.keep([&] { return Ftrl({.learning_rate = 3.0, .l1 = 0.001, .l2 = 2, .l2_shrinkage = 0.1}); });
    for (int i = 0; i < 10; ++i)
      ftrl.apply_gradients({{row(0, 0.1), a}, {row(1, 0.02), b}});
    c.check("var0", a.value());
    c.check("var1", b.value());
  });
  struct Setting {
    const char* id;
    double power;
  };
  for (const Setting& s : {Setting{"opt-ftrl-equals-adagrad", -0.5}, {"opt-ftrl-equals-sgd", -0.0}}) {
    check_case(s.id, DType::f64, [&](Case& c) {
      const Variable a = c.variable(f64({0, 0})), same = c.variable(f64({0, 0}));
      Ftrl& ftrl = c.keep([&] { return Ftrl({.learning_rate = 3.0, .learning_rate_power = s.power}); });
      Optimizer& other = c.keep([&] {
        return s.power == 0 ? Optimizer("gradient_descent", {{"learning_rate", 3.0}})
                            : Optimizer("adagrad", {{"learning_rate", 3.0}});
      });
      for (int i = 0; i < 5; ++i) {
        ftrl.apply_gradients({{f64({0.1, 0.2}), a}});
        other.apply_gradients({{f64({0.1, 0.2}), same}});
      }
      c.check("var0", a.value());
      if (!c.compares()) return;
      for (const std::int64_t i : {0, 1})
        CHECK(a.value().at({i}) == Approx(same.value().at({i})));
    });
  }
}

TEST_CASE("cases: proximal rules", "[cases][optimizer]") {
  check_case("opt-proximal-adagrad-no-reg", DType::f64, [&](Case& c) {
    const Pair p = regularised(c);
    ProximalAdagrad& proximal = c.keep([&] { return ProximalAdagrad({.learning_rate = 3.0}); });
    p.step(proximal, 3);
    p.check(c);
  });
  check_case("opt-proximal-gd-no-reg", DType::f64, [&](Case& c) {
    const Pair p = regularised(c);
    ProximalGradientDescent& proximal =
        c.keep([&] { return ProximalGradientDescent({.learning_rate = 3.0}); });
    p.step(proximal, 3);
    p.check(c);
  });
  check_case("opt-proximal-gd-l1-l2", DType::f64, [&](Case& c) {
    const Pair p = regularised(c);
    ProximalGradientDescent& proximal =
        c.keep([&] { return ProximalGradientDescent({.learning_rate = 3.0, .l1 = 0.001, .l2 = 2}); });
    p.step(proximal, 10);
    p.check(c);
  });
  check_case("opt-proximal-gd-sparse-minimize", DType::f64, [&](Case& c) {
    const Variable w = c.variable(tensor({{1.0, 2.0}}, DType::f64));
    const Tensor x = column(4, 5);
    ProximalGradientDescent& proximal =
        c.keep([&] { return ProximalGradientDescent({.learning_rate = 1.0}); });
    proximal.minimize([&] { return square(matmul(gather(w, tensor({0})), x)); });
    c.check("var0", w.value());
  });
}

TEST_CASE("cases: keras", "[cases][optimizer]") {
  check_case("opt-keras-sgd-momentum", DType::f64, [&](Case& c) {
    const Pair p(c);
    Momentum& sgd = c.keep([&] { return Momentum(keras::sgd(c.number("lr"), c.number("momentum"))); });
    std::vector<Tensor> slots, xs;
    for (int i = 0; i < 2; ++i) {
      p.step(sgd);
      slots.push_back(sgd.slot(p.a, "momentum") * 1);
      xs.push_back(identity(p.a));
    }
    c.check("slot0", slots);
    c.check("var0", xs);
    CHECK(Momentum(keras::sgd(1.0)).slot_names().empty());
  });
  check_case("opt-keras-global-clipnorm", DType::f64, [&](Case& c) {
    const Variable a = c.variable(f64({1})), b = c.variable(f64({2}));
    GradientDescent& descent = c.keep([] {
      GradientDescent made({.learning_rate = 1.0});
      made.add_transform(transforms::clip_global_norm(2.0));
      return made;
    });
    descent.minimize([&] { return 3 * a + 4 * b; });
    c.check("var1", a.value());
    c.check("var2", b.value());
  });
  check_case("opt-keras-adaptive-lr", DType::f64, [&](Case& c) {
    const Variable a = c.variable(f64({1, 2})), b = c.variable(f64({3, 4}));
    const Loss loss = [&] { return sum(5 * a + 3 * b); };
    const auto both = [&] { return std::vector<Tensor>{identity(a), identity(b)}; };
    GradientDescent& descent = c.keep([&] { return GradientDescent({.learning_rate = 1.0}); });
    descent.minimize(loss);
    c.check("after1", both());
    descent.set_hyperparameter("learning_rate", 0.5);
    descent.minimize(loss);
    c.check("after2", both());
    descent.set_hyperparameter("learning_rate",
                               schedule::inverse_time({.initial = 0.5, .steps = 1, .rate = 0.5}));
    descent.minimize(loss);   // the third step, of 0.5 / (1 + 0.5 · 2)
    if (c.compares()) CHECK(a.value().at({0}) == -6.5 - 5 * 0.25);
  });
}

TEST_CASE("cases: slot names", "[optimizer]") {
  using Names = std::vector<std::string>;
  CHECK(Adadelta().slot_names() == Names{"accum", "accum_update"});
  CHECK(Adagrad({.learning_rate = 1.0}).slot_names() == Names{"accumulator"});
  CHECK(RMSProp({.learning_rate = 1.0}).slot_names() == Names{"momentum", "rms"});
  CHECK(RMSProp({.learning_rate = 1.0, .centered = true}).slot_names() == Names{"mg", "momentum", "rms"});
  CHECK(RMSProp(keras::rmsprop()).slot_names() == Names{"rms"});
  CHECK(Ftrl({.learning_rate = 1.0}).slot_names() == Names{"accum", "linear"});
  CHECK(AdagradDA({.learning_rate = 1.0}).slot_names() ==
        Names{"gradient_accumulator", "gradient_squared_accumulator"});
  CHECK(Adam({.amsgrad = true}).slot_names() == Names{"m", "v", "vhat"});
}

TEST_CASE("cases: moving averages", "[cases][optimizer]") {
  check_case("ema-assign-debias", DType::f64, [&](Case& c) {
    const Variable v = c.variable(f64({0, 0}));
    MovingAverage& average = c.keep([&] { return MovingAverage(v); });
    average.update(f64({1, 2}), 0.25);
    c.check("var", v.value());
  });
  check_case("ema-weighted", [&](Case& c) {
    WeightedMovingAverage& average = c.keep([&] { return WeightedMovingAverage(0.5); });
    const double first = average.update(tensor(3.0), tensor(4.0)).item(),
                 second = average.update(tensor(11.0), tensor(22.0)).item();
    c.check("seq", {first, second});
  });
  check_case("ema-class-debias", [&](Case& c) {
    const Variable a = c.variable(tensor(10.0)), b = c.variable(tensor(30.0));
    ExponentialMovingAverage& average =
        c.keep([&] { return ExponentialMovingAverage(c.number("effective_decay"), {.zero_debias = true}); });
    std::vector<double> of_a, of_b, of_sum;
    for (int i = 0; i < 2; ++i) {
      average.apply(std::vector{a, b});
      average.apply("sum", a + b);
      of_a.push_back(average.average(a).value().item());
      of_b.push_back(average.average(b).value().item());
      of_sum.push_back(average.average("sum").value().item());
    }
    c.check("avg0", of_a);
    c.check("avg1", of_b);
    c.check("avg_tensor", of_sum);
  });
}

TEST_CASE("cases: errors of rules", "[cases][errors]") {
  const Variable x(tensor(1.0));
  check_case("opt-adagrad-bad-init", [&](Case& c) {
    c.check_error([] { Adagrad({.learning_rate = 3.0, .initial_accumulator_value = 0}); },
                  "adagrad: initial_accumulator_value is out of range: 0; use a finite number above 0");
  });
  check_case("opt-nadam-rejects-schedule", [&](Case& c) {
    c.check_error(
        [] {
          Optimizer("nadam", {{"learning_rate", schedule::constant(1)}});
        },
        "nadam: learning_rate takes no schedule; use a finite number of 0 or more");
  });
  check_case("opt-ftrl-bad-accum", [&](Case& c) {
    c.check_error([] { Ftrl({.learning_rate = 3.0, .initial_accumulator_value = -0.1}); },
                  "ftrl: initial_accumulator_value is out of range: -0.1; use a finite number of 0 or more");
  });
  check_case("opt-ftrl-bad-power", [&](Case& c) {
    c.check_error([] { Ftrl({.learning_rate = 3.0, .learning_rate_power = 0.1}); },
                  "ftrl: learning_rate_power is out of range: 0.1; use a finite number of 0 or less");
  });
  check_case("opt-ftrl-bad-l1", [&](Case& c) {
    c.check_error([] { Ftrl({.learning_rate = 3.0, .l1 = -0.1}); },
                  "ftrl: l1 is out of range: -0.1; use a finite number of 0 or more");
  });
  check_case("opt-ftrl-bad-shrinkage", [&](Case& c) {
    c.check_error([] { Ftrl({.learning_rate = 3.0, .l2_shrinkage = -0.1}); },
                  "ftrl: l2_shrinkage is out of range: -0.1; use a finite number of 0 or more");
  });
  check_case("opt-keras-minimize-tensor-needs-tape", [&](Case& c) {
    c.check_error(
        [&] { GradientDescent({.learning_rate = 1.0}).minimize(x * x, nullptr, {.variables = {{x}}}); },
        "compute_gradients: a loss that is a tensor needs the tape that recorded it; pass the tape, or a "
        "function");
  });
}

}   // namespace optimizer_cases_test
