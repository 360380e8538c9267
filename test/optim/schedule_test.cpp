// Schedules compared with closed forms, and optimizers that use them.
#include <catch2/catch.hpp>

#include "message_of.h"
#include "optim/any_rule.h"
#include "tapedeck/gradient_transform.h"
#include "tapedeck/tapedeck.h"
#include "values.h"

namespace schedule_test {

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

Values at(const Schedule& s, std::initializer_list<std::int64_t> steps) {
  Values result;
  for (const std::int64_t i : steps)
    result.push_back(s(i));
  return result;
}
const double kRoot = std::sqrt(0.5);

}   // namespace

TEST_CASE("schedules have their values", "[optimizer]") {
  CHECK_THAT(at(schedule::constant(3), {0, 100}), Catch::Matchers::Approx(Values{3, 3}));
  CHECK_THAT(at(schedule::exponential({.initial = 8, .steps = 10, .rate = 0.5}), {0, 5, 10, 20}),
             Catch::Matchers::Approx(Values{8, 8 * kRoot, 4, 2}));
  CHECK_THAT(
      at(schedule::exponential({.initial = 8, .steps = 10, .rate = 0.5, .staircase = true}), {0, 9, 10, 29}),
      Catch::Matchers::Approx(Values{8, 8, 4, 2}));
  CHECK_THAT(at(schedule::inverse_time({.initial = 8, .steps = 10, .rate = 2}), {0, 5, 10, 15}),
             Catch::Matchers::Approx(Values{8, 4, 8.0 / 3, 2}));
  CHECK_THAT(
      at(schedule::natural_exponential({.initial = 8, .steps = 10, .rate = std::log(2.0)}), {0, 10, 30}),
      Catch::Matchers::Approx(Values{8, 4, 1}));

  CHECK_THAT(at(schedule::polynomial({.initial = 5, .steps = 10, .end = 1}), {0, 5, 10, 30}),
             Catch::Matchers::Approx(Values{5, 3, 1, 1}));
  CHECK_THAT(at(schedule::polynomial({.initial = 5, .steps = 10, .end = 1, .power = 2}), {0, 5}),
             Catch::Matchers::Approx(Values{5, 2}));
  CHECK_THAT(
      at(schedule::polynomial({.initial = 5, .steps = 10, .end = 1, .cycle = true}), {0, 10, 11, 20, 30}),
      Catch::Matchers::Approx(Values{5, 1, 1 + 4 * 0.45, 1, 1}));

  CHECK_THAT(at(schedule::cosine({.initial = 4, .steps = 12}), {0, 3, 4, 6, 12, 99}),
             Catch::Matchers::Approx(Values{4, 2 + 2 * kRoot, 3, 2, 0, 0}).margin(1e-15));
  CHECK_THAT(at(schedule::cosine({.initial = 4, .steps = 12, .end = 0.25}), {0, 6, 12}),
             Catch::Matchers::Approx(Values{4, 2.5, 1}));
  // Periods of 4, 12, 36 and 108 steps begin at 0, 4, 16 and 52.
  CHECK_THAT(at(schedule::cosine_restarts({.initial = 8, .steps = 4, .longer = 3, .lower = 0.5}),
                {0, 2, 3, 4, 10, 16, 34, 52}),
             Catch::Matchers::Approx(Values{8, 4, 4 - 4 * kRoot, 4, 2, 2, 1, 1}));
  CHECK_THAT(at(schedule::cosine_restarts({.initial = 8, .steps = 4, .longer = 1, .lower = 0.5, .end = 0.1}),
                {0, 2, 4, 10}),
             Catch::Matchers::Approx(Values{8, 4.4, 4.4, 8 * (0.9 * 0.125 + 0.1)}));
  CHECK(schedule::cosine_restarts({.initial = 8, .steps = 1, .longer = 3})(121) ==
        8);   // 1 + 3 + 9 + 27 + 81

  CHECK_THAT(at(schedule::piecewise({10, 20}, {3, 2, 1}), {0, 10, 11, 20, 21}),
             Catch::Matchers::Approx(Values{3, 3, 2, 2, 1}));
  CHECK_THAT(at(schedule::warm_up(4, 8.0), {0, 1, 4, 9}), Catch::Matchers::Approx(Values{0, 2, 8, 8}));
  CHECK_THAT(at(schedule::warm_up(4, schedule::exponential({.initial = 8, .steps = 1, .rate = 0.5}), 4),
                {0, 2, 4, 5}),
             Catch::Matchers::Approx(Values{4, 6, 8, 4}));
}

// The sum of the periods one by one.
TEST_CASE("a cosine with restarts begins again at the end of each period", "[optimizer]") {
  for (const double longer : {1.0, 1.25, 1.5, 2.0, 3.0, 10.0}) {
    const auto s = schedule::cosine_restarts({.initial = 1, .steps = 64, .longer = longer, .lower = 0.75});
    double begin = 0, length = 64, height = 1;
    for (int n = 0; n < 8; ++n, begin += length, length *= longer, height *= 0.75) {
      CAPTURE(longer, n);
      const auto first = static_cast<std::int64_t>(std::ceil(begin));
      for (const std::int64_t step : {first, first + 1, first + static_cast<std::int64_t>(length / 2)}) {
        const double t = (static_cast<double>(step) - begin) / length;
        CHECK(s(step) == Approx(height * 0.5 * (1 + std::cos(3.14159265358979324 * t))).epsilon(1e-9));
      }
    }
  }
  // Periods that hardly grow are those of one length: 10⁹ of them take no longer than one.
  const auto slow = schedule::cosine_restarts({.initial = 1, .steps = 8, .longer = 1 + 1e-15});
  const auto even = schedule::cosine_restarts({.initial = 1, .steps = 8, .longer = 1});
  for (const std::int64_t step : {0, 3, 8, 4001, 800'003})
    CHECK(slow(step) == Approx(even(step)).epsilon(1e-4));
  for (int i = 0; i < 100'000; ++i)
    if (!std::isfinite(
            schedule::cosine_restarts({.initial = 1, .steps = 1, .longer = 1 + 1e-9})(1'000'000'000 + i)))
      FAIL();
}

TEST_CASE("a schedule that is an empty function is rejected when it is set", "[optimizer]") {
  const auto refused = [](const auto& f) {
    return message_of<ArgumentError>(f) == "schedule: the function is empty";
  };
  CHECK(refused([] { GradientDescent({.learning_rate = Schedule()}); }));
  CHECK(refused([] { GradientDescent({.learning_rate = std::function<double()>()}); }));
  CHECK(refused([] { schedule::warm_up(3, Schedule()); }));
  CHECK(refused([] { transforms::weight_decay(Schedule()); }));
}

TEST_CASE("an option of a schedule that was left out is an error", "[optimizer]") {
  CHECK(message_of<ArgumentError>([] { schedule::exponential({.initial = 1, .steps = 2}); }) ==
        "schedule::exponential: rate is NaN or was left out; set it");
  CHECK(message_of<ArgumentError>([] { schedule::cosine_restarts({.steps = 2}); }) ==
        "schedule::cosine_restarts: initial is NaN or was left out; set it");
  CHECK(message_of<ArgumentError>([] { schedule::cosine({.initial = 1}); }) ==
        "schedule::cosine: steps is 0; use a number above 0");
}

TEST_CASE("schedules reject invalid options", "[optimizer]") {
  CHECK(message_of<ArgumentError>([] { schedule::polynomial({.initial = 1, .steps = 2, .power = -1}); }) ==
        "schedule::polynomial: power is -1; use 0 or more");
  CHECK(message_of<ArgumentError>([] { schedule::exponential({.initial = 1, .steps = 2, .rate = -0.5}); }) ==
        "schedule::exponential: rate is -0.5; use 0 or more");
  CHECK(message_of<ArgumentError>([] { schedule::exponential({.initial = 1, .steps = 0, .rate = 1}); }) ==
        "schedule::exponential: steps is 0; use a number above 0");
  CHECK(message_of<ArgumentError>([] { schedule::polynomial({.initial = 1, .steps = 0}); }) ==
        "schedule::polynomial: steps is 0; use a number above 0");
  CHECK(message_of<ArgumentError>([] { schedule::warm_up(4, 1.0, NAN); }) ==
        "schedule::warm_up: from is NaN or was left out; set it");
  CHECK(message_of<ArgumentError>([] { schedule::cosine({.initial = NAN, .steps = 1}); }) ==
        "schedule::cosine: initial is NaN or was left out; set it");
  CHECK(message_of<ArgumentError>([] { schedule::inverse_time({.initial = 1, .steps = 1, .rate = -1}); }) ==
        "schedule::inverse_time: rate is -1; use 0 or more");
  CHECK(message_of<ArgumentError>([] {
          schedule::cosine_restarts({.initial = 1, .steps = 1, .longer = 0.5});
        }) == "schedule::cosine_restarts: longer is 0.5; use 1 or more");
  CHECK(message_of<ArgumentError>([] { schedule::piecewise({1}, {1}); }) ==
        "schedule::piecewise: 1 boundaries, but 1 values; there must be one more value than boundaries");
  CHECK(message_of<ArgumentError>([] {
          schedule::piecewise({2, 2}, {1, 2, 3});
        }) == "schedule::piecewise: the boundaries must be ascending");
  CHECK(message_of<ArgumentError>([] { schedule::warm_up(-1, 1.0); }) ==
        "schedule::warm_up: steps is -1; use 0 or more");
}

TEST_CASE("every rule takes a learning rate that begins at 0", "[optimizer]") {
  for (const std::string_view rule : Optimizer::rules()) {
    if (rule == "nadam") continue;   // takes no schedule
    CAPTURE(rule);
    for (const DType t : {DType::f32, DType::f64, DType::bf16}) {
      const Variable x(full({9}, 2, t));
      const Scheduled rate = schedule::warm_up(2, 0.125);
      Optimizer optimizer = optimizer_of(rule, rate, 0.5);
      optimizer.apply_gradients({{full({9}, 0.5, t), x}});
      if (rule != "adagrad_da")   // makes x anew from the sums
        CHECK(astype(x, DType::f64).to_vector() == Values(9, 2));
      for (int i = 0; i < 3; ++i)
        optimizer.apply_gradients({{full({9}, 0.5, t), x}});
      const double after = astype(x, DType::f64).to_vector()[0];
      CHECK((std::isfinite(after) && (after != 2 || t == DType::bf16)));
    }
  }
}

TEST_CASE("hyperparameters follow schedules and functions", "[optimizer]") {
  const Variable x(tensor(0.0, DType::f64));
  const Tensor one = tensor(1.0, DType::f64);
  GradientDescent descent({.learning_rate = schedule::piecewise({0}, {4, 1})});
  CHECK(descent.hyperparameter("learning_rate") == 4);
  descent.apply_gradients({{one, x}});
  CHECK(x.value().item() == -4);
  CHECK(descent.hyperparameter("learning_rate") == 1);
  descent.apply_gradients({{one, x}});
  CHECK(x.value().item() == -5);

  double rate = 2;   // a function is called once per step
  int calls = 0;
  descent.set_hyperparameter("learning_rate", [&] { return ++calls, rate; });
  const Variable y(tensor(0.0, DType::f64));
  descent.apply_gradients({{one, x}, {one, y}});
  CHECK(calls == 1);
  rate = NAN;
  CHECK(message_of<ArgumentError>([&] {
          descent.apply_gradients({{one, x}, {one, y}});
        }) ==
        "gradient_descent: learning_rate is missing, or not a number; use a finite number of 0 or more");
  descent.set_hyperparameter("learning_rate", [](std::int64_t) -> double { throw ArgumentError("no"); });
  CHECK(message_of<ArgumentError>([&] { descent.apply_gradients({{one, x}, {one, y}}); }) == "no");
  CHECK(x.value().item() == -7);
  CHECK(descent.iterations() == 3);

  // A schedule of momentum, too: a = 1, then 0.5 · 1 + 1.
  Momentum momentum({.learning_rate = 1.0, .momentum = schedule::piecewise({0}, {0.9, 0.5})});
  for (int i = 0; i < 2; ++i)
    momentum.apply_gradients({{one, y}});
  CHECK(momentum.slot(y, "momentum").item() == 1.5);

  CHECK(message_of<ArgumentError>([] {
          Optimizer("adam", {{"amsgrad", [] { return 1.0; }}});
        }) == "adam: amsgrad takes no schedule; use 0 or 1");
  Adam adam;
  CHECK(message_of<ArgumentError>([&] { adam.set_hyperparameter("amsgrad", 1); }) ==
        "adam: amsgrad is fixed when the optimizer is created");
  Nadam nadam;
  nadam.set_hyperparameter("learning_rate", 0.5);
  CHECK(nadam.hyperparameter("learning_rate") == 0.5);
}

TEST_CASE("a schedule may replace itself", "[optimizer]") {
  const Variable x(tensor(0.0, DType::f64));
  const Tensor one = tensor(1.0, DType::f64);
  GradientDescent descent({.learning_rate = 1.0});
  const std::string name = "learning_rate";
  const std::vector<double> rates = {4, 2};
  descent.set_hyperparameter(name, [&descent, name, rates](std::int64_t) {
    descent.set_hyperparameter(name, rates[1]);
    return rates[0];
  });
  descent.apply_gradients({{one, x}});
  descent.apply_gradients({{one, x}});
  CHECK(x.value().item() == -6);
}

}   // namespace schedule_test
