// Operands that broadcast along short rows, and along long ones that are cut, in values, derivatives and
// sums: the same bits as for operands that are materialised in the whole shape, which take another path
// through the kernels.
#include <catch2/catch.hpp>
#include <limits>

#include "closeness.h"
#include "elements.h"
#include "tapedeck/map.h"
#include "tapedeck/threads.h"

namespace short_rows_test {

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

struct Case {
  Shape a, b;
};
// Columns, rows, single elements, both sides at once, tails, and blocks along outer axes.
const std::vector<Case> kCases = {{{40, 3}, {40, 1}},      {{41, 3}, {3}},
                                  {{1000, 2}, {1000, 1}},  {{700, 4}, {1, 4}},
                                  {{333, 5}, {333, 1}},    {{50, 33}, {33}},
                                  {{50, 64}, {50, 1}},     {{9, 200}, {200}},
                                  {{5, 22, 1}, {5, 1, 4}}, {{6, 30, 3}, {30, 1}},
                                  {{6, 30, 3}, {6, 1, 3}}, {{6, 1, 30, 3}, {1, 4, 30, 1}},
                                  {{4, 7}, {4, 1}},        {{20'000, 3}, {20'000, 1}},
                                  {{12, 100}, {12, 1}},    {{9, 201}, {9, 1}},
                                  {{7, 300}, {300}},       {{7, 301}, {7, 1}},
                                  {{3, 5001}, {5001}},     {{4, 3, 2051}, {4, 1, 2051}}};

// Enough for several threads.
const std::vector<Case> kLarge = {
    {{200'000, 3}, {200'000, 1}}, {{1000, 301}, {301}}, {{10, 30'001}, {30'001}}};

// Numbers of all dtypes, whose products i8 has.
Tensor numbers(const Shape& shape, DType dtype) {
  std::vector<int> v(static_cast<std::size_t>(shape.size()));
  for (std::size_t i = 0; i < v.size(); ++i)
    v[i] = static_cast<int>(i * 7 % 11);
  return astype(tensor(v, shape), dtype);
}
bool close(const Tensor& a, const Tensor& b) {
  return worst(a, b) <= (a.dtype() == DType::f64 ? 1e-13 : 2e-4);
}
std::vector<Tensor> pair_of(std::vector<Gradient> g) { return {g[0].dense(), g[1].dense()}; }
Tensor whole(const Tensor& x, const Shape& shape) { return identity(broadcast_to(x, shape)); }

}   // namespace

TEST_CASE("values along short rows", "[short_rows]") {
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i8, DType::u8, DType::i32,
                            DType::i64, DType::c64, DType::c128})
    for (const auto& [first, second] : kCases) {
      const Tensor a = numbers(first, dtype), b = numbers(second, dtype);
      const Shape shape = (a + b).shape();
      INFO(to_string(a.spec()) << " and " << to_string(b.spec()));
      CHECK(same_bits(a + b, whole(a, shape) + whole(b, shape)));
      CHECK(same_bits(b * a, whole(b, shape) * whole(a, shape)));
      CHECK(same_bits(equal(a, b), equal(whole(a, shape), whole(b, shape))));
    }
}

TEST_CASE("zeros and bytes of short rows keep their bits", "[short_rows]") {
  const Tensor column = tensor(std::vector<double>{-0.0, 0.0, -1.0, 2.0, -0.0, 0.0, -3.0, 4.0}, {8, 1});
  const Tensor zeros_below = -zeros({8, 5}, DType::f64);
  CHECK(same_bits(zeros_below + column, zeros_below + whole(column, {8, 5})));
}

TEST_CASE("the same bits along rows on several threads", "[short_rows][threads]") {
  for (const auto& [first, second] : kLarge) {
    const Tensor a = random::normal(first, {.seed = 1}), b = random::normal(second, {.seed = 2});
    INFO(to_string(a.spec()) << " and " << to_string(b.spec()));
    const auto gradients = [&] {
      GradientTape tape;
      tape.watch(a), tape.watch(b);
      return pair_of(tape.gradient(tanh(a * b), Sources({a, b})));
    };
    const int before = num_threads();
    set_num_threads(1);
    const Tensor one = a * b;
    const std::vector<Tensor> of_one = gradients();
    set_num_threads(3);
    CHECK(same_bits(a * b, one));
    const std::vector<Tensor> of_three = gradients();
    set_num_threads(before);
    CHECK(same_bits(of_one[0], of_three[0]));
    CHECK(same_bits(of_one[1], of_three[1]));
  }
}

TEST_CASE("gradients along short rows", "[short_rows]") {
  const auto of_elements = [](const auto& a, const auto& b) { return a * b / (1 + a * a); };
  for (const DType dtype : {DType::f32, DType::f64})
    for (const auto& [first, second] : kCases) {
      const Tensor a = astype(random::uniform(first, {.seed = 1}), dtype),
                   b = astype(random::uniform(second, {.seed = 2}), dtype);
      const Shape shape = (a + b).shape();
      INFO(to_string(a.spec()) << " and " << to_string(b.spec()));
      const auto gradients = [&](const auto& f, bool written_out) {
        GradientTape tape;
        tape.watch(a), tape.watch(b);
        const Tensor y = written_out ? f(whole(a, shape), whole(b, shape)) : f(a, b);
        return pair_of(tape.gradient(y, Sources({a, b}),
                                     {.output_gradients = {random::normal(shape, {.seed = 3}, dtype)}}));
      };
      const auto check = [&](const auto& f) {
        const std::vector<Tensor> g = gradients(f, false), expected = gradients(f, true);
        CHECK(close(g[0], expected[0]));
        CHECK(close(g[1], expected[1]));
      };
      check([](const Tensor& x, const Tensor& y) { return x * y; });
      check([](const Tensor& x, const Tensor& y) { return x / (2 + y); });
      check([&](const Tensor& x, const Tensor& y) { return map<"of_elements">(of_elements, x, y); });
    }
}

TEST_CASE("one gradient of two along short rows is enough", "[short_rows]") {
  const Tensor a = random::normal({100, 3}, {.seed = 1}), b = random::normal({100, 1}, {.seed = 2});
  for (const Tensor& x : {a, b}) {
    GradientTape tape;
    tape.watch(x);
    const Tensor g = tape.gradient(a * b, x).dense();
    CHECK(same_bits(g, x.shape() == a.shape() ? whole(b, a.shape()) : sum(a, {1}, {.keepdims = true})));
  }
}

TEST_CASE("gradients of broadcasts without elements and with huge extents", "[short_rows]") {
  const std::int64_t n = std::int64_t{1} << 40;
  const Tensor x = zeros({0, n, n, 3}), row = ones({3});
  GradientTape tape;
  tape.watch(row);
  const Tensor y = x * row;
  CHECK(same_bits(tape.gradient(y, row).dense(), zeros({3})));
}

TEST_CASE("reductions of rows of few elements", "[short_rows]") {
  for (std::int64_t n = 2; n <= 17; ++n) {
    const Tensor x = random::normal({203, n}, {.seed = 1}), columns = transpose(x);
    INFO(n);
    CHECK(close(sum(x, {1}), sum(columns, {0})));
    CHECK(same_bits(max(x, {1}), max(columns, {0})));
    CHECK(close(prod(x, {1}), prod(columns, {0})));
    const Tensor ints = numbers({203, n}, DType::i32);
    CHECK(same_bits(sum(ints, {1}), sum(transpose(ints), {0})));
  }
  const Tensor u = random::uniform({100, 3}, {.seed = 1});
  const Tensor nans = where(less(u, 0.2), full({100, 3}, std::numeric_limits<float>::quiet_NaN()), u);
  const auto is_nan = [](const Tensor& x) { return not_equal(x, x); };
  CHECK(same_bits(is_nan(max(nans, {1})), any(is_nan(nans), {1})));
}

}   // namespace short_rows_test
