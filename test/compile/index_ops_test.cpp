// Ops whose integer arguments differ between the recording and its replays: values, gradients, tangents and
// second derivatives have the bits of the function itself, as have the numbers that rules compute from
// indices.
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <sstream>

#include "closeness.h"
#include "tapedeck/compile.h"
#include "tapedeck/forward_accumulator.h"
#include "tapedeck/tapedeck.h"

namespace index_ops_test {

using namespace tapedeck;

namespace {

using Tensors = std::vector<Tensor>;
using OfTensors = std::function<Tensors(const Tensors&)>;

Tensor i64(std::initializer_list<std::int64_t> v) { return tensor(v); }
Tensor i64_rows(std::initializer_list<std::initializer_list<std::int64_t>> v) { return tensor(v); }
Tensor numbers(const Shape& shape, std::uint64_t stream, DType dtype = DType::f64) {
  return random::uniform(shape, {.seed = 7, .stream = stream}, 0.5, 1.5, dtype);
}

/// The derivatives of f in those of x that have one: gradients of a sum of squares, and their gradients.
Tensors gradients(const OfTensors& f, const Tensors& x) {
  Tensors sources;
  for (const Tensor& t : x)
    if (is_trainable(t.dtype())) sources.push_back(t);
  GradientTape outer({.persistent = true});
  for (const Tensor& t : sources)
    outer.watch(t);
  Tensors all;
  Tensor whole;
  {
    GradientTape tape;
    for (const Tensor& t : sources)
      tape.watch(t);
    Tensor loss;
    for (const Tensor& y : f(x))
      loss = loss.defined() ? loss + sum(y * y * y) : sum(y * y * y);
    for (const Gradient& g : tape.gradient(loss, Sources(sources))) {
      all.push_back(g.dense());
      const Tensor squares = sum(g.dense() * g.dense());
      whole = whole.defined() ? whole + squares : squares;
    }
  }
  for (const Gradient& g : outer.gradient(whole, Sources(sources)))
    if (g.defined()) all.push_back(g.dense());
  return all;
}
Tensors tangents(const OfTensors& f, const Tensors& x) {
  Tensors primals, along;
  for (const Tensor& t : x)
    if (is_trainable(t.dtype())) {
      primals.push_back(t);
      along.push_back(t * t + 1);
    }
  const ForwardAccumulator a(primals, along);
  Tensors dy;
  for (const Tensor& y : f(x))
    dy.push_back(a.jvp(y).tensor());
  return dy;
}

bool all_same(const Tensors& a, const Tensors& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t k = 0; k < a.size(); ++k)
    if (a[k].defined() != b[k].defined() || (a[k].defined() && !same_bits(a[k], b[k]))) return false;
  return true;
}

/// Records f with the first arguments, and calls it with all of them, and with the first ones again.
void check_replays(const OfTensors& f, std::vector<Tensors> calls) {
  calls.push_back(calls[0]);
  const OfTensors forms[] = {f, [&](const Tensors& x) { return gradients(f, x); },
                             [&](const Tensors& x) { return tangents(f, x); }};
  int form = 0;
  for (const OfTensors& of : forms) {
    INFO("0: values, 1: gradients, 2: tangents: " << form++);
    const auto recorded = compile(of);
    int call = 0;
    for (const Tensors& x : calls) {
      INFO("call " << call++);
      std::vector<Tensors> before;
      for (const Tensor& t : x)
        before.push_back({t * 1});
      CHECK(all_same(recorded(x), of(x)));
      for (std::size_t i = 0; i < x.size(); ++i)
        CHECK(same_bits(x[i], before[i][0]));
    }
    REQUIRE(recorded.programs().size() == 1);
    CHECK(recorded.programs()[0].calls == static_cast<std::int64_t>(calls.size()) - 1);
  }
}

using OfTwo = Tensor (*)(const Tensor&, const Tensor&);
using OfThree = Tensor (*)(const Tensor&, const Tensor&, const Tensor&);

}   // namespace

TEST_CASE("means by group count the ids of each replay", "[recorded][indices]") {
  const auto mean =
      compile([](const Tensor& x, const Tensor& ids) { return unsorted_segment_mean(x, ids, 3); });
  const Tensor x = tensor({1.0, 2.0, 3.0, 4.0});
  mean(x, i64({0, 0, 1, 2}));
  CHECK(mean(x, i64({0, 1, 1, 1})).to_vector() == std::vector<double>{1, 3, 0});
  const Tensors ids = {i64({0, 0, 1, 2, -1}), i64({0, 1, 1, 1, 1}), i64({2, 2, 2, -1, -1})};
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16})
    for (const Shape& shape : {Shape{5}, Shape{5, 3}}) {
      std::vector<Tensors> calls;
      for (std::size_t k = 0; k < ids.size(); ++k)
        calls.push_back({astype(numbers(shape, k), dtype), ids[k]});
      for (const auto op : {unsorted_segment_mean, unsorted_segment_sqrt_n, unsorted_segment_sum,
                            unsorted_segment_prod, unsorted_segment_max, unsorted_segment_min})
        check_replays([op](const Tensors& x) { return Tensors{op(x[0], x[1], 3)}; }, calls);
    }
  check_replays(
      [](const Tensors& x) { return Tensors{unsorted_segment_mean(x[0], x[1], 4)}; },
      {{numbers({2, 2}, 1), i64_rows({{0, 0}, {3, 1}})}, {numbers({2, 2}, 2), i64_rows({{3, 3}, {3, 2}})}});
}

TEST_CASE("sorted segments are recorded with their ids", "[recorded][indices]") {
  const std::vector<Tensors> calls = {{numbers({5, 2}, 1), i64({0, 0, 1, 2, 2})},
                                      {numbers({5, 2}, 2), i64({0, 1, 1, 1, 2})},
                                      {numbers({5, 2}, 3), i64({1, 1, 1, 2, 2})},
                                      {numbers({5, 2}, 4), i64({2, 2, 2, 2, 2})}};
  for (const OfTwo op :
       {OfTwo(segment_sum), OfTwo(segment_mean), OfTwo(segment_prod), OfTwo(segment_max), OfTwo(segment_min)})
    check_replays([op](const Tensors& x) { return Tensors{op(x[0], x[1])}; }, calls);

  using Sparse = Tensor (*)(const Tensor&, const Tensor&, const Tensor&, std::optional<std::int64_t>);
  for (const Sparse op :
       {Sparse(sparse_segment_sum), Sparse(sparse_segment_mean), Sparse(sparse_segment_sqrt_n)})
    for (const std::optional<std::int64_t> count :
         {std::optional<std::int64_t>(), std::optional<std::int64_t>(4)})
      check_replays([op, count](const Tensors& x) { return Tensors{op(x[0], x[1], x[2], count)}; },
                    {{numbers({4, 2}, 1), i64({0, 3, 3, 1}), i64({0, 1, 1, 2})},
                     {numbers({4, 2}, 2), i64({2, 2, 0, 1}), i64({0, 0, 0, 2})},
                     {numbers({4, 2}, 3), i64({1, 0, 2, 2}), i64({1, 1, 2, 2})}});

  const auto sums = compile([](const Tensor& x, const Tensor& ids) { return segment_sum(x, ids); });
  CHECK(sums(tensor({1.0, 2.0}), i64({0, 1})).shape() == Shape{2});
  CHECK_THROWS_WITH(
      sums(tensor({1.0, 2.0}), i64({0, 0})),
      Catch::Contains("segment_sum: returns f32[1] in a replay, but returned f32[2] when it was recorded"));
  CHECK_THROWS_WITH(sums(tensor({1.0, 2.0}), i64({1, 0})),
                    "segment_sum: id 0 at position 1 is negative or less than the one before; use "
                    "unsorted_segment ops");
}

TEST_CASE("gradients of partitions and stitches follow the indices of each replay", "[recorded][indices]") {
  check_replays([](const Tensors& x) { return dynamic_partition(x[0], x[1], 3); },
                {{numbers({5, 2}, 1), i64({2, 0, 2, 1, 0})},
                 {numbers({5, 2}, 2), i64({0, 0, 1, 2, 2})},
                 {numbers({5, 2}, 3), i64({1, 2, 2, 0, 0})}});
  check_replays(
      [](const Tensors& x) {
        return Tensors{dynamic_stitch(std::vector{x[0], x[1]}, std::vector{x[2], x[3]})};
      },
      {{i64({0, 2}), i64({1, 3}), numbers({2, 2}, 1), numbers({2, 2}, 2)},
       {i64({3, 1}), i64({0, 2}), numbers({2, 2}, 3), numbers({2, 2}, 4)},
       {i64({0, 1}), i64({3, 2}), numbers({2, 2}, 5), numbers({2, 2}, 6)}});
  // Rows that are replaced in one call and not in another.
  check_replays(
      [](const Tensors& x) {
        return Tensors{dynamic_stitch(std::vector{x[0], x[1]}, std::vector{x[2], x[3]})};
      },
      {{i64({0, 1, 2}), i64({1}), numbers({3}, 1), numbers({1}, 2)},
       {i64({2, 1, 0}), i64({2}), numbers({3}, 3), numbers({1}, 4)},
       {i64({0, 1, 1}), i64({2}), numbers({3}, 5), numbers({1}, 6)}});
  check_replays([](const Tensors& x) { return Tensors{boolean_mask(x[0], x[1] > 0)}; },
                {{numbers({4, 2}, 1), i64({1, 0, 1, 0})},
                 {numbers({4, 2}, 2), i64({0, 1, 1, 0})},
                 {numbers({4, 2}, 3), i64({0, 0, 1, 1})}});
}

TEST_CASE("gradients of updates follow the positions of each replay", "[recorded][indices]") {
  const std::vector<Tensors> calls = {{numbers({4, 2}, 1), i64_rows({{0}, {2}}), numbers({2, 2}, 2)},
                                      {numbers({4, 2}, 3), i64_rows({{3}, {3}}), numbers({2, 2}, 4)},
                                      {numbers({4, 2}, 5), i64_rows({{3}, {1}}), numbers({2, 2}, 6)}};
  std::vector<Tensors> repeated = calls;
  std::swap(repeated[0], repeated[1]);
  for (const OfThree op :
       {OfThree(tensor_scatter_update), OfThree(tensor_scatter_add), OfThree(tensor_scatter_sub),
        OfThree(tensor_scatter_max), OfThree(tensor_scatter_min)})
    for (const std::vector<Tensors>& all : {calls, repeated})
      check_replays([op](const Tensors& x) { return Tensors{op(x[0], x[1], x[2])}; }, all);

  const auto gradient = compile([](const Tensor& x, const Tensor& at, const Tensor& updates) {
    GradientTape tape;
    tape.watch(updates);
    return tape.gradient(sum(tensor_scatter_update(x, at, updates)), updates).dense();
  });
  const Tensor x = zeros({3}), updates = tensor({1.0, 2.0});
  gradient(x, i64_rows({{0}, {1}}), updates);
  CHECK(gradient(x, i64_rows({{1}, {1}}), updates).to_vector() == std::vector<double>{0, 1});
}

TEST_CASE("gathers and sorts follow the indices of each replay", "[recorded][indices]") {
  const std::vector<Tensors> calls = {{numbers({4, 2}, 1), i64({0, 2, 2})},
                                      {numbers({4, 2}, 3), i64({3, 3, 1})},
                                      {numbers({4, 2}, 5), i64({1, 0, 3})}};
  check_replays([](const Tensors& x) { return Tensors{gather(x[0], x[1])}; }, calls);
  check_replays(
      [](const Tensors& x) {
        return Tensors{scatter_add(gather(x[0], x[1]), x[1], {5, 2})};
      },
      calls);
  check_replays([](const Tensors& x) { return Tensors{gather_nd(x[0], expand_dims(x[1], -1))}; }, calls);
  check_replays([](const Tensors& x) { return Tensors{x[0] * astype(one_hot(x[1], 2), DType::f64)}; },
                {{numbers({3, 2}, 1), i64({0, 1, 1})}, {numbers({3, 2}, 2), i64({1, 1, 0})}});
  check_replays(
      [](const Tensors& x) {
        return Tensors{sum_duplicates(IndexedSlices{x[0], x[1], Shape{9, 2}}).values};
      },
      {{numbers({4, 2}, 1), i64({0, 2, 2, 7})},
       {numbers({4, 2}, 3), i64({8, 1, 0, 8})},
       {numbers({4, 2}, 5), i64({1, 1, 0, 3})}});
  check_replays(
      [](const Tensors& x) {
        return Tensors{sort(x[0], 0), x[0] * astype(argsort(x[1]), DType::f64)};
      },
      {{numbers({3}, 1), i64({0, 1, 2})}, {numbers({3}, 2), i64({9, 1, 2})}});
}

TEST_CASE("quantiles of a key differentiate at the key of each replay", "[recorded][indices]") {
  const auto f = [](const Tensor& mean, random::Key key) {
    GradientTape tape;
    tape.watch(mean);
    const Tensor y = random::parameterized_truncated_normal({4}, mean, 1.0, -2.0, 1.0, key);
    return tape.gradient(sum(y * y), mean).dense();
  };
  const auto recorded = compile(f);
  for (const std::uint64_t seed : {3u, 4u, 5u})
    CHECK(same_bits(recorded(tensor(0.25), random::Key{.seed = seed}), f(tensor(0.25), {.seed = seed})));
}

TEST_CASE("each replay prints, constants included", "[recorded]") {
  std::ostringstream out;
  const Tensor constant = tensor({7.0, 8.0});
  const auto f = compile([&](const Tensor& x) {
    const Tensor shown = print(constant, "constant", out);
    return print(x, "argument", out) + shown;
  });
  std::string expected;
  for (int i = 0; i < 4; ++i) {
    const Tensor x = tensor({1.0 * i, 2.0});
    CHECK(f(x).to_vector() == std::vector<double>{7.0 + i, 10});
    expected += "constant" + to_string(constant) + "\nargument" + to_string(x) + "\n";
    CHECK(out.str() == expected);
  }
  CHECK(constant.to_vector() == std::vector<double>{7, 8});
  CHECK(f.programs()[0].calls == 3);
}

TEST_CASE("effects on constants keep their place among effects on arguments", "[recorded]") {
  std::ostringstream out;
  const Tensor constant = tensor({7.0, 8.0});
  const auto f = compile([&](const Tensor& x) {
    print(x * 2.0, "", out);
    assert_that(constant > 1.0, "no");
    check_numerics(x * 3.0, "three");
    assert_that(x > 0.0, "positive");
    print(constant * 1.0, "", out);
    return x;
  });
  std::string expected;
  for (int i = 1; i < 4; ++i) {
    f(tensor({1.0 * i, 2.0}));
    expected += to_string(tensor({2.0 * i, 4.0})) + "\n" + to_string(constant) + "\n";
    CHECK(out.str() == expected);
  }
  CHECK_THROWS_WITH(f(tensor({-1.0, 2.0})), Catch::Contains("positive"));
  CHECK(f.programs()[0].calls == 3);
}

TEST_CASE("check_numerics checks each replay", "[recorded]") {
  const auto f = compile([](const Tensor& x) { return check_numerics(x * 2, "twice") + 1; });
  CHECK(f(tensor({1.0, 2.0})).at({0}) == 3);
  CHECK_THROWS_WITH(f(tensor({1.0, std::nan("")})),
                    Catch::Contains("check_numerics: twice: element 1 of f32[2] is nan"));
}

TEST_CASE("a condition that is read on the host is an error that names cond", "[recorded][errors]") {
  const auto branch = compile([](const Tensor& x) { return Condition(greater(x, 0.0)) ? x : -x; });
  CHECK_THROWS_WITH(
      branch(tensor(1.0)),
      Catch::Contains("cond reads the numbers of bool[], computed by #0 greater, on the host") &&
          Catch::Contains("use cond or where, or do this outside the compiled function"));
  const auto loop = compile([](const Tensor& x) {
    Tensor y = x;
    while (Condition(less(y, 10.0), "the loop"))
      y = y * 2;
    return y;
  });
  CHECK_THROWS_WITH(loop(tensor(1.0)), Catch::Contains("the loop reads the numbers of bool[]"));
  const auto choice =
      compile([](const Tensor& x, const Tensor& index) { return BranchIndex(index).among(2) ? x : -x; });
  CHECK_THROWS_WITH(choice(tensor(1.0), i64({1})),
                    Catch::Contains("switch_case reads the numbers of i64[1], argument 1, on"));
}

}   // namespace index_ops_test
