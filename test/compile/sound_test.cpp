// Former bugs of compiled functions: memory of the caller, views that begin together, types and keys.
#include <catch2/catch.hpp>

#include "closeness.h"
#include "tapedeck/compile.h"
#include "tapedeck/tapedeck.h"

namespace sound_test {

using namespace tapedeck;

namespace {

Tensor gradient_of(const Tensor& x, Tensor (*f)(const Tensor&)) {
  GradientTape tape;
  tape.watch(x);
  return tape.gradient(f(x), x).dense();
}

}   // namespace

TEST_CASE("a replay leaves its arguments and variables unchanged", "[compile]") {
  const auto twice_and_square = [](const Tensor& x) { return sum(x) + sum(x) + sum(x * x); };
  for (const DType dtype : {DType::f32, DType::f64})
    for (const std::int64_t n : {1, 8, 16, 17, 18, 64, 1000}) {
      CAPTURE(name_of(dtype), n);
      const auto f = compile([&](const Tensor& x) { return gradient_of(x, twice_and_square); });
      f(ones({n}, dtype));
      const Tensor x = full({n}, 3.0, dtype);
      CHECK(same_bits(f(x), full({n}, 8.0, dtype)));
      CHECK(same_bits(x, full({n}, 3.0, dtype)));

      const Variable w(full({n}, 3.0, dtype));
      const auto g = compile([&] {
        GradientTape tape;
        return tape.gradient(sum(w) + sum(w) + sum(w * w), w);
      });
      for (int i = 0; i < 3; ++i)
        CHECK(same_bits(g().dense(), full({n}, 8.0, dtype)));
      CHECK(same_bits(w.value(), full({n}, 3.0, dtype)));
    }
}

TEST_CASE("views with the same first element are read separately", "[compile]") {
  const auto check = [](auto f, const Shape& shape) {
    const auto replayed = compile(f);
    for (const std::uint64_t seed : {1U, 2U, 3U}) {
      const Tensor x = random::normal(shape, {.seed = seed}, DType::f64);
      CHECK(same_bits(replayed(x), f(x)));
    }
  };
  check([](const Tensor& x) { return exp(x - x[0]); }, {64});
  check([](const Tensor& x) { return sum(slice(x, {0}, {1}) + x); }, {40});
  check([](const Tensor& x) { return exp(slice(x, {16}, {1}) - slice(x, {16}, {16})); }, {64});
  check([](const Tensor& m) { return exp(m * slice(m, {0, 0}, {1, 1}) + m); }, {4, 8});
  check([](const Tensor& x) { return gradient_of(x, [](const Tensor& t) { return sum(exp(t - t[0])); }); },
        {33});
}

TEST_CASE("comparisons before and after an effect do not wait for each other", "[compile]") {
  const auto f = [](const Tensor& x) {
    const Tensor p = where(x > 1.0, x, x * 0.5);
    assert_that(all(x > -100.0), "too small");
    return where(p > 0.5, p, p * 0.5);
  };
  const auto compiled = compile(f);
  for (const double scale : {1.0, 2.0, -3.0}) {
    const Tensor x = arange(50, DType::f32) * (scale * 0.1);
    CHECK(same_bits(compiled(x), f(x)));
  }
  CHECK(compiled.programs().at(0).calls == 2);
}

TEST_CASE("types are part of the signature", "[compile]") {
  const auto f = compile([](const Tensor& x, auto n) { return x + n; });
  const Tensor x = tensor({1, 2});
  CHECK(f(x, 0).dtype() == (x + 0).dtype());
  CHECK(f(x, 0.0f).dtype() == (x + 0.0f).dtype());
  CHECK(f.programs().size() == 2);

  const auto g = compile([](const auto& a) {
    if constexpr (std::same_as<std::remove_cvref_t<decltype(a)>, Tensor>)
      return a * 2;
    else
      return std::get<0>(a) * 3;
  });
  CHECK(g(tensor(1.0)).item() == 2);
  CHECK(g(std::tuple(tensor(1.0))).item() == 3);
}

TEST_CASE("keys that were equal at the recording may differ later", "[compile]") {
  using random::Key;
  const auto difference = [](Key a, Key b) { return random::normal({2}, a) - random::normal({2}, b); };
  const auto f = compile(difference);
  CHECK(same_bits(f(Key{.seed = 1}, Key{.seed = 1}), zeros({2})));
  for (int i = 0; i < 2; ++i)
    CHECK(same_bits(f(Key{.seed = 1}, Key{.seed = 2}), difference({.seed = 1}, {.seed = 2})));

  const auto beside_constant = [](Key k) {
    return random::normal({2}, k) + random::normal({2}, Key{.seed = 1});
  };
  const auto g = compile(beside_constant);
  g(Key{.seed = 1});
  CHECK(same_bits(g(Key{.seed = 2}), beside_constant({.seed = 2})));

  const auto split = [](Key k) {
    return random::normal({2}, k.split(3)) + random::normal({2}, Key{.seed = 1}.split(3));
  };
  const auto h = compile(split);
  h(Key{.seed = 1});
  CHECK(same_bits(h(Key{.seed = 2}), split({.seed = 2})));
}

TEST_CASE("the numbers of a key argument cannot be read", "[compile][errors]") {
  using random::Key;
  const auto f =
      compile([](Key k) { return random::normal({2}, Key{.seed = k.seed + 1}); }, {.name = "draw"});
  CHECK_THROWS_WITH(f(Key{.seed = 1}),
                    "draw: a number of a key that is an argument is read, where a replay would see the key "
                    "of the recording; use key.split(i) to derive keys from it");
  const auto g = compile([](Key k) { return random::normal({2}, Key{.seed = k.seed, .stream = 4}); });
  CHECK_THROWS_AS(g(Key{.seed = 1}), TraceError);
  const auto whole =
      compile([](Key k) { return random::normal({2}, Key{.seed = k.seed, .stream = k.stream}); });
  whole(Key{.seed = 1});
  CHECK(same_bits(whole(Key{.seed = 2}), random::normal({2}, Key{.seed = 2})));
}

TEST_CASE("reading tensors that are not arguments can be forbidden", "[compile][errors]") {
  const Tensor outside = tensor({1.0, 2.0});
  const Variable w(tensor({3.0, 4.0}));
  const auto f = compile([&](const Tensor& x) { return x * w + outside; },
                         {.name = "step", .captures = Captures::forbid});
  CHECK_THROWS_WITH(
      f(tensor({1.0, 1.0})),
      "step: add reads f32[2], which is not an argument and would become a constant; pass it as an argument, "
      "make it a variable, or compile with captures; it comes after #0 read variable, #1 mul");
  const auto g = compile(
      [&](const Tensor& x) {
        return x * w + 2.0 + tensor({1.0, 2.0}) + zeros({2});
      },
      {.captures = Captures::forbid});
  for (int i = 0; i < 2; ++i)
    CHECK(g(tensor({1.0, 1.0})).to_vector() == std::vector<double>{6, 8});
}

}   // namespace sound_test
