// The stages between a loss and a step: transformations of gradients, accumulation, loss scaling. Also moving
// averages.
#include "tapedeck/training.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "message_of.h"
#include "tapedeck/gradient_transform.h"
#include "tapedeck/moving_average.h"
#include "tapedeck/tapedeck.h"
#include "values.h"

namespace optim_training_test {

using namespace tapedeck;
using namespace tapedeck::test;
using Catch::Matchers::Equals;

namespace {

/// Slices with row 1 twice, as 3 and 1, and row 0 once, as 3.
Gradient slices() {
  return IndexedSlices{tensor({{3.0}, {3.0}, {1.0}}, DType::f64), tensor({1, 0, 1}), Shape{3, 1}};
}
Values values(const Gradient& g) { return g.dense().to_vector(); }
auto close(const Values& v) { return Catch::Matchers::Approx(v); }

/// The amount that a step of gradient descent at rate 1 subtracts after this transformation of one gradient.
Values moved(const GradientTransform& t, const Gradient& g, const Variable& x) {
  const Tensor before = x.value();
  GradientDescent descent({.learning_rate = 1.0});
  descent.add_transform(t);
  descent.apply_gradients({{g, x}});
  return (before - x.value()).to_vector();
}

}   // namespace

TEST_CASE("gradients are clipped", "[optimizer]") {
  CHECK(values(clip_by_value(f64({-3, 0.5, 2}), -1, 1)) == Values{-1, 0.5, 1});
  CHECK(values(clip_by_value(slices(), -1, 3.5)) == Values{3, 3.5, 0});   // clips the sum in row 1
  CHECK_THAT(values(clip_by_norm(f64({3, 4}), 1)), close({0.6, 0.8}));
  CHECK(values(clip_by_norm(f64({3, 4}), 6)) == Values{3, 4});
  CHECK(values(clip_by_norm(f64({0, 0}), 0)) == Values{0, 0});
  CHECK_THAT(values(clip_by_norm(slices(), 1)), close({0.6, 0.8, 0}));
  CHECK(clip_by_norm(slices(), 1).slices());
  CHECK_FALSE(clip_by_value(Gradient(), 0, 1).defined());

  const std::vector<Gradient> all = {f64({3, 0}), Gradient(), slices(), f64({std::sqrt(2)})};   // 9 + 25 + 2
  CHECK(global_norm(all) == Approx(6));
  const std::vector<Gradient> clipped = clip_by_global_norm(all, 3);
  CHECK_THAT(values(clipped[0]), close({1.5, 0}));
  CHECK_FALSE(clipped[1].defined());
  CHECK_THAT(values(clipped[2]), close({1.5, 2, 0}));
  CHECK(values(clip_by_global_norm(all, 7)[0]) == Values{3, 0});
  for (const Gradient& g : clip_by_global_norm(std::vector<Gradient>{f64({1}), f64({INFINITY})}, 3))
    CHECK(std::isnan(values(g)[0]));
  CHECK(global_norm(std::vector<Gradient>{full({2}, 3e30)}) ==
        Approx(std::sqrt(2.0) * 3e30));   // whose squares overflow f32

  CHECK(message_of<ArgumentError>([] { clip_by_value(f64({1}), 1, 0); }) ==
        "clip_by_value: the bounds are 1 and 0; use ascending ones");
  CHECK(message_of<ArgumentError>([] { clip_by_norm(f64({1}), -1); }) ==
        "clip_by_norm: the limit is -1; use 0 or more");
  CHECK(message_of<ArgumentError>([] { transforms::clip_global_norm(-1.0); }) ==
        "clip_global_norm: the limit is -1; use 0 or more");
}

TEST_CASE("transformations change the gradients of a step, in their order", "[optimizer]") {
  const Variable x(f64({1, 2}), {.name = "x"}), y(f64({10})),
      table(tensor({{1.0}, {2.0}, {3.0}}, DType::f64));
  CHECK(moved(transforms::clip_value(0.5), f64({-3, 0.25}), x) == Values{-0.5, 0.25});
  CHECK(moved(transforms::scale(3.0), f64({-3, 0.25}), x) == Values{-9, 0.75});
  CHECK_THAT(moved(transforms::clip_norm(1.0), f64({3, 4}), x), close({0.6, 0.8}));
  CHECK_THAT(moved(transforms::weight_decay(0.5), f64({1, 1}), Variable(f64({1, 2}))), close({1.5, 2}));
  CHECK_THAT(moved(transforms::weight_decay(0.5), slices(), table), close({3.5, 5, 0}));
  CHECK_THAT(moved(transforms::weight_decay(0.5, [](const Variable& v) { return v.name() == "w"; }),
                   f64({1, 1}), Variable(f64({1, 2}))),
             close({1, 1}));

  GradientDescent descent({.learning_rate = 1.0});
  descent.add_transform(transforms::scale([](std::int64_t step) { return step == 0 ? 2.0 : 1.0; }));
  descent.add_transform(transforms::clip_global_norm(5.0));
  const Variable a(f64({0})), b(f64({0}));
  const Tensor da = f64({3}), db = f64({4});
  descent.apply_gradients({{da, a}, {Gradient(), x}, {db, b}});
  CHECK(a.value().item() == Approx(-3));
  CHECK(b.value().item() == Approx(-4));
  CHECK(da.item() == 3);

  // A transformation that throws, and one that returns a gradient of a wrong shape or dtype.
  const Values before = y.value().to_vector();
  descent.add_transform([](std::span<GradientAndVariable> pairs, std::int64_t step) {
    if (step == 1) throw ArgumentError("not yet");
    pairs[0].gradient = ones({7}, DType::f64);
  });
  CHECK(message_of<ArgumentError>([&] { descent.apply_gradients({{da, y}}); }) == "not yet");
  descent.restore_scalar("iterations", 5);
  CHECK(message_of<ShapeError>([&] {
          descent.apply_gradients({{da, y}});
        }) == "apply_gradients: the gradient does not fit variable #" + std::to_string(y.id()) +
                  ": gradient is f64[7], variable is f64[1]");
  CHECK(y.value().to_vector() == before);
  CHECK(message_of<ArgumentError>([&] { descent.add_transform({}); }) ==
        "add_transform: the transformation is an empty function");
}

// In f32, rounded to the half once.
TEST_CASE("transformations of halves agree with f32", "[half][optimizer]") {
  const std::pair<const char*, GradientTransform> all[] = {
      {"clip_value", transforms::clip_value(0.5)},
      {"clip_norm", transforms::clip_norm(1.5)},
      {"clip_global_norm", transforms::clip_global_norm(1.5)},
      {"scale", transforms::scale(0.3)},
      {"noise", transforms::noise({.seed = 4}, 0.3)}};
  for (const DType half : {DType::f16, DType::bf16})
    for (const auto& [name, transform] : all) {
      CAPTURE(half, name);
      const Tensor g = astype(random::normal({7}, {.seed = 1}), half), wide = astype(g, DType::f32);
      std::vector<GradientAndVariable> pairs = {{g, Variable(g)}}, twins = {{wide, Variable(wide)}};
      transform(pairs, 3), transform(twins, 3);
      CHECK(pairs[0].gradient.dense().dtype() == half);
      CHECK(astype(pairs[0].gradient.dense(), DType::f32).to_vector() ==
            astype(astype(twins[0].gradient.dense(), half), DType::f32).to_vector());
    }
}

// In halves a decay of a thousandth of the gradient would be lost.
TEST_CASE("weight decay of halves is added in f32", "[half][optimizer]") {
  for (const DType half : {DType::f16, DType::bf16}) {
    std::vector<GradientAndVariable> pairs = {
        {full({2}, 0.125, half), Variable(full({2}, 1, half))},
        {IndexedSlices{full({1, 2}, 0.125, half), tensor({1}), Shape{2, 2}},
         Variable(full({2, 2}, 1, half))}};
    transforms::weight_decay(1e-5)(pairs, 0);
    CHECK(pairs[0].gradient.dense().at({0}) == Approx(0.12501).epsilon(1e-6));
    CHECK(pairs[1].gradient.slices()->values.at({0, 1}) == Approx(0.12501).epsilon(1e-6));
    GradientDescent descent({.learning_rate = 1.0});
    descent.apply_gradients(pairs);
  }
}

TEST_CASE("noise is determined by its key and step", "[optimizer]") {
  const auto noise = [](std::uint64_t seed, std::int64_t step) {
    const Variable x(zeros({10000}));
    GradientDescent descent({.learning_rate = 1.0});
    descent.add_transform(transforms::noise({.seed = seed}, 0.5));
    descent.restore_scalar("iterations", static_cast<double>(step));
    descent.apply_gradients({{zeros({10000}), x}});
    return x.value();
  };
  const Tensor a = noise(1, 0);
  CHECK(mean(a).item() == Approx(0).margin(0.02));
  CHECK(euclidean_norm(a).item() / 100 == Approx(0.5).epsilon(0.03));
  CHECK(a.to_vector() == noise(1, 0).to_vector());
  CHECK(a.to_vector() != noise(1, 1).to_vector());
  CHECK(a.to_vector() != noise(2, 0).to_vector());
}

TEST_CASE("micro-batches add up to one step", "[optimizer]") {
  const Variable x(f64({0, 0}), {.name = "x"}), table(zeros({3, 1}, DType::f64));
  GradientAccumulator accumulator;
  CHECK(message_of<ArgumentError>([&] { accumulator.take_mean(); }) == "take_mean: no gradients were added");
  accumulator.add({{f64({1, 2}), x}, {Gradient(), table}});
  accumulator.add({{f64({3, 6}), x}, {slices(), table}});
  CHECK(accumulator.count() == 2);
  CHECK(message_of<ShapeError>([&] {
          accumulator.add({{slices(), table}, {f64({1}), x}});
        }) == "gradient_accumulator: variable \"x\" is f64[2], its gradient has the shape [1]");
  CHECK(accumulator.count() == 2);
  std::vector<GradientAndVariable> mean = accumulator.take_mean();
  REQUIRE(mean.size() == 2);
  CHECK(values(mean[0].gradient) == Values{2, 4});
  CHECK(values(mean[1].gradient) == Values{1.5, 2, 0});
  CHECK(mean[1].gradient.slices());
  CHECK(accumulator.count() == 0);
  accumulator.add({{f64({1, 2}), x}});
  accumulator.add({{f64({1, 2}), x}});
  CHECK(values(accumulator.take_sum()[0].gradient) == Values{2, 4});
}

TEST_CASE("a scaled loss takes the same steps, and none where it overflows", "[optimizer]") {
  LossScale scale({.initial = 4, .growth_interval = 2, .least = 1, .most = 16});
  const Variable x(tensor(3.0, DType::f64)), count(tensor(0), {.trainable = false});
  GradientDescent descent({.learning_rate = 0.25});
  CHECK(scale
            .minimize(
                descent, [&] { return square(x); }, {}, count)
            .item() == 9);
  CHECK(x.value().item() == 1.5);
  CHECK(scale.value() == 4);
  scale.minimize(descent, [&] { return square(x); });
  CHECK(scale.value() == 8);
  for (const double bad : {INFINITY, NAN})
    scale.minimize(
        descent, [&] { return x * bad; }, {}, count);
  CHECK(x.value().item() == 0.75);
  CHECK(scale.value() == 2);
  CHECK(scale.skipped() == 2);
  CHECK(descent.iterations() == 2);
  CHECK(count.value().item() == 1);
  for (int i = 0; i < 3; ++i)
    scale.minimize(descent, [&] { return x * INFINITY; });
  CHECK(scale.value() == 1);

  std::vector<GradientAndVariable> pairs = {{slices(), x}, {Gradient(), x}};
  LossScale fixed({.initial = 2, .growth_interval = 0});
  CHECK(fixed.unscale(pairs));
  CHECK(values(pairs[0].gradient) == Values{1.5, 2, 0});
  CHECK(fixed.value() == 2);
  CHECK(message_of<ArgumentError>([] { LossScale({.initial = 0}); }) ==
        "loss_scale: initial is 0, least is 1, most is 16777216; use ascending numbers above 0: least, "
        "initial, most");
  CHECK(
      message_of<ArgumentError>([] { LossScale({.factor = 1}); }) ==
      "loss_scale: factor is 1, growth_interval is 2000; use a factor above 1 and an interval of 0 or more");
}

// Copies would write to the same variables, each by a weight of its own.
static_assert(!std::is_copy_constructible_v<MovingAverage> && !std::is_copy_assignable_v<MovingAverage>);
static_assert(!std::is_copy_constructible_v<ExponentialMovingAverage> &&
              std::is_move_constructible_v<ExponentialMovingAverage>);

TEST_CASE("moving averages follow values", "[optimizer]") {
  const Variable v(tensor(10.0)), counts(tensor({1, 2}), {.name = "counts"});
  ExponentialMovingAverage average(0.75);
  CHECK_FALSE(average.has_average(v));
  const auto none = [&](const auto& of) {
    return message_of<ArgumentError>([&] { (void)average.average(of); });
  };
  CHECK(none(v) == "exponential_moving_average: variable #" + std::to_string(v.id()) +
                       " f32[] has no average yet; call apply with it first");
  CHECK(none("t") == "exponential_moving_average: \"t\" has no average yet; call apply with it first");
  CHECK_THROWS_AS(average.average(counts), ArgumentError);
  CHECK(average.variables_to_restore(std::vector{v}).contains("variable"));
  average.apply(std::vector{v});
  v.assign(tensor(20.0));
  average.apply(std::vector{v});
  CHECK(average.average(v).value().item() == 12.5);
  CHECK(average.has_average(v));
  CHECK_FALSE(average.average(v).trainable());
  CHECK(average.average(v).name() == "variable/ExponentialMovingAverage");
  CHECK(average.variables_to_restore(std::vector{v}).at("variable/ExponentialMovingAverage") == v);
  average.apply(std::vector{v}, 2);   // (1 + 2) / (10 + 2)
  CHECK(average.average(v).value().item() == 12.5 * 0.25 + 20 * 0.75);

  average.apply("t", tensor(8.0));   // from zero, without correction
  CHECK(average.average("t").value().item() == 2);
  CHECK(average.has_average("t"));
  CHECK_FALSE(average.has_average("u"));

  // Bias-corrected means: of 1 alone, then (0.5·1 + 3) / 1.5; then a plain mean.
  const Variable corrected(tensor(100.0));
  MovingAverage debiased(corrected);
  debiased.update(tensor(1.0), 0.5);
  CHECK(corrected.value().item() == 1);
  debiased.update(tensor(3.0), 0.5);
  CHECK(corrected.value().item() == Approx(3.5 / 1.5));
  MovingAverage plain(corrected, {.zero_debias = false});
  plain.update(corrected.value() + 2, 0.5);
  CHECK(corrected.value().item() == Approx(3.5 / 1.5 + 1));

  CHECK(message_of<ArgumentError>([] { ExponentialMovingAverage(1.5); }) ==
        "moving_average: decay is 1.5; use a number from 0 to 1");
  CHECK(message_of<ArgumentError>([&] { debiased.update(tensor(1.0), -1); }) ==
        "moving_average: decay is -1; use a number from 0 to 1");
  CHECK(message_of<ShapeError>([&] { debiased.update(tensor({1.0}), 1); }) ==
        "moving_average: variable #" + std::to_string(debiased.variable().id()) +
            " is f32[], the value is f32[1]");
  SavedState wrong = debiased.state();
  wrong.tensors.at("biased") = tensor({1.0});
  CHECK(message_of<ShapeError>([&] { debiased.restore(wrong); }) ==
        "restore: the average of variable #" + std::to_string(debiased.variable().id()) +
            ", f32[], is kept as f32[], not as f32[1]");
  CHECK(message_of<DTypeError>([&] {
          average.apply(std::vector{v, counts});
        }) == "exponential_moving_average: variable \"counts\" is i32[2]; use f32, f64, f16 or bf16");
}

TEST_CASE("moving averages of halves are of f32, in which they can follow", "[optimizer]") {
  const Variable v(full({2}, 1, DType::bf16), {.name = "v"});
  ExponentialMovingAverage average(0.999);
  average.apply(std::vector{v});
  v.assign(full({2}, 2, DType::bf16));
  average.apply(std::vector{v});
  average.apply("loss", full({}, 2, DType::f16));
  CHECK(average.average(v).dtype() == DType::f32);
  CHECK(average.average(v).value().to_vector()[1] == 1.001f);   // 1 in bf16
  CHECK(average.average("loss").dtype() == DType::f32);
  ExponentialMovingAverage other(0.999);
  other.restore(average.state());
  CHECK(other.average(v).value().to_vector()[1] == 1.001f);
}

TEST_CASE("a loss scale grows after a restore with a smaller growth_interval", "[optimizer]") {
  const Variable x(ones({1}));
  const auto step = [&](LossScale& scale) {
    std::vector<GradientAndVariable> pairs = {{ones({1}), x}};
    CHECK(scale.unscale(pairs));
  };
  LossScale slow({.initial = 8, .growth_interval = 100}), fast({.initial = 2, .growth_interval = 3});
  for (int i = 0; i < 5; ++i)
    step(slow);
  fast.restore(slow.state());
  step(fast);
  CHECK(fast.value() == 16);
  LossScale narrow({.initial = 2, .most = 4});
  narrow.restore(slow.state());
  CHECK(narrow.value() == 4);
}

TEST_CASE("a transformation may add another one, which is for later steps", "[optimizer]") {
  const Variable v(zeros({1}));
  GradientDescent descent({.learning_rate = 1.0});
  int calls = 0;
  descent.add_transform([&](std::span<GradientAndVariable>, std::int64_t step) {
    for (int i = 0; step == 0 && i < 20; ++i)
      descent.add_transform([&](std::span<GradientAndVariable>, std::int64_t) { ++calls; });
  });
  descent.apply_gradients({{ones({1}), v}});
  CHECK(calls == 0);
  descent.apply_gradients({{ones({1}), v}});
  CHECK(calls == 20);
}

TEST_CASE("averages and sums of gradients reject values that they cannot keep", "[optimizer]") {
  CHECK(message_of<DTypeError>([] {
          MovingAverage(Variable(tensor({1, 2}), {.name = "n"}));
        }) == "moving_average: variable \"n\" is i32[2]; use a floating-point or complex dtype");
  GradientAccumulator sum;
  CHECK(message_of<DTypeError>([&] {
          sum.add({{ones({2}, DType::f64), Variable(ones({2}), {.name = "w"})}});
        }) == "gradient_accumulator: variable \"w\" is f32[2], its gradient f64; use astype");
  CHECK(sum.count() == 0);
  // Slices whose shape is the variable's, and a dense gradient.
  const Variable w(ones({2, 1}));
  sum.add({{IndexedSlices{full({1, 1}, 2), tensor({1}), {}}, w}});
  sum.add({{ones({2, 1}), w}});
  CHECK(sum.take_mean()[0].gradient.dense().to_vector() == std::vector<double>{0.5, 1.5});
}

TEST_CASE("variables_to_restore rejects two variables with the same name", "[optimizer]") {
  const Variable a(ones({1}), {.name = "kernel"}), b(ones({1}), {.name = "kernel"});
  const ExponentialMovingAverage averages(0.5);
  CHECK(averages.variables_to_restore(std::vector<Variable>{a, a}).size() == 1);
  CHECK(message_of<ArgumentError>([&] {
          averages.variables_to_restore(std::vector<Variable>{a, b});
        }) ==
        "variables_to_restore: two variables have the name \"kernel\"; give them different names, or add the "
        "average to a Checkpoint, which has paths");
}

TEST_CASE("a loss scale may begin at its limits", "[optimizer]") {
  CHECK(LossScale({.initial = 4, .least = 4, .most = 4}).value() == 4);
  CHECK_THROWS_AS(LossScale({.initial = 4, .least = 5, .most = 8}), ArgumentError);
  CHECK_THROWS_AS(LossScale({.initial = 4, .least = 1, .most = 3}), ArgumentError);
}

TEST_CASE("an accumulator rejects gradients that do not fit", "[optimizer]") {
  const Variable w(ones({2, 3}), {.name = "w"});
  GradientAccumulator sums;
  CHECK(message_of<ShapeError>([&] {
          sums.add(std::vector<GradientAndVariable>{{ones({3}), w}});
        }) == "gradient_accumulator: variable \"w\" is f32[2,3], its gradient has the shape [3]");
  CHECK_THROWS_AS(
      sums.add(std::vector<GradientAndVariable>{{IndexedSlices{ones({1, 3}), tensor({0}), Shape{5, 3}}, w}}),
      ShapeError);
  CHECK(sums.count() == 0);
}

TEST_CASE("a loss scale does not count a step that its optimizer refuses", "[optimizer]") {
  const Variable w(ones({1}), {.name = "w"});
  GradientDescent descent({.learning_rate = 1.0});
  descent.add_transform([](std::span<GradientAndVariable>, std::int64_t) { throw ArgumentError("no"); });
  LossScale scale({.initial = 8, .growth_interval = 1});
  CHECK_THROWS_WITH(scale.minimize(descent, [&] { return w.value() * 2; }), "no");
  CHECK(scale.value() == 8);
  CHECK(scale.state().scalars[1].value == 0);   // good
}

TEST_CASE("a weighted average has the shape of its values", "[optimizer]") {
  WeightedMovingAverage average(0.5);
  CHECK(message_of<ShapeError>([&] {
          average.update(ones({3}), ones({2, 3}));
        }) == "weighted_moving_average: the weight, f32[2,3], does not broadcast to the value, f32[3]");
  CHECK(average.state().tensors.empty());
  average.update(ones({3}), tensor(2.0));
  CHECK(message_of<ShapeError>([&] {
          average.update(ones({2, 3}), tensor(2.0));
        }) == "weighted_moving_average: the value is f32[2,3], but earlier ones had the shape [3]");
  CHECK(average.update(full({3}, 4), tensor(2.0)).to_vector() == std::vector<double>{3, 3, 3});
}

}   // namespace optim_training_test
