// Nodes of few elements, which a replay computes without kernels: the same bits as by kernels.
#include <catch2/catch.hpp>
#include <limits>

#include "closeness.h"
#include "compile/unchanged.h"
#include "tapedeck/compile.h"
#include "tapedeck/tapedeck.h"

using namespace tapedeck;
using test::difference;

namespace {

using Many = std::vector<Tensor>;

Tensor drawn(const Shape& shape, DType dtype, std::uint64_t seed) {
  const Tensor x = astype(random::normal(shape, {.seed = seed}), dtype);
  if (!is_floating(dtype)) return x;
  return where(x > 1.0, zeros(shape, dtype), where(x < -1.0, -zeros(shape, dtype), x));
}

// The function and what is compiled of it, for other numbers in each call.
template <class F> void check(const F& f, const std::vector<Shape>& shapes, DType dtype) {
  const auto compiled = compile([&f](const Many& x) { return f(x); });
  for (std::uint64_t call = 0; call < 3; ++call) {
    Many x;
    for (const Shape& s : shapes)
      x.push_back(drawn(s, dtype, 10 * call + x.size()));
    const Many wanted = f(x), actual = compiled(x);
    REQUIRE(wanted.size() == actual.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      CAPTURE(call, i, to_string(wanted[i].spec()));
      CHECK(difference(actual[i], wanted[i]) == "");
    }
  }
}
Many gradients(const Many& x, const std::function<Tensor(const Many&)>& f) {
  GradientTape tape;
  for (const Tensor& t : x)
    tape.watch(t);
  const Tensor y = f(x);
  Many all = {y};
  for (const Gradient& g : tape.gradient(sum(y * sin(y)), x))
    all.push_back(g.defined() ? g.dense() : Tensor());
  return all;
}

}   // namespace

TEST_CASE("small products have the bits of the kernel for large ones", "[recorded][replay][small]") {
  for (const DType dtype : {DType::f32, DType::f64})
    for (const std::int64_t m : {1, 2, 4, 6, 7, 8, 9})
      for (const std::int64_t n : {1, 3, 8, 9})
        for (const std::int64_t k : {1, 2, 6, 8, 9})
          for (const bool ta : {false, true})
            for (const bool tb : {false, true}) {
              CAPTURE(name_of(dtype), m, n, k, ta, tb);
              const Shape a = ta ? Shape{k, m} : Shape{m, k}, b = tb ? Shape{n, k} : Shape{k, n};
              check(
                  [ta, tb](const Many& x) {
                    const MatmulOptions t = {ta, tb};
                    const Tensor y = matmul(x[0], x[1], t);
                    return Many{y, add_n({x[2], matmul(x[3], x[1], t)}),
                                add_n({y, matmul(x[3], x[1], t), matmul(x[0], x[1], t)})};
                  },
                  {a, b, {m, n}, a}, dtype);
            }
}

TEST_CASE("small comparisons and logic have the results of kernels", "[recorded][replay][small]") {
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  for (const DType dtype : {DType::f32, DType::f64, DType::i64, DType::i32, DType::f16}) {
    std::vector<double> numbers = {-0.0, 0, 1, -1, 2, 7};
    if (is_floating(dtype)) numbers.insert(numbers.end(), {nan, inf, -inf});
    const auto all = [](const Many& x) {
      return Many{less(x[0], x[1]),          less_equal(x[0], x[1]), greater(x[0], x[1]),
                  greater_equal(x[0], x[1]), equal(x[0], x[1]),      not_equal(x[0], x[1])};
    };
    const auto each = [&](const Many& x) { return Many{all(x)[0]}; };
    const auto recorded = compile([&](const Many& x) { return all(x); });
    const auto alone = compile([&](const Many& x) { return each(x); });
    for (const double a : numbers)
      for (const double b : numbers)
        for (const std::int64_t n : {1, 3}) {
          CAPTURE(name_of(dtype), a, b, n);
          const Tensor one = tensor(a, dtype), many = n == 1 ? tensor(b, dtype) : full({n}, b, dtype);
          for (const Many& x : {Many{one, many}, Many{many, one}}) {
            const Many wanted = all(x), actual = recorded(x);
            for (std::size_t i = 0; i < wanted.size(); ++i)
              CHECK(difference(actual[i], wanted[i]) == "");
            CHECK(difference(alone(x)[0], wanted[0]) == "");
          }
        }
  }
  for (const std::int64_t n : {1, 2, 5, 256, 300}) {
    CAPTURE(n);
    check(
        [](const Many& x) {
          return Many{x[0] + x[1], x[1] + x[2], x[0] + x[2], x[1] + x[1]};
        },
        {{n}, {}, {n}}, DType::i64);
    check(
        [](const Many& x) {
          return Many{logical_and(x[0], x[1]), logical_or(x[1], x[0]), logical_not(x[0]), equal(x[0], x[1])};
        },
        {{n}, {}}, DType::boolean);
  }
}

TEST_CASE("small parts have the bits of kernels", "[recorded][replay][small]") {
  for (const DType dtype : {DType::f32, DType::f64, DType::i32, DType::boolean, DType::f16})
    for (const std::int64_t n : {1, 2, 5, 16, 40}) {
      CAPTURE(name_of(dtype), n);
      check(
          [](const Many& x) {
            const Tensor m = stack({x[0], x[1], x[0]}, 0);
            return Many{
                m,    stack({x[0], x[1]}, -1), concat({x[1], x[0], x[1]}, 0), transpose(m), reverse(m, {0}),
                m[1], slice(x[0], {0}, {1}),   concat({x[0], m[2]}, 0)};
          },
          {{n}, {n}}, dtype);
    }
}

TEST_CASE("gradients of small parts and passes have the bits of kernels", "[recorded][replay][small]") {
  for (const DType dtype : {DType::f32, DType::f64})
    for (const std::int64_t n : {1, 2, 3, 7, 8, 17, 64, 200, 257, 300}) {
      CAPTURE(name_of(dtype), n);
      check(
          [](const Many& x) {
            return gradients(x, [](const Many& v) {
              const Tensor a = v[0] * v[1], b = v[0] / (2 + v[1] * v[1]);
              return concat({a - v[2], exp(b) * v[0], stack({a, b}, 0)[1]}, 0);
            });
          },
          {{n}, {n}, {}}, dtype);
      check(
          [](const Many& x) {
            return gradients(x, [](const Many& v) {
              const Tensor first = v[0][0], last = v[0][-1];
              return stack({first * v[1][0], last - first, first, last / (1 + first * first)}, 0);
            });
          },
          {{n, 2}, {n}}, dtype);
    }
}

TEST_CASE("steps of small matrices have the bits of kernels", "[recorded][replay][small]") {
  const auto filter = [](const Many& v) {
    const Tensor &f = v[0], &h = v[1];
    Tensor x = v[2], p = v[3], total = sum(x);
    for (int i = 0; i < 3; ++i) {
      x = matmul(f, x);
      p = matmul(matmul(f, p), f, {.transpose_b = true});
      const Tensor s = matmul(matmul(h, p), h, {.transpose_b = true}) + 1.0, y = v[4] - matmul(h, x);
      const Tensor a = s[0][0], b = s[0][1], c = s[1][0], d = s[1][1], det = a * d - b * c + 10.0;
      const Tensor inverse = stack({stack({d, -b}, 0), stack({-c, a}, 0)}, 0) / det;
      const Tensor k = matmul(matmul(p, h, {.transpose_b = true}), inverse);
      x = x + matmul(k, y);
      p = p - matmul(matmul(k, h), p);
      total = total + sum(y * matmul(inverse, y)) + det;
    }
    return total;
  };
  for (const DType dtype : {DType::f32, DType::f64})
    check([&](const Many& x) { return gradients(x, filter); }, {{4, 4}, {2, 4}, {4, 1}, {4, 4}, {2, 1}},
          dtype);
}

TEST_CASE("groups read rows and columns of any width", "[recorded][replay][views]") {
  for (const DType dtype : {DType::f32, DType::f64})
    for (const std::int64_t width : {1, 2, 3, 5, 8, 16, 17, 33, 64, 700})
      for (const std::int64_t rows : {1, 2, 7, 500}) {
        CAPTURE(name_of(dtype), width, rows);
        check(
            [](const Many& x) {
              const Tensor y = exp(x[0] * x[1] + x[2]) * x[3];
              return Many{y, sum(y * y + x[1], 0), relu(y - x[3]) + x[1]};
            },
            {{rows, width}, {width}, {1, width}, {rows, 1}}, dtype);
        if (rows * width < 2000)
          check([](const Many& x) { return Many{exp(x[0] * x[1]) + x[2] * x[3] + x[1]}; },
                {{3, rows, width, 2}, {width, 2}, {rows, 1, 2}, {3, 1, width, 1}}, dtype);
      }
}
