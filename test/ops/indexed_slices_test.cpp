// IndexedSlices: made dense, joined, summed, passed through rules, and given as output gradients.
#include <catch2/catch.hpp>
#include <iomanip>
#include <map>
#include <sstream>

#include "case.h"
#include "values.h"
#include "warnings.h"

namespace indexed_slices_test {

using namespace tapedeck;
using namespace tapedeck::test;
using Catch::Matchers::Equals;

namespace {

using Indices = std::vector<std::int64_t>;

/// Sums of few powers of two, so that the order of addition does not matter.
Tensor counting(const Shape& shape, DType dtype = DType::f64) {
  return reshape(arange(1, static_cast<double>(shape.size()) + 1, 1, dtype), shape);
}

Gradient gradient_of(const std::function<Tensor(const Tensor&)>& f, const Tensor& x) {
  GradientTape tape;
  tape.watch(x);
  return tape.gradient(f(x), x);
}

}   // namespace

TEST_CASE("slices become dense", "[slices]") {
  const DType dtype = GENERATE(DType::i32, DType::i64);
  const auto dense = [&](const Tensor& values, const Indices& indices, const Shape& shape) {
    const Tensor result = to_dense({values, astype(tensor(indices), dtype), shape});
    CHECK(result.shape() == shape);
    CHECK(result.dtype() == values.dtype());
    return result.to_vector();
  };
  CHECK_THAT(dense(counting({3, 2}), {2, 0, 2}, {4, 2}), Equals(Values{3, 4, 0, 0, 6, 8, 0, 0}));
  CHECK_THAT(dense(counting({3}, DType::f32), {1, 1, 4}, {5}), Equals(Values{0, 3, 0, 0, 3}));
  CHECK_THAT(dense(counting({1, 1, 2}), {1}, {2, 1, 2}), Equals(Values{0, 0, 1, 2}));
  CHECK_THAT(dense(counting({2, 2}, DType::i64), {0, 0}, {1, 2}), Equals(Values{4, 6}));
  CHECK_THAT(dense(zeros({0, 2}), {}, {2, 2}), Equals(Values{0, 0, 0, 0}));
  CHECK_THAT(dense(zeros({0, 2}), {}, {0, 2}), Equals(Values{}));
  CHECK_THAT(dense(zeros({2, 0}), {1, 1}, {3, 0}), Equals(Values{}));
}

TEST_CASE("rows that repeat are summed in the order of their first place", "[slices]") {
  const IndexedSlices s{counting({5, 2}), tensor<std::int32_t>({7, 300, 7, 0, 300}), Shape{1000, 2}};
  const IndexedSlices sum = sum_duplicates(s);
  CHECK(sum.indices.dtype() == DType::i32);
  CHECK_THAT(sum.indices.to_vector(), Equals(Values{7, 300, 0}));
  CHECK_THAT(sum.values.to_vector(), Equals(Values{1 + 5, 2 + 6, 3 + 9, 4 + 10, 7, 8}));
  CHECK(sum.dense_shape == Shape{1000, 2});

  const IndexedSlices again = sum_duplicates(sum);
  CHECK(again.values.id() == sum.values.id());
  CHECK(again.indices.id() == sum.indices.id());
  const IndexedSlices open = sum_duplicates(
      {counting({2}), tensor<std::int64_t>({std::int64_t{1} << 62, std::int64_t{1} << 62}), {}});
  CHECK_THAT(open.indices.to_vector<std::int64_t>(), Equals(Indices{std::int64_t{1} << 62}));
  CHECK_THAT(open.values.to_vector(), Equals(Values{3}));
  CHECK_FALSE(open.dense_shape);
  CHECK(sum_duplicates({zeros({0, 3}), tensor(Indices{}), Shape{4, 3}}).values.shape() == Shape{0, 3});
}

TEST_CASE("many rows that repeat are summed", "[slices]") {
  const std::int64_t extent = GENERATE(1, 40, 256, 257, 70000, 3000000);
  const std::int64_t count = 2000;
  CAPTURE(extent);
  const Tensor indices =
                   astype(random::uniform({count}, {.seed = 5}, 0, static_cast<double>(extent), DType::f64),
                          DType::i64),
               values = counting({count});
  const IndexedSlices sum = sum_duplicates({values, indices, Shape{extent}});

  std::map<std::int64_t, double> expected;
  Indices order;
  for (std::int64_t k = 0; k < count; ++k) {
    const auto row = indices.at<std::int64_t>({k});
    if (!expected.contains(row)) order.push_back(row);
    expected[row] += values.at({k});
  }
  REQUIRE_THAT(sum.indices.to_vector<std::int64_t>(), Equals(order));
  Values sums;
  for (const std::int64_t row : order)
    sums.push_back(expected[row]);
  CHECK_THAT(sum.values.to_vector(), Equals(sums));
}

TEST_CASE("summing rows that repeat is differentiated", "[slices]") {
  const Tensor x = counting({3, 2});
  const Tensor y = tensor({{10.0, 20.0}, {30.0, 40.0}}, DType::f64);
  const Gradient g = gradient_of(
      [&](const Tensor& t) {
        return sum_duplicates({t, tensor({1, 0, 1}), {}}).values * y;
      },
      x);
  CHECK_THAT(g.dense().to_vector(), Equals(Values{10, 20, 30, 40, 10, 20}));
}

TEST_CASE("gradients are summed as the engine does", "[slices]") {
  const Gradient dense = counting({3, 2});
  const auto rows = [](const Tensor& values, const Tensor& indices,
                       std::optional<Shape> shape = Shape{3, 2}) {
    return Gradient(IndexedSlices{values, indices, shape});
  };
  const Gradient one = rows(counting({1, 2}), tensor<std::int32_t>({2})),
                 two = rows(counting({2, 2}), tensor<std::int64_t>({0, 2}));

  CHECK_FALSE(aggregate({}).defined());
  CHECK_FALSE(aggregate({Gradient(), Gradient()}).defined());
  CHECK(aggregate({Gradient(), one}).slices() == one.slices());
  CHECK(aggregate({dense, Gradient()}).tensor().id() == dense.tensor().id());

  const Gradient joined = aggregate({one, Gradient(), two});
  REQUIRE(joined.slices());
  CHECK(joined.slices()->indices.dtype() == DType::i64);
  CHECK_THAT(joined.slices()->indices.to_vector(), Equals(Values{2, 0, 2}));
  CHECK_THAT(joined.slices()->values.to_vector(), Equals(Values{1, 2, 1, 2, 3, 4}));
  CHECK(joined.slices()->dense_shape == Shape{3, 2});
  CHECK(aggregate({one, one}).slices()->indices.dtype() == DType::i32);
  CHECK(aggregate({rows(counting({1, 2}), tensor({0}), {}), two}).slices()->dense_shape == Shape{3, 2});

  const Gradient mixed = aggregate({one, dense, two, dense});
  REQUIRE(mixed.is_dense());
  CHECK_THAT(mixed.dense().to_vector(), Equals(Values{2 + 1, 4 + 2, 6, 8, 10 + 1 + 3, 12 + 2 + 4}));
}

TEST_CASE("rules that multiply by single numbers keep the rows", "[slices]") {
  const Tensor x = counting({4, 2}), other = counting({4, 2}), row = counting({2}), at = tensor({3, 1, 3});
  const Tensor weight = tensor({{1.0, 2.0}, {3.0, 4.0}, {5.0, 6.0}}, DType::f64);
  struct Passing {
    const char* name;
    std::function<Tensor(const Tensor&)> f;
    double factor;
  };
  for (const Passing& p : {Passing{"neg", [](const Tensor& t) { return -t; }, -1},
                           {"add", [](const Tensor& t) { return t + 1; }, 1},
                           {"sub from", [](const Tensor& t) { return 1 - t; }, -1},
                           {"add a row", [&](const Tensor& t) { return t + row; }, 1},
                           {"mul", [](const Tensor& t) { return t * 3; }, 3},
                           {"mul a tensor", [](const Tensor& t) { return tensor(3.0, DType::f64) * t; }, 3},
                           {"div", [](const Tensor& t) { return t / 4; }, 0.25},
                           {"add_n",
                            [&](const Tensor& t) {
                              return add_n({other, t});
                            },
                            1},
                           {"twice", [&](const Tensor& t) { return t + t; }, 2},
                           {"a chain", [&](const Tensor& t) { return -(2 * (t - other) + row); }, -2}}) {
    CAPTURE(p.name);
    const Gradient g = gradient_of([&](const Tensor& t) { return sum(gather(p.f(t), at) * weight); }, x);
    REQUIRE(g.slices());
    CHECK(g.slices()->dense_shape == Shape{4, 2});
    CHECK_THAT(g.dense().to_vector(),
               Equals(Values{0, 0, 3 * p.factor, 4 * p.factor, 0, 0, 6 * p.factor, 8 * p.factor}));
  }
  for (const auto& f : std::vector<std::function<Tensor(const Tensor&)>>{
           [&](const Tensor& t) { return t * other; }, [](const Tensor& t) { return exp(t); },
           [](const Tensor& t) { return t * t; }, [&](const Tensor& t) { return t * row; }}) {
    const Tensor dense = gather(f(x), at) * weight;
    const Gradient g = gradient_of([&](const Tensor& t) { return sum(gather(f(t), at) * weight); }, x);
    CHECK(g.is_dense());
    const Tensor expected = gradient_of(
                                [&](const Tensor& t) {
                                  return f(t) * to_dense({weight, at, Shape{4, 2}});
                                },
                                x)
                                .dense();
    CHECK_THAT(g.dense().to_vector(), Equals(expected.to_vector()));
  }
}

TEST_CASE("a broadcast input gets its sum, though the other input keeps the rows", "[slices]") {
  const Tensor x = counting({4, 2}), row = counting({2}), scale = tensor(3.0, DType::f64),
               at = tensor({3, 1, 3});
  GradientTape tape({.persistent = true});
  tape.watch(x), tape.watch(row), tape.watch(scale);
  const auto [dx, drow] = tape.gradient(gather(x + row, at), x, row);
  CHECK(dx.slices());
  CHECK_THAT(drow.dense().to_vector(), Equals(Values{3, 3}));
  const auto [dx2, dscale] = tape.gradient(gather(x * scale, at), x, scale);
  CHECK(dx2.slices());
  CHECK_THAT(dx2.dense().to_vector(), Equals(Values{0, 0, 3, 3, 0, 0, 6, 6}));
  CHECK(dscale.dense().item() == 2 * (7 + 8) + (3 + 4));
}

TEST_CASE("second order goes through rules that keep the rows", "[slices]") {
  const Tensor x = counting({3, 2}), scale = tensor(2.0, DType::f64), at = tensor({2, 0, 2});
  GradientTape outer({.persistent = true});
  outer.watch(x), outer.watch(scale);
  Gradient first;
  {
    GradientTape inner;
    inner.watch(x);
    const Tensor rows = gather(x * scale, at);
    first = inner.gradient(rows * rows * rows, x);   // 3 scale³ x², twice in row 2
  }
  REQUIRE(first.slices());
  const Tensor dense = first.dense();
  CHECK_THAT(dense.to_vector(), Equals(Values{24, 96, 0, 0, 48 * 25, 48 * 36}));
  const auto [dx, dscale] = outer.gradient(dense, x, scale);
  CHECK_THAT(dx.dense().to_vector(), Equals(Values{48, 96, 0, 0, 96 * 5, 96 * 6}));
  CHECK(dscale.dense().item() == 9 * 4 * (1 + 4 + 2 * 25 + 2 * 36));
}

TEST_CASE("slices are output gradients", "[slices]") {
  const Tensor x = counting({3, 2});
  const IndexedSlices dy{tensor({{10.0, 20.0}, {1.0, 2.0}}, DType::f64), tensor({2, 2}), Shape{3, 2}},
      open{dy.values, dy.indices, {}};
  GradientTape tape({.persistent = true});
  tape.watch(x);
  const Tensor same = identity(x), twice = x * 2, square = x * x;
  const auto gradient = [&](const Targets& y, OutputGradients g) {
    return tape.gradient(y, x, {.output_gradients = std::move(g)});
  };

  CHECK(gradient(same, {dy}).slices()->values.id() == dy.values.id());
  CHECK(gradient(same, {open}).slices()->dense_shape == Shape{3, 2});
  CHECK_THAT(gradient(twice, {dy}).dense().to_vector(), Equals(Values{0, 0, 0, 0, 22, 44}));
  CHECK_THAT(gradient(twice, {open}).slices()->values.to_vector(), Equals(Values{20, 40, 2, 4}));
  CHECK_THAT(gradient(square, {dy}).dense().to_vector(), Equals(Values{0, 0, 0, 0, 110, 22 * 12}));
  CHECK_THAT(gradient({same, twice}, {dy, ones({3, 2}, DType::f64)}).dense().to_vector(),
             Equals(Values{2, 2, 2, 2, 13, 24}));
  CHECK_THAT(gradient({same, same}, {dy, Gradient()}).dense().to_vector(),
             Equals(Values{1, 1, 1, 1, 12, 23}));
  CHECK(gradient(x, {dy}).slices());
  CHECK_THAT(gradient(square, {open}).dense().to_vector(), Equals(Values{0, 0, 0, 0, 110, 22 * 12}));
  CHECK_THAT(gradient(same, std::vector<Tensor>{x}).dense().to_vector(), Equals(x.to_vector()));
  CHECK_THAT(gradient(same, {Variable(x)}).dense().to_vector(), Equals(x.to_vector()));
}

TEST_CASE("a table of numbers has sparse gradients, too", "[slices]") {
  const Tensor x = counting({5});
  const Gradient g = gradient_of(
      [](const Tensor& t) {
        return gather(t, tensor({{4, 0}, {4, 4}})) + gather(t, tensor(2));
      },
      x);
  REQUIRE(g.slices());
  CHECK(g.slices()->values.ndim() == 1);
  CHECK_THAT(g.dense().to_vector(), Equals(Values{1, 0, 4, 0, 3}));
}

TEST_CASE("slices are printed with their rows", "[slices]") {
  CHECK(to_string(IndexedSlices{tensor({{1.0, 2.0}}), tensor<std::int64_t>({3}), Shape{4, 2}}) ==
        "values: [[1.0 2.0]]\nindices: [3] i64\ndense_shape: [4,2]");
  CHECK(to_string(IndexedSlices{tensor({1.0}), tensor({3}), {}}) ==
        "values: [1.0]\nindices: [3] i32\ndense_shape: not given");
  std::ostringstream out;
  out << std::setprecision(2) << IndexedSlices{tensor({1.0 / 3}), tensor({3}), {}};
  CHECK(out.str().starts_with("values: [0.33]\n"));
}

TEST_CASE("cases: slices", "[cases][slices]") {
  check_case("agg-slices-none", [&](Case& c) { c.check("result", aggregate({})); });
  check_case("agg-slices-one", [&](Case& c) {
    const Gradient t = IndexedSlices{c.input("t"), tensor({0, 1, 2}), Shape{3, 2}}, result = aggregate({t});
    c.check("dense", result.dense());
    c.check("same_object", result.slices() == t.slices());
  });
  check_case("grad-indexed-slices-grad-ys", [&](Case& c) {
    GradientTape tape;
    const Tensor x = c.input(tensor({1.0}));
    tape.watch(x);
    c.check("g", tape.gradient(identity(x), x,
                               {.output_gradients = {IndexedSlices{tensor({2.0}), tensor({0}), {}}}}));
  });
  check_case("indexed-slices-large-warning", [&](Case& c) {
    std::vector<bool> warned;
    for (const Shape& shape : {Shape{4, 4, 4, 4}, Shape{100, 100, 100, 100}}) {
      const Warnings warnings;
      Shape row = shape;
      row.set(0, 1);
      to_dense({zeros(row, DType::u8), tensor({2}), shape});
      warned.push_back(!warnings.texts.empty());
      if (warned.back())
        CHECK_THAT(warnings.texts,
                   Equals(std::vector<std::string>{
                       "to_dense: slices become a dense tensor of 100000000 elements: u8[100,100,100,100]"}));
    }
    c.check("warn", warned);
  });
}

}   // namespace indexed_slices_test
