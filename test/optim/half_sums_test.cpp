// Sums and averages of f16 and bf16 over many steps or terms, compared with f64. If these are kept in a half,
// they stop growing: 256 + 1 is 256 in bf16.
#include <catch2/catch.hpp>

#include "tapedeck/moving_average.h"
#include "tapedeck/nn/normalization.h"
#include "tapedeck/tapedeck.h"
#include "tapedeck/training.h"

namespace half_sums_test {

using namespace tapedeck;

namespace {

constexpr DType kHalves[] = {DType::f16, DType::bf16};
constexpr int kTerms = 4000;

double epsilon_of(DType half) { return half == DType::f16 ? 1.0 / 1024 : 1.0 / 128; }
Tensor number(double x, DType t) { return astype(tensor({x}, DType::f64), t); }
double value_of(const Tensor& x) { return astype(x, DType::f64).to_vector()[0]; }
// Of what is within a rounding of the half.
auto near(double x, DType half) { return Approx(x).epsilon(epsilon_of(half)); }

}   // namespace

TEST_CASE("a gradient of many terms is not their sum in a half", "[half]") {
  for (const DType half : kHalves)
    for (const Aggregation how : {Aggregation::add_n, Aggregation::accumulate_n, Aggregation::tree})
      for (const std::int64_t bytes : {std::int64_t{0}, std::int64_t{64}, std::int64_t{16} << 20}) {
        CAPTURE(half, how, bytes);
        const Tensor x = number(1, half), one = number(1, half);
        GradientTape tape;
        tape.watch(x);
        std::vector<Tensor> products, copies;
        for (int i = 0; i < kTerms; ++i)
          products.push_back(x * one), copies.push_back(concat({x, x}, 0));
        const std::vector<Tensor> targets = {sum(concat(products, 0)), sum(concat(copies, 0))};
        GradientOptions options{.aggregation = how};
        options.min_aggregate_bytes = bytes;
        const std::vector<Gradient> dx = tape.gradient(targets, std::vector<Tensor>{x}, options);
        CHECK(dx[0].dense().dtype() == half);
        CHECK(value_of(dx[0].dense()) == near(3 * kTerms, half));
      }
}

TEST_CASE("accumulated gradients of halves are f32", "[half][optimizer]") {
  for (const DType half : kHalves) {
    CAPTURE(half);
    const Variable v(number(0, half)), table(astype(zeros({3, 2}), half));
    GradientAccumulator sum;
    const Gradient row = IndexedSlices{astype(ones({1, 2}), half), tensor({1}), Shape{3, 2}};
    for (int i = 0; i < kTerms; ++i)
      sum.add({{number(1, half), v}, {row, table}});
    GradientAccumulator other;
    other.restore(sum.state());
    for (GradientAccumulator* a : {&sum, &other}) {
      CHECK(a->count() == kTerms);
      const auto pairs = a->take_sum();
      CHECK(value_of(pairs[0].gradient.dense()) == kTerms);
      CHECK(astype(pairs[1].gradient.dense(), DType::f64).to_vector()[2] == kTerms);
    }
  }
}

TEST_CASE("a saved sum of any dtype is restored, and one that does not fit is not", "[optimizer]") {
  for (const DType t : {DType::f16, DType::bf16, DType::f32, DType::f64}) {
    CAPTURE(t);
    const Variable v(number(2, t), {.name = "v"});
    GradientAccumulator sum;
    sum.add({{number(1.5, t), v}});
    sum.add({{number(2.5, t), v}});
    SavedState state = sum.state();
    GradientAccumulator other;
    other.restore(state);
    CHECK(value_of(other.take_mean()[0].gradient.dense()) == 2);
    for (SlotValue& s : state.slots)
      if (s.slot == "sum") s.value = astype(s.value, t == DType::f64 ? DType::f32 : DType::f64);
    CHECK_THROWS_AS(other.restore(state), DTypeError);
    CHECK(other.count() == 0);
  }
}

TEST_CASE("moving averages of halves converge", "[half][optimizer]") {
  for (const DType half : kHalves)
    for (const bool debias : {false, true}) {
      CAPTURE(half, debias);
      const Variable v(number(0, half));
      MovingAverage average(v, {.zero_debias = debias});
      for (int i = 0; i < kTerms; ++i)
        average.update(number(2, half), 0.998);
      CHECK(value_of(v) == near(debias ? 2 : 2 * (1 - std::pow(0.998, kTerms)), half));
      const Variable w(number(0, half));
      MovingAverage other(w, {.zero_debias = debias});
      other.restore(average.state());
      average.update(number(1, half), 0.998), other.update(number(1, half), 0.998);
      CHECK(value_of(v) == value_of(w));
      v.assign(number(16, half));   // which the average follows from there
      if (debias) continue;
      average.update(number(16, half), 0.998);
      CHECK(value_of(v) == 16);
    }
  for (const DType half : kHalves) {
    WeightedMovingAverage average(0.999);
    Tensor mean;
    for (int i = 0; i < kTerms; ++i)
      mean = average.update(number(i % 2 ? 1 : 3, half), number(1, half));
    CHECK(mean.dtype() == half);
    CHECK(value_of(mean) == near(2, half));
  }
}

TEST_CASE("running statistics of halves converge", "[half]") {
  for (const DType half : kHalves) {
    CAPTURE(half);
    const nn::BatchNorm norm(1, {.momentum = 0.99, .dtype = half});
    const Tensor x = astype(tensor({{4.0}, {6.0}}, DType::f64), half);
    for (int i = 0; i < 2000; ++i)
      norm(x, {.training = true});
    CHECK(norm.mean.dtype() == DType::f32);
    CHECK(value_of(norm.mean) == Approx(5).epsilon(1e-4));
    CHECK(value_of(norm.variance) == Approx(2).epsilon(1e-4));
    CHECK(norm(x).dtype() == half);
    CHECK(value_of(norm(x)) == near(-1 / std::sqrt(2.0), half));
  }
}

}   // namespace half_sums_test
