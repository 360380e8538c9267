// The state of an optimizer between steps: read by name, saved as a whole, restored at once, slot by slot, or
// before its variables exist.
#include <catch2/catch.hpp>

#include "closeness.h"
#include "message_of.h"
#include "optim/any_rule.h"
#include "tapedeck/tapedeck.h"
#include "values.h"

namespace optimizer_state_test {

using namespace tapedeck;
using namespace tapedeck::test;
using Catch::Matchers::Equals;

namespace {

using Names = std::vector<std::string>;

void steps(Optimizer& optimizer, const Variable& a, const Variable& b, int begin, int end) {
  for (int i = begin; i < end; ++i) {
    const double phase = 0.3 * i;
    optimizer.apply_gradients(
        {{sin(arange(5, DType::f64) + phase), a},
         {IndexedSlices{cos(reshape(arange(6, DType::f64), {2, 3}) * phase), tensor({i % 4, 1}), Shape{4, 3}},
          b}});
  }
}

}   // namespace

TEST_CASE("an optimizer that takes over another's state continues like it", "[optimizer]") {
  for (const std::string_view rule : Optimizer::rules()) {
    CAPTURE(rule);
    const Tensor start_a = linspace(1, 2, 5, DType::f64),
                 start_b = reshape(linspace(-1, 1, 12, DType::f64), {4, 3});
    const Variable a(start_a), b(start_b);
    Optimizer whole = optimizer_of(rule);
    steps(whole, a, b, 0, 6);

    const Variable c(start_a), d(start_b);
    Optimizer first = optimizer_of(rule);
    steps(first, c, d, 0, 3);
    Optimizer second = optimizer_of(rule);
    second.restore(first.state());
    CHECK(second.iterations() == 3);
    steps(second, c, d, 3, 6);
    CHECK(same_bits(a.value(), c.value()));
    CHECK(same_bits(b.value(), d.value()));
    for (const std::string& name : whole.slot_names())
      CHECK(same_bits(whole.slot(b, name), second.slot(d, name)));
    for (const SavedScalar& n : whole.state().scalars)
      CHECK(second.scalar(n.name) == n.value);

    Optimizer third = optimizer_of(rule);
    steps(third, c, d, 0, 1);   // so that slots exist
    third.set_weights(whole.weights());
    for (const std::string& name : whole.slot_names())
      CHECK(same_bits(whole.slot(a, name), third.slot(c, name)));
    CHECK(third.iterations() == 6);
  }
}

TEST_CASE("state lists everything by name", "[optimizer]") {
  const Variable w(tensor({1.0, 2.0}), {.name = "w"}), b(tensor(3.0), {.name = "b"});
  Adam adam({.beta1 = 0.5});
  adam.apply_gradients({{tensor({1.0, 1.0}), w}, {tensor(1.0), b}});

  const SavedState s = adam.state();
  REQUIRE(s.scalars.size() == 3);
  CHECK((s.scalars[0].name == "iterations" && s.scalars[0].value == 1));
  CHECK((s.scalars[1].name == "beta1_power" && s.scalars[1].value == 0.25));
  CHECK((s.scalars[2].name == "beta2_power" && s.scalars[2].value == 0.999 * 0.999));
  Names edges;
  for (const SlotValue& v : s.slots)
    edges.push_back(v.variable.name() + "." + v.slot);
  CHECK_THAT(edges, Equals(Names{"w.m", "w.v", "b.m", "b.v"}));
  CHECK_THAT(s.slots[0].value.to_vector(), Equals(Values{0.5, 0.5}));

  Names names;
  for (const NamedTensor& v : adam.variables())
    names.push_back(v.name);
  CHECK_THAT(names, Equals(Names{"adam/beta1_power", "adam/beta2_power", "adam/iterations", "b/adam/m",
                                 "b/adam/v", "w/adam/m", "w/adam/v"}));
  CHECK(adam.name() == "adam");
  CHECK(adam.scalar("beta1_power") == 0.25);
  CHECK(message_of<ArgumentError>([&] { adam.scalar("power"); }) ==
        "adam: there is no number \"power\"; use one of iterations, beta1_power, beta2_power");
}

TEST_CASE("a slot may be restored before there is a variable, or a step", "[optimizer]") {
  Adam adam({.learning_rate = 1, .beta1 = 0.5});
  adam.restore_slot("w", "m", tensor({14.0}), 2);
  adam.restore_slot("w", "m", tensor({13.0}), 1);   // older than the one restored before
  adam.restore_slot("other", "m", tensor({1.0}));
  const Variable w(tensor({12.0}), {.name = "w"}), unnamed(tensor({1.0}));
  CHECK_FALSE(adam.slot(unnamed, "m").defined());
  CHECK(adam.slot(w, "m").item() == 14);
  CHECK_FALSE(adam.slot(w, "v").defined());
  adam.apply_gradients({{tensor({2.0}), w}});
  CHECK(adam.slot(w, "m").item() == 8);
  CHECK(adam.slot(w, "v").item() == Approx(0.004));

  adam.restore_slot(w, "m", tensor({5.0}), 1);   // older than what was restored
  CHECK(adam.slot(w, "m").item() == 8);
  adam.restore_slot(w, "m", tensor({5.0}), 3);
  CHECK(adam.slot(w, "m").item() == 5);
  const Tensor own = tensor({7.0});
  adam.restore_slot(unnamed, "v", own);
  CHECK(adam.slot(unnamed, "v").item() == 7);
  adam.apply_gradients({{tensor({2.0}), unnamed}});
  CHECK(own.item() == 7);

  adam.restore_scalar("iterations", 40, 2);
  adam.restore_scalar("iterations", 30, 1);
  CHECK(adam.iterations() == 40);
}

TEST_CASE("a state that does not fit is not restored", "[optimizer]") {
  const Variable w(tensor({1.0, 2.0}), {.name = "w"});
  Adam adam;
  adam.apply_gradients({{tensor({1.0, 1.0}), w}});
  const Tensor m = adam.slot(w, "m");
  const auto unchanged = [&] { return adam.slot(w, "m").id() == m.id() && adam.iterations() == 1; };

  CHECK(message_of<ShapeError>([&] { adam.restore_slot(w, "m", tensor({1.0})); }) ==
        "restore: slot \"m\" of \"w\" is f32[1], the variable is f32[2]");
  CHECK(message_of<DTypeError>([&] { adam.restore_slot(w, "m", ones({2}, DType::f64)); }) ==
        "restore: slot \"m\" of \"w\" is f64[2], the variable is f32[2]");
  CHECK(message_of<ArgumentError>([&] { adam.restore_slot(w, "m", Tensor()); }) ==
        "restore: slot \"m\" of \"w\" is undefined");
  CHECK(message_of<ArgumentError>([&] { adam.restore_slot(w, "vhat", m); }) ==
        "adam: there is no slot \"vhat\"; use one of m, v");
  CHECK(message_of<ArgumentError>([&] { GradientDescent({.learning_rate = 1.0}).restore_slot(w, "m", m); }) ==
        "gradient_descent: there is no slot \"m\"; this optimizer has no slots");
  CHECK(message_of<ArgumentError>([&] { adam.restore_scalar("iterations", 1.5); }) ==
        "restore: iterations of adam is 1.5; use a whole number of 0 or more");
  SavedState s = adam.state();
  s.scalars[0].value = 7;
  s.slots[1].value = tensor({1.0});
  CHECK(message_of<ShapeError>([&] { adam.restore(s); }) ==
        "restore: slot \"v\" of \"w\" is f32[1], the variable is f32[2]");
  s = adam.state();
  s.scalars.pop_back();
  CHECK(message_of<ArgumentError>([&] { adam.restore(s); }) ==
        "restore: number \"beta2_power\" of adam is missing");
  CHECK(message_of<ArgumentError>([&] { adam.set_weights(std::vector{m}); }) ==
        "set_weights: 1 tensors are given, but the optimizer has 5");
  CHECK(unchanged());

  Adam other;
  const Variable x(tensor({1.0}), {.name = "x"});
  other.restore_slot("x", "m", tensor({1.0, 2.0}));
  CHECK(message_of<ShapeError>([&] {
          other.apply_gradients({{tensor({1.0}), x}});
        }) == "restore: slot \"m\" of \"x\" is f32[2], the variable is f32[1]");
  CHECK(x.value().item() == 1);
  CHECK(other.iterations() == 0);
}

TEST_CASE("a value restored under a higher id is kept, and the latest of one id counts", "[optimizer]") {
  const Variable x(zeros({1}));
  Adam adam({.learning_rate = 0.1});
  adam.apply_gradients({{ones({1}), x}});
  const auto restored = [&](double value, std::uint64_t id) {
    adam.restore_scalar("iterations", value, id);
    adam.restore_slot(x, "m", full({1}, value), id);
    return std::pair(static_cast<double>(adam.iterations()), adam.slot(x, "m").item());
  };
  CHECK(restored(5, 2) == std::pair(5.0, 5.0));
  CHECK(restored(6, 1) == std::pair(5.0, 5.0));
  CHECK(restored(7, 2) == std::pair(7.0, 7.0));
  CHECK(restored(8, 3) == std::pair(8.0, 8.0));
}

}   // namespace optimizer_state_test
