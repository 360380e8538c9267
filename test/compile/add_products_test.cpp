// Sums of products of matrices in compiled functions: each product is added where the sum is.
#include <catch2/catch.hpp>

#include "closeness.h"
#include "tapedeck/compile.h"
#include "tapedeck/tapedeck.h"

namespace add_products_test {

using namespace tapedeck;

namespace {

/// The sum of x_t w over some steps, each times the one before, and so w's gradient as a sum of products.
template <class Result> auto gradient_of_steps(Result result) {
  return [=](const Tensor& x, const Tensor& w) {
    GradientTape tape;
    tape.watch(w);
    Tensor h = x;
    for (int i = 0; i < 5; ++i)
      h = tanh(matmul(h, w));
    return result(tape.gradient(sum(square(h)), w).dense(), h);
  };
}
std::size_t count_of(const std::string& text, std::string_view word) {
  std::size_t n = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1))
    ++n;
  return n;
}

}   // namespace

TEST_CASE("products in a sum are added in place, with the same bits", "[recorded]") {
  for (const DType dtype : {DType::f32, DType::f64})
    for (const std::int64_t batch : {2, 7, 32, 64})
      for (const std::int64_t width : {2, 5, 16, 40, 130}) {
        const auto step = gradient_of_steps([](const Tensor& g, const Tensor& h) {
          return std::vector{g, h};
        });
        const auto replayed = compile(step);
        for (std::uint64_t i = 0; i < 3; ++i) {
          const Tensor x = random::normal({batch, width}, {.seed = 1, .stream = i}, dtype),
                       w = random::normal({width, width}, {.seed = 2, .stream = i}, dtype) * 0.3;
          const auto wanted = step(x, w), got = replayed(x, w);
          INFO(name_of(dtype) << " " << batch << " " << width << " " << i);
          CHECK(same_bits(got[0], wanted[0]));
          CHECK(same_bits(got[1], wanted[1]));
        }
        CHECK(count_of(replayed.summary(), "matmul+add") == 4);
        CHECK(count_of(replayed.summary(), "add_n") == 0);
      }
}

TEST_CASE("products of many terms, and of vectors, are added separately", "[recorded]") {
  for (const auto& [batch, width] : std::vector<std::pair<std::int64_t, std::int64_t>>{{65, 4}, {4, 1}}) {
    const auto step = gradient_of_steps([](const Tensor& g, const Tensor&) { return g; });
    const auto replayed = compile(step);
    const Tensor x = random::normal({batch, width}, {.seed = 1}),
                 w = random::normal({width, width}, {.seed = 2});
    replayed(x, w);
    CHECK(same_bits(replayed(x, w), step(x, w)));
    CHECK(count_of(replayed.summary(), "matmul+add") == 0);
  }
}

TEST_CASE("a product with other readers is added separately", "[recorded]") {
  const auto f = [](const Tensor& a, const Tensor& b) {
    const Tensor first = matmul(a, b), second = matmul(b, a), third = matmul(a, a);
    return std::vector{add_n({first, second, third}), tanh(second)};
  };
  const auto g = [](const Tensor& a, const Tensor& b) {
    const Tensor first = matmul(a, b), third = matmul(b, first), second = matmul(b, a);
    return std::vector{add_n({first, second, third}), add_n({first, matmul(b, b)}), add_n({a, matmul(b, b)})};
  };
  const auto square_of_sum = [](const Tensor& a, const Tensor& b) {   // whose factor is what it is added to
    const Tensor first = matmul(a, b);
    return tanh(add_n({first, matmul(first, a)}));
  };
  const auto read_later = [](const Tensor& a, const Tensor& b) {
    const Tensor first = matmul(a, b), sum = add_n({first, matmul(b, a)});
    return tanh(matmul(sum, a)) + matmul(first, b);
  };
  const Tensor a = random::normal({8, 8}, {.seed = 1}), b = random::normal({8, 8}, {.seed = 2});
  const auto check = [&](const auto& h, std::size_t added) {
    const auto replayed = compile(h);
    for (int i = 0; i < 2; ++i)
      for (const auto& [x, y] : {std::pair(a, b), std::pair(b, a)}) {
        const auto got = replayed(x, y), wanted = h(x, y);
        if constexpr (std::is_same_v<decltype(got), const Tensor>)
          CHECK(same_bits(got, wanted));
        else
          CHECK((same_bits(got[0], wanted[0]) && same_bits(got[1], wanted[1])));
      }
    CHECK(count_of(replayed.summary(), "matmul+add") == added);
  };
  check(f, 0);
  check(g, 1);
  check(square_of_sum, 1);
  check(read_later, 1);
}

// An exact sum of products that is below all numbers rounds to -0, which BLAS adds to the +0 in its result.
TEST_CASE("a sum of underflowing products has the same sign of zero as eager", "[recorded]") {
  const auto f = [](const Tensor& x, const Tensor& a, const Tensor& b) {
    return std::vector{add_n({x, matmul(a, b)}), add_n({matmul(a, a), matmul(a, b)}),
                       add_n({-matmul(a, b), matmul(a, b)})};
  };
  for (const DType dtype : {DType::f32, DType::f64})
    for (const std::int64_t n : {2, 4, 8, 9, 33, 64}) {
      const auto replayed = compile(f);
      const Tensor one = ones({n, n}, dtype), tiny = one * (dtype == DType::f32 ? 1e-30 : 1e-200);
      replayed(one, one, one);
      for (const Tensor& x : {one, -0.0 * one, 0.0 * one})
        for (const Tensor& a : {tiny, -tiny, -0.0 * one}) {
          const auto wanted = f(x, a, tiny), got = replayed(x, a, tiny);
          for (std::size_t i = 0; i < wanted.size(); ++i) {
            CAPTURE(name_of(dtype), n, i);
            CHECK(same_bits(got[i], wanted[i]));
          }
        }
    }
}

}   // namespace add_products_test
