// From a loss to a step: compute_gradients, minimize, global steps, constraints, and slots that are freed
// with their variable.
#include <catch2/catch.hpp>
#include <complex>

#include "case.h"
#include "core/bytes.h"
#include "message_of.h"
#include "tape/variable.h"
#include "tapedeck/memory.h"
#include "values.h"

namespace compute_gradients_test {

using namespace tapedeck;
using namespace tapedeck::test;
using Catch::Matchers::Equals;
using Catch::Matchers::Message;

namespace {

Values values(const Variable& v) { return v.value().to_vector(); }

// A tensor is not a variable, and a loss is a function: passing one for the other does not compile.
static_assert(!std::is_convertible_v<Tensor, Variable> && !std::is_convertible_v<Tensor, Loss>);

}   // namespace

TEST_CASE("compute_gradients returns a gradient or none for every variable", "[optimizer]") {
  const Variable b(f64({3, 4}), {.name = "b"}), a(f64({1, 2}), {.name = "a"}),
      fixed(f64({5}), {.trainable = false}), other(f64({7}));
  const Loss loss = [&] { return sum(sum(a * b) * fixed + stop_gradient(other)); };

  const auto read = Optimizer::compute_gradients(loss);   // in order of creation
  REQUIRE(read.size() == 3);
  CHECK(read[0].variable == b);
  CHECK(read[1].variable == a);
  CHECK(read[2].variable == other);
  CHECK_THAT(read[0].gradient.dense().to_vector(), Equals(Values{5, 10}));
  CHECK_THAT(read[1].gradient.dense().to_vector(), Equals(Values{15, 20}));
  CHECK_FALSE(read[2].gradient.defined());

  const auto named = Optimizer::compute_gradients(loss, {.variables = std::vector{fixed, other, a, a}});
  REQUIRE(named.size() == 4);
  CHECK(named[0].variable == fixed);
  CHECK_THAT(named[0].gradient.dense().to_vector(), Equals(Values{11}));
  CHECK_FALSE(named[1].gradient.defined());
  CHECK_THAT(named[3].gradient.dense().to_vector(), Equals(Values{15, 20}));

  const auto weighted = Optimizer::compute_gradients([&] { return a * a; },
                                                     {.variables = {{a}}, .output_gradient = f64({1, 10})});
  CHECK_THAT(weighted[0].gradient.dense().to_vector(), Equals(Values{2, 40}));
  const auto of_vector = Optimizer::compute_gradients([&] { return sum(a * a); });
  CHECK_THAT(of_vector[0].gradient.dense().to_vector(), Equals(Values{2, 4}));
  const auto sparse = Optimizer::compute_gradients([&] { return gather(a, tensor({1})); });
  CHECK(sparse[0].gradient.slices());
}

TEST_CASE("a loss that a tape has recorded is minimized with that tape", "[optimizer]") {
  const Variable b(f64({3, 4})), a(f64({1, 2})), count(tensor(0), {.trainable = false});
  GradientTape tape({.persistent = true});
  const Tensor loss = sum(a * b);
  const auto all = Optimizer::compute_gradients(loss, &tape);
  REQUIRE(all.size() == 2);
  CHECK(all[0].variable == b);
  CHECK_THAT(all[1].gradient.dense().to_vector(), Equals(Values{3, 4}));
  CHECK(Optimizer::compute_gradients(loss, &tape, {.variables = {{a}}}).size() == 1);
  GradientDescent descent({.learning_rate = 1.0});
  CHECK(descent.minimize(loss, &tape, {.variables = {{a}}}, count).item() == 11);
  CHECK_THAT(values(a), Equals(Values{-2, -2}));
  CHECK_THAT(values(b), Equals(Values{3, 4}));
  CHECK(count.value().item() == 1);
  CHECK(message_of<ArgumentError>([&] { descent.minimize(Tensor(), &tape); }) ==
        "compute_gradients: the loss is undefined; return a tensor");
}

TEST_CASE("the way of adding up changes nothing", "[optimizer]") {
  for (const Aggregation aggregation : {Aggregation::add_n, Aggregation::tree, Aggregation::accumulate_n}) {
    const Variable a(f64({1, 2}));
    const auto pairs = Optimizer::compute_gradients([&] { return sum(a * a) + sum(3 * a) + sum(a * a); },
                                                    {.aggregation = aggregation});
    CHECK_THAT(pairs[0].gradient.dense().to_vector(), Equals(Values{7, 11}));
  }
}

TEST_CASE("minimize takes a step and returns the loss before it", "[optimizer]") {
  const Variable x(f64({3})), count(tensor(std::int64_t{10}), {.trainable = false});
  GradientDescent descent({.learning_rate = 0.25});
  CHECK(descent.minimize([&] { return square(x); }, {}, count).item() == 9);
  CHECK_THAT(values(x), Equals(Values{1.5}));
  CHECK(count.value().item<std::int64_t>() == 11);
  for (int i = 0; i < 60; ++i)
    descent.minimize([&] { return square(x); }, {.variables = {{x}}});
  CHECK(x.value().item() < 1e-12);
  CHECK(descent.iterations() == 61);
}

TEST_CASE("minimize inside a tape does not affect the tape", "[optimizer]") {
  const Variable x(f64({3}));
  GradientTape tape;
  const Tensor y = x * x;
  GradientDescent({.learning_rate = 1}).minimize([&] { return 2 * x; });
  CHECK(x.value().item() == 1);
  CHECK(tape.gradient(y, x).dense().item() == 6);
}

TEST_CASE("a loss that cannot be minimized is an error before anything changes", "[optimizer][errors]") {
  const Variable x(f64({3}), {.name = "x"}), fixed(f64({1}), {.trainable = false}),
      n(tensor({1, 2}), {.name = "n"});
  GradientDescent descent({.learning_rate = 1});
  const auto text = [&](const Loss& loss, const LossOptions& options = {},
                        const std::optional<Variable>& step = {}) {
    try {
      descent.minimize(loss, options, step);
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string("nothing was thrown");
  };
  const Loss loss = [&] { return x * x; };
  CHECK(text({}) == "compute_gradients: the loss is an empty function");
  CHECK(text([] { return Tensor(); }) == "compute_gradients: the loss is undefined; return a tensor");
  CHECK(text([&] { return astype(x, DType::i32); }) ==
        "compute_gradients: the loss is i32[1]; use f32, f64, f16 or bf16");
  CHECK(
      text([&] { return fixed * 2; }) ==
      "compute_gradients: the loss reads no trainable variables; make one trainable, or name those to train "
      "in LossOptions::variables");
  CHECK(text(loss, {.variables = std::vector<Variable>{}}) == "compute_gradients: no variables given");
  CHECK(text(loss, {.variables = {{x, n}}}) ==
        "compute_gradients: variable \"n\" is i32[2]; use f32, f64, f16 or bf16");
  CHECK(text([&] { return fixed * 2; }, {.variables = {{x}}}) ==
        "apply_gradients: no gradient reaches variable \"x\"; compute the loss from their values by ops, "
        "while the tape records");
  CHECK(text(loss, {.output_gradient = ones({1})}) ==
        "gradient: output gradient 0 is f32[1], its target f64[1]; use astype");
  CHECK(text(loss, {}, Variable(tensor(1.0), {.name = "step"})) ==
        "apply_gradients: global_step is f32[]; use i32 or i64");
  CHECK(text(loss, {}, Variable(tensor({1}), {.name = "step"})) ==
        "apply_gradients: global_step is i32[1]; use a scalar");
  CHECK_THROWS_WITH(descent.minimize([]() -> Tensor { throw std::runtime_error("from the loss"); }),
                    "from the loss");
  CHECK_THAT(values(x), Equals(Values{3}));
  CHECK(descent.iterations() == 0);
}

TEST_CASE("a new value passes through the variable's constraint", "[optimizer][constraint]") {
  const Variable x(f64({1, 2, 3}), {.constraint = [](const Tensor&v) { return maximum(v, 0); }}),
      free(f64({1, 2, 3}));
  CHECK(x.constraint());
  CHECK_FALSE(free.constraint());
  Momentum momentum({.learning_rate = 1, .momentum = 0.5});
  const Tensor g = f64({0.5, 3, -1});
  const std::byte* memory = nullptr;
  for (int step = 0; step < 3; ++step) {
    momentum.apply_gradients({{g, x}, {g, free}});
    if (step == 0) memory = free.cell().value.raw();
  }
  // a: 0.5 0.75 0.875, times 1, 6 and -2
  CHECK_THAT(values(x), Equals(Values{0, 0, 3 + 1 + 1.5 + 1.75}));
  CHECK_THAT(values(free), Equals(Values{1 - 2.125, 2 - 6 * 2.125, 3 + 2 * 2.125}));
  CHECK_THAT(momentum.slot(x, "momentum").to_vector(), Equals(momentum.slot(free, "momentum").to_vector()));
  CHECK(free.cell().value.raw() == memory);   // only variables with a constraint are copied
}

TEST_CASE("a constraint that throws changes nothing", "[optimizer][constraint]") {
  Tensor result;
  const Variable plain(f64({1, 2}), {.name = "plain"}), count(tensor(0), {.trainable = false});
  const Variable x(f64({1, 2}), {.name = "x", .constraint = [&](const Tensor&) { return result; }});
  Adam adam;
  const Tensor g = f64({1, 1});
  const auto step = [&] { adam.apply_gradients({{g, plain}, {g, x}}, count); };
  const auto check_unchanged = [&] {
    CHECK_THAT(values(plain), Equals(Values{1, 2}));
    CHECK_THAT(values(x), Equals(Values{1, 2}));
    CHECK_FALSE(adam.slot(plain, "m").defined());
    CHECK_FALSE(adam.slot(x, "m").defined());
    CHECK(adam.iterations() == 0);
    CHECK(count.value().item() == 0);
  };
  CHECK_THROWS_MATCHES(step(), ArgumentError,
                       Message("constraint: the value for variable \"x\" is undefined"));
  check_unchanged();
  result = f64({1, 2, 3});
  CHECK_THROWS_MATCHES(step(), ShapeError,
                       Message("constraint: variable \"x\" is f64[2], the value is f64[3]"));
  result = ones({2});
  CHECK_THROWS_MATCHES(step(), DTypeError,
                       Message("constraint: variable \"x\" is f64[2], the value is f32[2]; use astype"));
  check_unchanged();

  const Variable table(f64({1, 2}), {.name = "table", .constraint = [](const Tensor& v) { return v; }});
  CHECK_THROWS_MATCHES(
      adam.apply_gradients({{g, plain}, {IndexedSlices{f64({1}), tensor({0}), Shape{2}}, table}}),
      ArgumentError,
      Message(
          "apply_gradients: variable \"table\" has a constraint, but its gradient is sparse; make it dense"));
  check_unchanged();

  result = f64({5, 6});
  step();
  CHECK_THAT(values(x), Equals(Values{5, 6}));
  CHECK_THAT(result.to_vector(), Equals(Values{5, 6}));
  const Variable failing(f64({1, 2}), {.constraint = [](const Tensor&) -> Tensor {
                           throw std::runtime_error("from the constraint");
                         }});
  const Values before = values(plain), m = adam.slot(plain, "m").to_vector();
  CHECK_THROWS_WITH(adam.apply_gradients({{g, plain}, {g, x}, {g, failing}}), "from the constraint");
  CHECK_THAT(values(plain), Equals(before));
  CHECK_THAT(adam.slot(plain, "m").to_vector(), Equals(m));
  CHECK(adam.iterations() == 1);
}

TEST_CASE("tensors that a constraint keeps are not overwritten", "[optimizer][constraint]") {
  const Variable other(ones({100}));
  std::vector<Tensor> held;
  const Variable x(ones({100}), {.constraint = [&](const Tensor& v) {
                     held.push_back(v);
                     held.push_back(other.value());
                     return v;
                   }});
  GradientDescent descent({.learning_rate = 1});
  for (int step = 0; step < 3; ++step)
    descent.apply_gradients({{ones({100}), other}, {ones({100}), x}});
  for (int step = 0; step < 3; ++step) {
    CHECK(held[static_cast<std::size_t>(2 * step)].at({99}) == -step);
    CHECK(held[static_cast<std::size_t>(2 * step + 1)].at({99}) == 1 - step);
  }
  CHECK(x.value().at({99}) == -2);
}

TEST_CASE("constraints of a variable that is listed twice, and of one under a tape",
          "[optimizer][constraint]") {
  const Variable x(f64({10}), {.constraint = [](const Tensor& v) { return v * 0.5; }});
  Momentum momentum({.learning_rate = 1, .momentum = 1});
  GradientTape tape;
  const Tensor y = x * 3;
  const std::size_t recorded = tape.size();
  momentum.apply_gradients({{f64({2}), x}, {f64({2}), x}});
  CHECK_THAT(values(x), Equals(Values{((10 - 2) * 0.5 - 4) * 0.5}));
  CHECK(momentum.slot(x, "momentum").item() == 4);
  CHECK(tape.size() == recorded);
  CHECK(tape.gradient(y, x).dense().item() == 3);
}

TEST_CASE("a constraint may use the optimizer that called it", "[optimizer][constraint]") {
  Momentum momentum({.learning_rate = 1, .momentum = 0.5});
  const Variable inner(ones({100}));
  const Variable x(ones({100}), {.constraint = [&](const Tensor& v) {
                     momentum.apply_gradients({{ones({100}), inner}});
                     return v;
                   }});
  const Variable last(ones({100}));
  for (int step = 0; step < 2; ++step)
    momentum.apply_gradients({{ones({100}), x}, {ones({100}), last}});
  for (const Variable& v : {inner, x, last}) {
    CHECK(v.value().at({99}) == 1 - 1 - 1.5);
    CHECK(momentum.slot(v, "momentum").at({99}) == 1.5);
  }
  CHECK(momentum.iterations() == 4);
}

TEST_CASE("slots are freed with their variable", "[optimizer]") {
  Adam adam;
  const Variable kept(ones({1000}));
  adam.apply_gradients({{ones({1000}), kept}});
  const std::int64_t live = live_bytes();
  for (int i = 0; i < 3; ++i) {
    const Variable gone(ones({1000}));
    adam.apply_gradients({{ones({1000}), gone}, {ones({1000}), kept}});
    CHECK(adam.slot(gone, "m").defined());
  }
  CHECK(live_bytes() > live);
  adam.apply_gradients({{ones({1000}), kept}});
  CHECK(live_bytes() == live);
  CHECK(adam.slot(kept, "m").at({0}) == Approx(1 - std::pow(0.9, 5)));
}

TEST_CASE("lazy Adam and momentum leave other rows unchanged", "[optimizer]") {
  const Variable x(ones({4, 2}));
  const Gradient g = IndexedSlices{ones({2, 2}), tensor({3, 1}), {}};   // a dense_shape is not needed
  for (const auto make : {+[] {
                            return Optimizer("adam", {{"lazy", 1}});
                          },
                          +[] {
                            return Optimizer("momentum", {{"learning_rate", 1}, {"momentum", 0.9}});
                          }}) {
    Optimizer optimizer = make();
    optimizer.apply_gradients({{ones({4, 2}), x}});
    const Values before = values(x);
    optimizer.apply_gradients({{g, x}});
    const Values after = values(x);
    for (std::size_t i = 0; i < before.size(); ++i)
      CHECK((after[i] == before[i]) == (i / 2 == 0 || i / 2 == 2));
  }
}

TEST_CASE("boolean hyperparameters are 0 or 1", "[optimizer][errors]") {
  CHECK_THROWS_WITH(Optimizer("adam", {{"lazy", 0.5}}), "adam: lazy is out of range: 0.5; use 0 or 1");
  Momentum momentum({.learning_rate = 1, .momentum = 0.5, .use_nesterov = true});
  CHECK(momentum.hyperparameter("use_nesterov") == 1);
  CHECK(Adam({.lazy = true}).hyperparameter("lazy") == 1);
}

TEST_CASE("cases: momentum", "[cases][optimizer]") {
  check_case("opt-momentum-basic", [&](Case& c) {
    const Variable a = c.variable(c.input("var0")), b = c.variable(c.input("var1"));
    Momentum& momentum =
        c.keep([&] { return Momentum({.learning_rate = c.number("lr"), .momentum = c.number("momentum")}); });
    std::vector<Tensor> as, bs, slot_a, slot_b;
    for (int step = 0; step < 2; ++step) {
      momentum.apply_gradients({{c.input("grad0"), a}, {c.input("grad1"), b}});
      as.push_back(identity(a)), bs.push_back(identity(b));
      slot_a.push_back(momentum.slot(a, "momentum")), slot_b.push_back(momentum.slot(b, "momentum"));
    }
    c.check("var0", as);
    c.check("var1", bs);
    c.check("slot0", slot_a);
    c.check("slot1", slot_b);
  });
  check_case("opt-momentum-nesterov", DType::f64, [&](Case& c) {
    const Variable a = c.variable(c.input("var0")), b = c.variable(c.input("var1")),
                   sparse = c.variable(c.input("var0"));
    const auto make = [&] {
      return Momentum(
          {.learning_rate = c.number("lr"), .momentum = c.number("momentum"), .use_nesterov = true});
    };
    Momentum &momentum = c.keep(make), &of_sparse = c.keep(make);
    std::vector<Tensor> as, bs;
    for (int step = 0; step < 4; ++step) {
      momentum.minimize([&] { return sum(5 * square(a) + 3 * b); });
      of_sparse.apply_gradients({{IndexedSlices{10 * sparse, tensor({0, 1}), Shape{2}}, sparse}});
      as.push_back(identity(a)), bs.push_back(identity(b));
      if (c.compares()) CHECK_THAT(values(sparse), Equals(values(a)));
    }
    c.check("var0", as);
    c.check("var1", bs);
  });
}

TEST_CASE("cases: what all optimizers share", "[cases][optimizer]") {
  const auto loss_of = [](const Variable& a, const Variable& b) {
    return [&a, &b] { return sum(5 * a + 3 * b); };
  };
  // It has no effect: terms are always summed in one pass.
  check_case("opt-base-aggregation-method", [&](Case& c) {
    const Variable a = c.variable(tensor({1.0, 2.0})), b = c.variable(tensor({3.0, 4.0}));
    GradientDescent& descent = c.keep([&] { return GradientDescent({.learning_rate = c.number("lr")}); });
    descent.minimize(loss_of(a, b));
    c.check("var0", a.value());
    c.check("var1", b.value());
  });
  check_case("opt-base-gradients-as-variables", [&](Case& c) {
    const Variable a = c.variable(tensor({1.0, 2.0})), b = c.variable(tensor({3.0, 4.0}));
    std::vector<GradientAndVariable> pairs = Optimizer::compute_gradients(loss_of(a, b));
    for (GradientAndVariable& p : pairs)
      p.gradient = c.variable(p.gradient.dense());
    GradientDescent& descent = c.keep([&] { return GradientDescent({.learning_rate = c.number("lr")}); });
    descent.apply_gradients(pairs);
    c.check("var0", a.value());
    c.check("var1", b.value());
  });
  check_case("opt-base-apply-some-none", [&](Case& c) {
    const Variable a = c.variable(c.input("var0")), b = c.variable(c.input("var1"));
    GradientDescent& descent = c.keep([&] { return GradientDescent({.learning_rate = c.number("lr")}); });
    descent.apply_gradients({{Gradient(), a}, {c.input("grad1"), b}});
    c.check("var0", a.value());
    c.check("var1", b.value());
    Momentum& momentum = c.keep([&] { return Momentum({.learning_rate = 1, .momentum = 1}); });
    momentum.apply_gradients({{Gradient(), a}, {c.input("grad1"), b}});
    const Tensor slot = momentum.slot(a, "momentum");
    CHECK_FALSE(slot.defined());
  });
  check_case("opt-base-tensor-as-var", [&](Case& c) {
    const Tensor x = c.input(tensor(1.0));
    GradientTape tape;
    tape.watch(x);
    c.check("grad", tape.gradient(x * x, x));
    c.superseded("same_object", "a tensor is no variable: see the static_assert above");
    c.superseded("apply", "the same");
  });
  check_case("opt-dedup-indexed-slices", [&](Case& c) {
    const IndexedSlices sum =
        sum_duplicates({tensor({{1.0}, {2.0}, {3.0}, {4.0}}), tensor({3, 1, 3, 0}), {}});
    c.check("indices", sum.indices, DType::i32);
    c.check("values", sum.values);
  });
  check_case("opt-slot-names-sorted", [&](Case& c) {
    using Names = std::vector<std::string>;
    Adam& adam = c.keep([&] { return Adam(); });
    const Variable x = c.variable(ones({2}));
    bool holds = adam.slot_names() == Names{"m", "v"} && !adam.slot(x, "m").defined();
    adam.apply_gradients({{ones({2}), x}});
    holds &= adam.slot(x, "m").defined() && !adam.slot(x, "nope").defined();
    holds &= Momentum({.learning_rate = 1, .momentum = 1}).slot_names() == Names{"momentum"};
    c.holds("property", holds);
  });
}

TEST_CASE("cases: errors of optimizers", "[cases][errors]") {
  const Variable fixed(tensor(1.0), {.trainable = false}), a(tensor(1.0), {.name = "var0"}),
      b(tensor(2.0), {.name = "var1"});
  GradientDescent descent({.learning_rate = 3});
  check_case("opt-base-no-variables", [&](Case& c) {
    c.check_error([&] { descent.minimize([&] { return fixed * 5; }); },
                  "compute_gradients: the loss reads no trainable variables; make one trainable, or name "
                  "those to train in LossOptions::variables");
  });
  check_case("opt-base-no-gradients-any", [&](Case& c) {
    c.check_error(
        [&] {
          descent.minimize([] { return tensor(5.0); }, {.variables = {{a, b}}});
        },
        "apply_gradients: no gradient reaches variable \"var0\", variable \"var1\"; compute the loss from "
        "their values by ops, while the tape records");
  });
  check_case("opt-base-invalid-dtype", [&](Case& c) {
    c.check_error<DTypeError>(
        [&] {
          descent.minimize([&] { return tensor(5); }, {.variables = {{a, b}}});
        },
        "compute_gradients: the loss is i32[]; use f32, f64, f16 or bf16");
  });
  check_case("opt-keras-bad-kwarg", [&](Case& c) {
    c.check_error<ArgumentError>(
        [] {
          Optimizer("gradient_descent", {{"learning_rate", 1}, {"invalidkwargs", 1}});
        },
        "gradient_descent: there is no hyperparameter \"invalidkwargs\"; use one of learning_rate");
  });
}

TEST_CASE("a loss must be one number, unless an output gradient is given", "[optimizer][errors]") {
  const Variable w(f64({1, 2}), {.name = "w"});
  const Loss loss = [&] { return w * w; };
  CHECK(message_of<ShapeError>([&] { Optimizer::compute_gradients(loss); }) ==
        "compute_gradients: the loss is f64[2]; it must have one element: use its mean or sum, or pass an "
        "output_gradient");
  CHECK(values(w) == Values{1, 2});
  CHECK(
      Optimizer::compute_gradients(loss, {.output_gradient = f64({1, 10})})[0].gradient.dense().to_vector() ==
      Values{2, 40});
}

TEST_CASE("a complex variable that a loss reads is an error", "[optimizer][errors]") {
  const Variable z(tensor(std::complex(1.0, 2.0)), {.name = "z"});
  CHECK(message_of<DTypeError>([&] { Optimizer::compute_gradients([&] { return abs(z); }); }) ==
        "compute_gradients: variable \"z\" is c128[]; use f32, f64, f16 or bf16");
}

TEST_CASE("a variable that is listed twice is an error", "[optimizer]") {
  const Variable w(tensor(1.0), {.name = "w"}), v(tensor(2.0));
  Optimizer sgd = GradientDescent({.learning_rate = 0.1});
  CHECK(message_of<ArgumentError>([&] {
          sgd.minimize([&] { return w * w; }, {.variables = {{w, v, w}}});
        }) == "minimize: variable \"w\" is listed twice; a step would change it twice");
  CHECK(w.value().item() == 1);
}

}   // namespace compute_gradients_test
