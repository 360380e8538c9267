// A user's own update rules: by rows and by tensors, with slots, scalars, sums over a variable, and errors in
// rules.
#include <catch2/catch.hpp>
#include <cmath>

#include "message_of.h"
#include "tapedeck/tapedeck.h"
#include "tapedeck/update_rule.h"
#include "values.h"

namespace update_rule_test {

using namespace tapedeck;
using namespace tapedeck::test;
using Catch::Matchers::Equals;

namespace {

// Rows: a slot that counts how often a row was changed, and a scalar that halves in every step.

template <class T> void step_and_count(const UpdateRow<T>& row) {
  for (std::int64_t i = 0; i < row.n; ++i) {
    row.slots[0][i] += T(1);
    if (row.g)
      row.x[i] -= row.c[0] * row.g[i];
    else
      row.slots[0][i] += T(99);
  }
}

constexpr UpdateRule kCounting = {
    .name = "counting",
    .slots = {{"touched"},
              {"start", [](const Tensor& value, const Hyperparameters&) { return value; }},
              {"extra", nullptr, [](const Hyperparameters& h) { return h[1] != 0; }}},
    .hyperparameters = {{"learning_rate", 1, domains::positive}, {"extra", 0, domains::flag, Change::never}},
    .scalars = {{"part", [](const Hyperparameters&) { return 1.0; }}},
    .prepare = [](Step& s) { s.c = {s.h[0] * s.scalars[0]}; },
    .rows = {step_and_count<float>, step_and_count<double>},
    .finish = [](Step& s) noexcept { s.scalars[0] /= 2; },
};

constexpr UpdateRule counting_others() {
  UpdateRule rule = kCounting;
  rule.others = rule.rows;
  return rule;
}
constexpr UpdateRule kCountingOthers = counting_others();

// Sums: a step of length 1 in the direction of the whole gradient. In f64 only.
constexpr UpdateRule kNormalised = {
    .name = "normalised",
    .rows = {.f64 =
                 [](const UpdateRow<double>& row) {
                   for (std::int64_t i = 0; i < row.n; ++i)
                     row.x[i] -= row.c[0] * row.g[i];
                 }},
    .measure = {.f64 =
                    [](const UpdateRow<double>& row, RowSums& sums) {
                      for (std::int64_t i = 0; i < row.n; ++i)
                        sums[0] += row.g[i] * row.g[i], sums[1] += 1;
                    }},
    .scale = [](Step& s, const RowSums& sums) noexcept { s.c[0] = 1 / std::sqrt(sums[0]), s.c[1] = sums[1]; },
};

// Tensors: the full matrix of Adagrad, whose slot has another shape than the variable.
constexpr UpdateRule kFullMatrix = {
    .name = "full_matrix",
    .slots = {{"h",
               [](const Tensor& value, const Hyperparameters& h) {
                 return h[1] * eye(value.size(), value.size(), value.dtype());
               }}},
    .hyperparameters = {{"learning_rate", kRequired, domains::finite},
                        {"initial", 1, domains::positive, Change::never}},
    .dense =
        [](const Step& s, Tensor& x, std::span<Tensor> slots, const Tensor& g) {
          const Tensor flat = reshape(g, {-1, 1});
          slots[0] = slots[0] + matmul(flat, transpose(flat));
          if (max(g).item() > 100) throw ArgumentError("full_matrix: the gradient is large");
          x = x - s.h[0] * reshape(solve(slots[0], flat), x.shape());
        },
};

// Tensors, sparse gradients only: adds the values to their rows.
constexpr UpdateRule kSparse = {
    .name = "rows_only",
    .takes = [](DType t) { return t == DType::f64; },
    .sparse =
        [](const Step&, Tensor& x, std::span<Tensor>, const IndexedSlices& g) {
          x = x + to_dense({g.values * g.values, g.indices, x.shape()});
        },
};

Gradient slices(std::initializer_list<std::initializer_list<double>> values, std::initializer_list<int> rows,
                const Shape& shape) {
  return IndexedSlices{matrix(values), tensor(rows), shape};
}

// A rule outlives its optimizer.
static_assert(std::is_constructible_v<Optimizer, const UpdateRule&> &&
              !std::is_constructible_v<Optimizer, UpdateRule>);

}   // namespace

TEST_CASE("a user's rule runs by rows", "[optimizer]") {
  Optimizer optimizer(kCounting, {{"learning_rate", 4}});
  CHECK(optimizer.name() == "counting");
  const Variable x(matrix({{1, 1}, {2, 2}, {3, 3}})), y(ones({3}));
  optimizer.apply_gradients({{slices({{1, 0}, {1, 1}, {1, 2}}, {2, 0, 2}, {3, 2}), x}, {ones({3}), y}});
  CHECK_THAT(x.value().to_vector(), Equals(Values{-3, -3, 2, 2, -5, -5}));
  CHECK_THAT(optimizer.slot(x, "touched").to_vector(), Equals(Values{1, 1, 0, 0, 1, 1}));
  CHECK_THAT(optimizer.slot(x, "start").to_vector(),
             Equals(Values{1, 1, 2, 2, 3, 3}));   // a copy, though the rule gave the value itself
  CHECK_THAT(y.value().to_vector(), Equals(Values{-3, -3, -3}));
  CHECK(optimizer.scalar("part") == 0.5);
  optimizer.apply_gradients({{ones({3}), y}});
  CHECK_THAT(y.value().to_vector(), Equals(Values{-5, -5, -5}));
  CHECK(optimizer.slot_names() == std::vector<std::string>{"start", "touched"});
  CHECK(Optimizer(kCounting, {{"extra", 1}}).slot_names().size() == 3);

  Optimizer others(kCountingOthers);
  const Variable z(matrix({{1, 1}, {2, 2}, {3, 3}}));
  others.apply_gradients({{slices({{1, 1}}, {1}, {3, 2}), z}});
  CHECK_THAT(others.slot(z, "touched").to_vector(), Equals(Values{100, 100, 1, 1, 100, 100}));

  CHECK(message_of<ArgumentError>([] {
          Optimizer(kCounting, {{"rate", 1}});
        }) == "counting: there is no hyperparameter \"rate\"; use one of learning_rate, extra");
  CHECK(message_of<ArgumentError>([] {
          Optimizer(kCounting, {{"learning_rate", 0}});
        }) == "counting: learning_rate is out of range: 0; use a finite number above 0");
}

TEST_CASE("a user's rule may use sums over the whole variable", "[optimizer]") {
  Optimizer optimizer(kNormalised);
  const Variable x(f64({0, 0})), large(zeros({300000}, DType::f64)), table(zeros({4, 2}, DType::f64));
  optimizer.apply_gradients({{f64({3, 4}), x},
                             {ones({300000}, DType::f64), large},
                             {slices({{1, 1}, {2, 3}}, {1, 1}, {4, 2}), table}});
  CHECK_THAT(x.value().to_vector(), Catch::Matchers::Approx(Values{-0.6, -0.8}));
  CHECK(large.value().at({299999}) == Approx(-1 / std::sqrt(300000.0)));
  CHECK(table.value().at({1, 1}) == Approx(-4 / 5.0));
  CHECK(table.value().at({0, 1}) == 0);
  const Variable single(ones({2}), {.name = "single"});
  CHECK(message_of<DTypeError>([&] {
          optimizer.apply_gradients({{ones({2}), single}});
        }) == "apply_gradients: variable \"single\" is f32[2]; use f64");
}

TEST_CASE("a user's rule may be made of ops", "[optimizer]") {
  Optimizer optimizer(kFullMatrix, {{"learning_rate", 1}});
  const Variable x(f64({0, 0}), {.name = "x"}),
      y(f64({5}), {.constraint = [](const Tensor&v) { return maximum(v, 4.75); }});
  optimizer.apply_gradients({{f64({1, 2}), x}, {f64({1}), y}});
  // (I + g gᵀ)⁻¹ g = g / (1 + |g|²)
  CHECK(x.value().at({0}) == Approx(-1 / 6.0));
  CHECK(x.value().at({1}) == Approx(-2 / 6.0));
  CHECK_THAT(optimizer.slot(x, "h").to_vector(), Equals(Values{2, 2, 2, 5}));
  CHECK(y.value().item() == 4.75);
  CHECK(optimizer.slot(y, "h").item() == 2);

  // If the rule throws, everything stays unchanged, including the variables before this one.
  const Variable z(f64({1}));
  CHECK(message_of<ArgumentError>([&] {
          optimizer.apply_gradients({{f64({1, 2}), x}, {f64({101}), z}});
        }) == "full_matrix: the gradient is large");
  CHECK(x.value().at({0}) == Approx(-1 / 6.0));
  CHECK(optimizer.slot(x, "h").at({0, 0}) == 2);
  CHECK_FALSE(optimizer.slot(z, "h").defined());
  CHECK(optimizer.iterations() == 1);

  // A variable that is given twice; and a step records nothing on tapes.
  GradientTape tape({.watch_all = true});
  optimizer.apply_gradients({{f64({1}), z}, {f64({1}), z}});
  CHECK(tape.recorded().empty());
  CHECK(z.value().item() == Approx(1 - 1 / 2.0 - 1 / 3.0));
  CHECK(message_of<ArgumentError>([&] {
          optimizer.apply_gradients(
              {{slices({{1}}, {0}, {2, 1}), Variable(matrix({{1}, {2}}), {.name = "table"})}});
        }) ==
        "apply_gradients: full_matrix takes no sparse gradients, but the gradient of variable \"table\" is "
        "sparse; make it dense");

  Optimizer sparse(kSparse);
  const Variable table(matrix({{1}, {2}}), {.name = "table"});
  sparse.apply_gradients({{slices({{1}, {2}}, {1, 1}, {2, 1}), table}});
  CHECK_THAT(table.value().to_vector(), Equals(Values{1, 11}));   // each row is passed once
  CHECK(message_of<ArgumentError>([&] {
          sparse.apply_gradients({{matrix({{1}, {2}}), table}});
        }) ==
        "apply_gradients: rows_only takes sparse gradients only, but the gradient of variable \"table\" is "
        "dense");
  CHECK(message_of<DTypeError>([&] {
          sparse.apply_gradients({{ones({1}), Variable(ones({1}), {.name = "v"})}});
        }) == "apply_gradients: variable \"v\" is f32[1]; use f64");
}

TEST_CASE("errors of a user's rule are reported", "[optimizer]") {
  static UpdateRule rule;
  const Variable x(f64({1, 2}), {.name = "x"});
  const auto error_of = [&](const UpdateRule& wrong) {
    rule = wrong;
    const std::string text = message_of([&] { Optimizer(rule).apply_gradients({{f64({1, 1}), x}}); });
    CHECK_THAT(x.value().to_vector(), Equals(Values{1, 2}));
    return text;
  };
  CHECK(error_of(UpdateRule{.name = ""}) == "optimizer: the rule has no name");
  CHECK(error_of(UpdateRule{.name = "r"}) ==
        "r: the rule changes variables neither by rows nor by tensors; use exactly one of these ways");
  CHECK(error_of(UpdateRule{.name = "r", .rows = kCounting.rows, .dense = kFullMatrix.dense}) ==
        "r: the rule changes variables by rows and by tensors; use exactly one of these ways");
  CHECK(error_of(UpdateRule{.name = "r", .rows = kCounting.rows, .measure = kNormalised.measure}) ==
        "r: the rule has only one of measure and scale; use both or neither");
  CHECK(
      error_of(UpdateRule{
          .name = "r", .rows = kCounting.rows, .measure = kNormalised.measure, .scale = kNormalised.scale}) ==
      "r: the rule's measure does not take all dtypes that its rows take");
  CHECK(error_of(UpdateRule{.name = "r",
                            .prepare = [](Step& s) { s.rows = {.f32 = kCounting.rows.f32}; },
                            .rows = kCounting.rows}) ==
        "r: the rule's prepare chose rows without a function of f64, for variable \"x\"");
  CHECK(error_of(UpdateRule{.name = "r", .hyperparameters = {{"a"}}, .rows = kCounting.rows}) ==
        "r: hyperparameter a has no domain");
  CHECK(error_of(UpdateRule{.name = "r",
                            .slots = {{"s", [](const Tensor&, const Hyperparameters&) { return ones({3}); }}},
                            .rows = kCounting.rows}) ==
        "r: slot \"s\" begins as f32[3], but the variable is f64[2]");
  CHECK(
      error_of(UpdateRule{.name = "r", .dense = [](const Step&, Tensor& v, std::span<Tensor>, const Tensor&) {
                            v = ones({2});
                          }}) == "r: variable \"x\" is f64[2], the value is f32[2]; use astype");
  CHECK(error_of(UpdateRule{.name = "r",
                            .slots = {{"s"}},
                            .dense = [](const Step&, Tensor&, std::span<Tensor> s, const Tensor&) {
                              s[0] = ones({2});
                            }}) == "r: slot \"s\" was f64[2], but the rule changed it to f32[2]");
}

}   // namespace update_rule_test
