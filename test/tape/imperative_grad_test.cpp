// imperative_grad: use counts, order of execution, summation, sparse gradients, and the state after a rule
// throws.
#include <catch2/catch.hpp>
#include <cmath>
#include <map>

#include "ops/odd_ops.h"
#include "tapedeck/memory.h"

namespace imperative_grad_test {

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

double value(const Gradient& g) { return g.dense().item(); }

/// The number of terms of each sum made while `inner` ran, as recorded by an outer tape.
std::vector<int> sums_during(const GradientTape& outer) {
  std::vector<int> terms;
  for (const RecordedOp& op : outer.recorded())
    if (op.name == "add_n") terms.push_back(op.inputs);
  std::sort(terms.begin(), terms.end());
  return terms;
}

}   // namespace

TEST_CASE("a tensor that is both operands of an op gets both terms", "[engine]") {
  const Tensor x = tensor(3.0);
  GradientTape tape;
  tape.watch(x);
  CHECK(value(tape.gradient(x * x, x)) == 6);
}

TEST_CASE("all terms of a diamond arrive before an op's rule runs", "[engine]") {
  const Tensor x = tensor(2.0);
  seen = {};
  GradientTape tape;
  tape.watch(x);
  const Tensor root = outputs(kPair, {x})[0];
  const Tensor left = root * 3, right = square(root),
               deep = left * right;   // 3 x³; x is used again below
  CHECK(value(tape.gradient(deep * root + left, x)) == 4 * 3 * 8 + 3);
  CHECK(seen.runs == 1);
}

TEST_CASE("a chain of diamonds takes time linear in its length", "[engine]") {
  const Tensor x = tensor(1.0, DType::f64), other = tensor(2.0);
  for (const bool watches_another : {false, true}) {   // then what does not lead to x is looked for first
    GradientTape tape;
    tape.watch(x);
    if (watches_another) tape.watch(other);
    Tensor y = x;
    for (int i = 0; i < 60; ++i)
      y = y + y;   // 2^60 paths
    CHECK(value(tape.gradient(y, x)) == std::ldexp(1.0, 60));
  }
}

TEST_CASE("a target that feeds another target counts for both", "[engine]") {
  const Tensor x = tensor(1.0);
  GradientTape tape({.persistent = true});
  tape.watch(x);
  const Tensor y = 3 * x, z = 5 * y;
  CHECK(value(tape.gradient({y, z}, x)) == 18);
  CHECK(value(tape.gradient({z, y}, x)) == 18);
  CHECK(value(tape.gradient({z, y, y}, x, {.output_gradients = {Tensor(), tensor(10.0), tensor(100.0)}})) ==
        15 + 330);
}

TEST_CASE("a source on a path keeps its gradient and passes it on", "[engine]") {
  const Tensor x = tensor(2.0);
  GradientTape tape({.persistent = true});
  tape.watch(x);
  const Tensor y = x * x, z = y * 3;
  const auto [dx, dy, dz] = tape.gradient(z, x, y, z);
  CHECK(value(dx) == 12);
  CHECK(value(dy) == 3);
  CHECK(value(dz) == 1);
}

TEST_CASE("one of two outputs as a source", "[engine]") {
  const Tensor x = tensor(1.0);
  GradientTape tape({.persistent = true});
  tape.watch(x);
  const std::vector<Tensor> p = outputs(kPair, {x});
  const Tensor y = 3 * p[0] + 5 * p[1];
  const auto [dx, da, db] = tape.gradient(y, x, p[0], p[1]);
  CHECK(value(dx) == 13);
  CHECK(value(da) == 3);
  CHECK(value(db) == 5);
}

TEST_CASE("an unused output gets zeros, once, or none if the rule accepts none", "[engine]") {
  const Tensor x = tensor({1.0, 2.0});
  GradientTape tape({.persistent = true});
  tape.watch(x);
  seen = {};
  CHECK(tape.gradient(outputs(kPair, {x})[1], x).dense().to_vector() == std::vector<double>{2, 2});
  CHECK(seen.runs == 1);
  CHECK(seen.zeros == 1);
  seen = {};
  CHECK(tape.gradient(outputs(kLoose, {x})[1], x).dense().to_vector() == std::vector<double>{1, 1});
  CHECK(seen.runs == 1);
  CHECK(seen.nones == 1);
}

TEST_CASE("an op without a gradient for any output is skipped", "[engine]") {
  const Tensor x = tensor(1.0), other = tensor(2.0);
  GradientTape tape;
  tape.watch(x), tape.watch(other);
  const Tensor cut = stop_gradient(outputs(kPair, {x})[0]), unused = outputs(kPair, {x})[1];
  const Tensor reaches_other_alone = outputs(kIdentities, {outputs(kPair, {x})[0], other})[1];
  seen = {};
  const auto [dx, d_other] = tape.gradient(x * 2 + cut + reaches_other_alone, x, other);
  CHECK(value(dx) == 2);
  CHECK(value(d_other) == 1);
  CHECK(seen.runs == 1);
}

TEST_CASE("a none that a rule returns ends only that path", "[engine]") {
  const Tensor x = tensor(1.0), n = tensor(7);
  GradientTape tape;
  tape.watch(x);
  const std::vector<Tensor> y = outputs(kIdentities, {x, n});
  CHECK(y[1].item<int>() == 7);
  CHECK(value(tape.gradient(y[0] * 4, x)) == 4);
}

TEST_CASE("a rule is told which gradients are requested", "[engine]") {
  const Tensor a = tensor(1.0), b = tensor(2.0);
  for (const unsigned wanted : {1u, 2u, 3u}) {
    GradientTape tape;
    if (wanted & 1) tape.watch(a);
    if (wanted & 2) tape.watch(b);
    const std::vector<Tensor> y = outputs(kIdentities, {a, b});
    seen = {};
    tape.gradient(y[0] + y[1], a, b);
    CHECK(seen.wanted == wanted);
  }
}

TEST_CASE("many large terms are summed early", "[engine]") {
  const Tensor x = ones({4});   // 16 bytes
  const auto sizes = [&](int uses, std::size_t count, std::int64_t bytes) {
    GradientTape outer({.persistent = true});
    outer.watch(x);
    GradientTape inner;
    inner.watch(x);
    Tensor y = square(x);
    for (int k = 1; k < uses; ++k)
      y = y + square(x);
    const Gradient g = inner.gradient(y, x, {.min_aggregate_count = count, .min_aggregate_bytes = bytes});
    CHECK(sum(g.dense()).item() == 8 * uses);
    return sums_during(outer);
  };
  using Sizes = std::vector<int>;
  CHECK(sizes(1, 4, 1) == Sizes{});
  CHECK(sizes(3, 4, 1) == Sizes{3});       // too few
  CHECK(sizes(6, 4, 64) == Sizes{2, 5});   // 4 × 16 bytes are not more than 64, 5 × 16 are
  CHECK(sizes(6, 4, 63) == Sizes{3, 4});
  CHECK(sizes(6, 2, 1) == Sizes{2, 2, 2, 2, 2});
  CHECK(sizes(200, 4, std::int64_t{128} << 20) == Sizes{200});
}

TEST_CASE("a rule adds in place to a term without other owners", "[engine]") {
  const Tensor x = tensor({1.0, -2.0, 0.5}, DType::f64), seed = tensor({3.0, 5.0, 7.0}, DType::f64);
  GradientTape tape({.persistent = true});
  tape.watch(x);
  const Tensor y = x * x, z = y * x + exp(x) + y * x, scaled = x * 2.0 + (1 - x) * x;
  tape.stop();   // otherwise rules would be recorded
  for (int run = 0; run < 2; ++run) {
    // y is a target and feeds another: its first term is the seed, whose memory belongs to the caller.
    const Tensor one = ones({3}, DType::f64);
    const Gradient g = tape.gradient({y, z}, x, {.output_gradients = {seed, one}});
    for (std::int64_t i = 0; i < 3; ++i) {
      const double v = x.at({i});
      CHECK(g.dense().at({i}) == Approx(seed.at({i}) * 2 * v + 6 * v * v + std::exp(v)));
    }
    CHECK(seed.to_vector() == std::vector<double>{3, 5, 7});
    CHECK(one.to_vector() == std::vector<double>{1, 1, 1});
    CHECK(tape.gradient(scaled, x).dense().to_vector() == std::vector<double>{1, 7, 2});
    const Tensor first = tape.gradient(y, x).dense(),
                 again = tape.gradient(y, x).dense();   // the first results must not change
    CHECK(first.to_vector() == std::vector<double>{2, -4, 1});
    CHECK(again.to_vector() == first.to_vector());
  }
}

TEST_CASE("the gradient of a square needs no memory but its own and the cotangent's", "[engine][memory]") {
  const Tensor x = ones({1 << 16});
  release_buffers();
  const std::int64_t before = live_bytes() + cached_bytes();
  {
    GradientTape tape;
    tape.watch(x);
    const Tensor y = x * x;
    const Gradient g = tape.gradient(y, x);
    CHECK(g.dense().at({0}) == 2);
  }
  const std::int64_t taken = live_bytes() + cached_bytes() - before;
  CAPTURE(taken);
  CHECK(taken < 3 * x.nbytes());   // of y and of one term
}

TEST_CASE("one tensor as both inputs, of sizes with and without a tail", "[engine]") {
  for (const std::int64_t n : {1, 7, 8, 1000, 40001}) {
    const Tensor x = (arange(0, static_cast<double>(n), 1, DType::f64) + 1) / 3;
    GradientTape tape;
    tape.watch(x);
    // The quotient has two different inputs, the product the same one twice.
    const Tensor y = x / (x * x) + x * x;
    const std::vector<double> g = tape.gradient(y, x).dense().to_vector();
    double worst = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const double v = static_cast<double>(i + 1) / 3;
      worst = std::max(worst, std::abs(g[static_cast<std::size_t>(i)] / (2 * v - 1 / (v * v)) - 1));
    }
    CHECK(worst < 1e-13);
  }
}

TEST_CASE("parts of a tensor share one gradient", "[engine]") {
  const Tensor x = ones({64, 8});
  std::map<std::string, int> made;   // ops made by the rules, as recorded by an outer tape
  const auto gradient = [&](const Aggregation aggregation) {
    GradientTape outer({.persistent = true});
    outer.watch(x);
    GradientTape tape;
    tape.watch(x);
    Tensor y = tensor(0.0);
    for (std::int64_t i = 0; i < 64; ++i)
      y = y + i * sum(square(i % 2 ? strided_slice(x, {i}) : slice(x, {i, 0}, {1, 8})));
    const Tensor g = tape.gradient(Targets(y), Sources(x), {.aggregation = aggregation})[0].dense();
    made.clear();
    for (const RecordedOp& op : outer.recorded())
      ++made[std::string(op.name)];
    const Tensor again = outer.gradient(sum(g * g), x).dense();   // 4 i² x² for row i
    for (std::int64_t i = 0; i < 64; ++i)
      CHECK(again.at({i, 5}) == 8 * static_cast<double>(i * i));
    return g;
  };
  const Tensor apart = gradient(Aggregation::tree);
  CHECK(made["strided_slice_add"] == 0);
  CHECK(made["pad"] + made["strided_pad"] == 64);
  const Tensor together = gradient(Aggregation::add_n);
  CHECK(made["strided_slice_add"] == 63);
  CHECK(made["pad"] + made["strided_pad"] == 1);
  CHECK(made["add_n"] == 0);
  CHECK(together.to_vector() == apart.to_vector());
  for (std::int64_t i = 0; i < 64; ++i)
    CHECK(together.at({i, 5}) == 2 * static_cast<double>(i));
}

TEST_CASE("gradients of gathered rows stay slices", "[engine][slices]") {
  const Tensor x = tensor({{1.0, 2.0}, {3.0, 4.0}, {5.0, 6.0}});
  GradientTape tape({.persistent = true});
  tape.watch(x);
  const Tensor once = gather(x, tensor({2, 2, 0})), more = gather(x, tensor({1}));
  const Gradient one = tape.gradient(once, x);
  REQUIRE(one.slices());
  CHECK(one.slices()->dense_shape == Shape{3, 2});
  CHECK(one.slices()->indices.to_vector() == std::vector<double>{2, 2, 0});
  CHECK(one.slices()->values.shape() == Shape{3, 2});
  CHECK(one.dense().to_vector() == std::vector<double>{1, 1, 0, 0, 2, 2});
  CHECK(one.nbytes() == 24);

  const Gradient joined = tape.gradient({once, more}, x);
  REQUIRE(joined.slices());
  CHECK(joined.slices()->indices.size() == 4);
  CHECK(joined.dense().to_vector() == std::vector<double>{1, 1, 1, 1, 2, 2});
  const Gradient weighted =
      tape.gradient({once, more}, x, {.output_gradients = {ones({3, 2}), full({1, 2}, 10)}});
  CHECK(weighted.dense().to_vector() == std::vector<double>{1, 1, 10, 10, 2, 2});

  const Gradient mixed = tape.gradient({once, x * 10}, x);
  CHECK(mixed.is_dense());
  CHECK(mixed.dense().to_vector() == std::vector<double>{11, 11, 10, 10, 12, 12});
}

TEST_CASE("slices are made dense for a rule that does not accept them", "[engine][slices]") {
  const Tensor x = tensor({1.0, 2.0, 3.0});
  GradientTape tape;
  tape.watch(x);
  const Tensor y = outputs(kPair, {x * x})[0];
  seen = {};
  CHECK(tape.gradient(gather(y, tensor({1, 1})), x).dense().to_vector() == std::vector<double>{0, 8, 0});
  CHECK(seen.runs == 1);
  CHECK(seen.slices == 0);
}

TEST_CASE("slices of a variable reach it through its reads", "[engine][slices]") {
  const Variable table(zeros({4, 2}));
  GradientTape tape;
  const Gradient g = tape.gradient(1 - gather(table, tensor({1, 1, 1})), table);
  REQUIRE(g.slices());
  CHECK(g.dense().at({1, 0}) == -3);
}

TEST_CASE("second order goes through joined and densified slices", "[engine][slices]") {
  const Tensor x = tensor({{1.0, 2.0}, {3.0, 4.0}, {5.0, 6.0}}, DType::f64);
  const auto third_power = [](const Tensor& t) {
    const Tensor rows = gather(t, tensor({2, 0, 2})), other = gather(t, tensor({1, 2}));
    return sum(rows * rows * rows) + sum(other * other * other) + sum(t * t * t);
  };
  GradientTape outer;
  outer.watch(x);
  Tensor first;
  {
    GradientTape inner;
    inner.watch(x);
    first = inner.gradient(third_power(x), x).dense();
  }
  CHECK(first.at({2, 0}) == 4 * 75);
  const Tensor second = outer.gradient(first, x).dense();
  const std::vector<double> uses = {2, 2, 2, 2, 4, 4}, v = x.to_vector();
  for (std::size_t i = 0; i < v.size(); ++i)
    CHECK(second.to_vector()[i] == uses[i] * 6 * v[i]);
}

TEST_CASE("an error of a rule is propagated", "[engine][errors]") {
  const Tensor x = tensor(2.0);
  const Variable v(tensor(3.0));
  GradientTape other({.persistent = true}), persistent({.persistent = true});
  other.watch(x), persistent.watch(x);
  GradientTape tape;
  tape.watch(x);
  const Tensor fine = x * v;
  const std::int64_t live = live_bytes();
  {
    const Tensor large = broadcast_to(x, {1000}), y = sum(output(kThrowingRule, large * large)) + fine;
    const std::size_t size = other.size();
    CHECK_THROWS_WITH(persistent.gradient(y, x), "this rule throws");
    CHECK_THROWS_WITH(tape.gradient(y, x), "this rule throws");
    CHECK(other.size() == size);
    CHECK(value(persistent.gradient(fine, x)) == 3);
    CHECK(value(other.gradient(fine, x)) == 3);
    CHECK_THROWS_AS(tape.gradient(fine, x), GradientError);
  }
  CHECK(v.value().item() == 3);
  CHECK(x.item() == 2);
  CHECK(persistent.size() == 2);   // the product, and reading v
  CHECK(live_bytes() == live);
}

TEST_CASE("an op whose kernel throws leaves tapes unchanged", "[engine][errors]") {
  const Tensor x = tensor(2.0);
  GradientTape outer, tape;
  outer.watch(x), tape.watch(x);
  const Tensor y = x * x;
  CHECK_THROWS_WITH(output(kThrowingKernel, y), "this kernel throws");
  CHECK_THROWS_AS(matmul(y, y), Error);
  CHECK(tape.size() == 1);
  CHECK(outer.size() == 1);
  CHECK(value(tape.gradient(y, x)) == 4);
  CHECK(value(outer.gradient(y, x)) == 4);
}

TEST_CASE("ops without a derivative end a path, and ops that must not be differentiated throw",
          "[engine][errors]") {
  static constexpr Op kNoDerivative = {
      .name = "no_derivative",
      .doc = "x.",
      .args = {"x"},
      .infer = like_first,
      .forward = {[](const Call& c, std::span<Tensor> y) { y[0] = identity(c.x[0]); }, Outputs::by_kernel},
      .rule = Rule::none()};
  static constexpr Op kMustNot = {
      .name = "must_not",
      .doc = "x.",
      .args = {"x"},
      .infer = like_first,
      .forward = {[](const Call& c, std::span<Tensor> y) { y[0] = identity(c.x[0]); }, Outputs::by_kernel},
      .rule = Rule::undefined()};
  const Tensor x = tensor(2.0);
  GradientTape tape({.persistent = true});
  tape.watch(x);
  CHECK_FALSE(tape.gradient(output(kNoDerivative, x), x).defined());
  const Tensor y = output(kMustNot, x);
  CHECK(value(tape.gradient(x * 2, x)) == 2);   // reported only if it is asked for
  CHECK_THROWS_AS(tape.gradient(y, x), GradientError);
  CHECK_THROWS_WITH(tape.gradient(y, x), Catch::StartsWith("must_not: "));
}

TEST_CASE("a gradient of a wrong shape or dtype is an error that names the op", "[engine][errors]") {
  static constexpr Op kWrong = {
      .name = "wrong",
      .doc = "x.",
      .args = {"x"},
      .infer = like_first,
      .forward = {[](const Call& c, std::span<Tensor> y) { y[0] = identity(c.x[0]); }, Outputs::by_kernel},
      .rule = Rule::custom(
          {}, [](const Call&, std::span<Gradient>, std::span<Gradient> dx) { dx[0] = ones({7}); })};
  const Tensor x = tensor({1.0, 2.0});
  GradientTape tape;
  tape.watch(x);
  CHECK_THROWS_WITH(tape.gradient(output(kWrong, x), x),
                    Catch::StartsWith("wrong: ") && Catch::Contains("f32[7]") && Catch::Contains("f32[2]"));
}

TEST_CASE("ops that produce a source are not differentiated", "[engine]") {
  const Tensor a = tensor(2.0);
  const Recording recording;
  const Tensor m = prevent_gradient(a, "nobody asks");
  CHECK(value(gradients(m * 3, m)[0]) == 3);
  CHECK(hessians(m * m, m)[0].item() == 2);

  seen = {};
  const Tensor root = outputs(kPair, {a})[0];
  CHECK(value(gradients(root * 3, root)[0]) == 3);
  CHECK(seen.runs == 0);
  const std::vector<Gradient> both = gradients(root * 3, {root, a});
  CHECK(value(both[0]) == 3);
  CHECK(both[1].defined());
  CHECK(seen.runs == 1);
}

TEST_CASE("ops that lead only to other watched tensors are not differentiated", "[engine]") {
  const Tensor a = tensor(2.0), b = tensor(5.0);
  for (const bool persistent : {false, true}) {
    GradientTape tape({.persistent = persistent});
    tape.watch(a);
    tape.watch(b);
    const Tensor y = a * 2 + prevent_gradient(b, "nobody asks");
    tape.stop();
    CHECK(value(tape.gradient(y, a)) == 2);
    if (persistent) CHECK_THROWS_WITH(tape.gradient(y, b), "prevent_gradient: nobody asks");
  }
}

// Integers would hide the order.
TEST_CASE("the tree sums pairs of terms", "[engine]") {
  const Tensor x = tensor(1.0F);
  GradientTape tape({.persistent = true});
  tape.watch(x);
  std::vector<Tensor> terms;
  for (const double weight : {1.0, 1e8, -1e8, 1.0})   // from either end the same
    terms.push_back(x * weight);
  const Tensor y = add_n(terms);
  tape.stop();
  const auto sum = [&](Aggregation a) { return value(tape.gradient(y, {x}, {.aggregation = a})[0]); };
  CHECK(sum(Aggregation::tree) == 0);           // (1 + 1e8) + (-1e8 + 1)
  CHECK(sum(Aggregation::accumulate_n) == 1);   // ((1 + 1e8) - 1e8) + 1
}

}   // namespace imperative_grad_test
