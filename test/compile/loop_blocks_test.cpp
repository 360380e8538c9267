// How loops run their steps. In blocks if they have conditions: as many steps as of an eager run, with the
// same bits. Values of all sizes, the memory that steps return, and carries without cotangents.
#include <malloc.h>

#include <array>
#include <catch2/catch.hpp>
#include <limits>

#include "compile/unchanged.h"
#include "tapedeck/compile.h"
#include "tapedeck/control.h"
#include "tapedeck/memory.h"
#include "tapedeck/tapedeck.h"

namespace loop_blocks_test {

using namespace tapedeck;
using test::difference;

namespace {

using Many = std::vector<Tensor>;
constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();

Tensor count(std::int64_t n) { return tensor(n, DType::i64); }

// Compares replays with eager runs. Returns whether steps run in blocks.
template <class F> bool has_blocks(const F& f, const std::vector<Many>& calls) {
  const auto recorded = compile([&f](const Many& x) { return f(x); });
  (void)recorded(calls[0]);
  for (const Many& x : calls) {
    const Many wanted = f(x), actual = recorded(x);
    REQUIRE(wanted.size() == actual.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      CAPTURE(i, x[0].item());
      CHECK(difference(actual[i], wanted[i]) == "");
    }
  }
  return recorded.summary().find("in blocks of") != std::string::npos;
}

// For numbers of steps around those of blocks.
std::vector<Many> calls_with(const Tensor& x) {
  std::vector<Many> all;
  for (const std::int64_t n :
       {0, 1, 2, 3, 7, 16, 20, 26, 27, 31, 32, 33, 50, 52, 53, 54, 63, 64, 65, 66, 95, 96, 97, 98, 200, 1000})
    all.push_back({count(n), x});
  return all;
}

}   // namespace

TEST_CASE("blocks of steps end where the condition does", "[recorded][loops][blocks]") {
  for (const DType dtype : {DType::f32, DType::f64})
    for (const std::int64_t most : {kUnlimited, std::int64_t{0}, std::int64_t{1}, std::int64_t{32},
                                    std::int64_t{40}, std::int64_t{64}, std::int64_t{70}}) {
      CAPTURE(name_of(dtype), most);
      CHECK(has_blocks(
                [most](const Many& x) {
                  const auto [i, a, b] =
                      while_loop([n = x[0]](const Tensor& k, const Tensor&, const Tensor&) { return k < n; },
                                 [c = x[1]](const Tensor& k, const Tensor& p, const Tensor& q) {
                                   const Tensor next = q - 0.01 * p * c;
                                   return std::array{k + 1, p + 0.1 * next, next};
                                 },
                                 {count(0), x[1], 0.5 * x[1]}, {.maximum_iterations = most});
                  return Many{i, a, b};
                },
                calls_with(tensor({1.0, 0.5, -2.0}, dtype))) == (most > 1));
    }
}

TEST_CASE("conditions of reals, and of several parts", "[recorded][loops][blocks]") {
  CHECK(has_blocks(
      [](const Many& x) {   // grows beyond all numbers after the last step
        const auto [i, a] =
            while_loop([&](const Tensor& k, const Tensor& p) { return logical_and(k < x[0], p < 1e300); },
                       [](const Tensor& k, const Tensor& p) {
                         return std::array{k + 1, p * p};
                       },
                       {count(0), x[1]});
        return Many{i, a};
      },
      calls_with(tensor(1.0 + 1e-12, DType::f64))));
  CHECK(has_blocks(
      [](const Many& x) {
        return Many{while_loop([n = x[0]](const Tensor& k, const Tensor&) { return logical_not(n <= k); },
                               [](const Tensor& k, const Tensor& p) {
                                 return std::array{k + 1, p / 3.0};
                               },
                               {count(0), x[1]})[1]};
      },
      calls_with(tensor(1.0, DType::f32))));
  CHECK(has_blocks(
      [](const Many& x) {   // counts down
        return Many{while_loop([](const Tensor& k, const Tensor&) { return k > 0; },
                               [](const Tensor& k, const Tensor& p) {
                                 return std::array{k - 1, p * 1.5};
                               },
                               {x[0], x[1]})[1]};
      },
      calls_with(tensor(1.0, DType::f32))));
}

TEST_CASE("a step that may throw or divide does not run after the last one", "[recorded][loops][blocks]") {
  const Tensor list = random::normal({200}, {.seed = 1});
  std::vector<Many> calls;
  for (const std::int64_t n : {0, 1, 31, 32, 33, 64, 100, 199, 200})
    calls.push_back({count(n), list});
  CHECK_FALSE(has_blocks(
      [&list](const Many& x) {
        return Many{while_loop([n = x[0]](const Tensor& k, const Tensor&) { return k < n; },
                               [all = x[1]](const Tensor& k, const Tensor& s) {
                                 return std::array{k + 1, s + gather(all, k)};
                               },
                               {count(0), zeros({}, list.dtype())})[1]};
      },
      calls));
  CHECK_FALSE(has_blocks(
      [](const Many& x) {
        return Many{while_loop([](const Tensor& k, const Tensor&) { return k > 0; },
                               [](const Tensor& k, const Tensor& s) {
                                 return std::array{k - 1, s + floor_div(count(1000), k)};
                               },
                               {x[0], count(0)})[1]};
      },
      calls));
}

TEST_CASE("a condition reads what a step assigns", "[recorded][loops][blocks]") {
  Variable v(tensor(0.0, DType::f64));
  const auto f = [&v](const Many& x) {
    v.assign(tensor(0.0, DType::f64));
    const Tensor k = while_loop([&v, n = x[0]](const Tensor&) { return v.value() < astype(n, DType::f64); },
                                [&v](const Tensor& i) {
                                  v.assign_add(tensor(1.0, DType::f64));
                                  return i + 2;
                                },
                                {count(0)});
    return Many{k, v.value()};
  };
  CHECK(has_blocks(f, calls_with(tensor(1.0))));
}

TEST_CASE("gradients of loops whose steps run in blocks", "[recorded][loops][blocks]") {
  const auto f = [](const Many& x) {
    GradientTape tape;
    tape.watch(x[1]);
    const Tensor y = while_loop([n = x[0]](const Tensor& k, const Tensor&) { return k < n; },
                                [c = x[1]](const Tensor& k, const Tensor& p) {
                                  return std::array{k + 1, p + 0.125 * c * p};
                                },
                                {count(0), x[1]})[1];
    return Many{y, tape.gradient(y, x[1]).dense()};
  };
  const auto recorded = compile([&f](const Many& x) { return f(x); });
  for (const Many& x : calls_with(tensor(0.25, DType::f64))) {
    if (x[0].item() > 100) continue;
    const Many wanted = f(x), actual = recorded(x);
    CHECK(difference(actual[0], wanted[0]) == "");
    CHECK(actual[1].item() == Approx(wanted[1].item()).epsilon(1e-12));
  }
}

// Values of more than 64 bytes are read and written where they are, but for results whose size is no multiple
// of 64 bytes; smaller ones are copied.
TEST_CASE("carries, entries and outputs of all sizes, which are passed on in all ways", "[recorded][loops]") {
  const auto run = [](const Many& x, bool reverse) {   // x: carries, a captured tensor, entries
    return scan(
        [w = x[2]](std::span<const Tensor> in) {
          const Tensor &a = in[0], &b = in[1], &e = in[2];
          const Tensor next = a + e * w, both = next + b;
          return Many{b, next, both, next, both, e, w, b + both};
        },
        {x[0], x[1]}, {x[3]}, {.reverse = reverse});
  };
  for (const DType dtype : {DType::f32, DType::f64, DType::i64})
    for (const std::int64_t n : {1, 2, 3, 4, 5, 8, 9, 16, 17, 33, 100})
      for (const bool reverse : {false, true}) {
        const auto recorded = compile([&](const Many& x) { return run(x, reverse); });
        for (const std::int64_t steps : {0, 1, 2, 31, 40})
          for (const double factor : {1.0, -3.0, 5.0}) {
            CAPTURE(name_of(dtype), n, reverse, steps, factor);
            const auto numbers = [&](const Shape& shape) {
              return astype(factor * reshape(arange(shape.size(), DType::f64), shape), dtype);
            };
            const Many x = {numbers({n}), 2 * numbers({n}), numbers({n}) + 1, numbers({steps, n})};
            const Many wanted = run(x, reverse), actual = recorded(x);
            REQUIRE(wanted.size() == actual.size());
            for (std::size_t i = 0; i < wanted.size(); ++i) {
              CAPTURE(i);
              CHECK(difference(actual[i], wanted[i]) == "");
            }
          }
      }
}

// Memory that is freed has no kernel's numbers any more.
struct WithoutReuse {
  WithoutReuse() {
    set_buffer_cache_limit(0);
    mallopt(M_PERTURB, 0xa5);
  }
  ~WithoutReuse() {
    mallopt(M_PERTURB, 0);
    set_buffer_cache_limit(std::int64_t{1} << 30);   // the default
  }
};

TEST_CASE("memory that kernels return, and that of old values of variables, is read before it is freed",
          "[recorded][loops][branches]") {
  const WithoutReuse here;
  const Tensor a = reshape(cos(arange(40, DType::f64)), {40}),
               xs = reshape(sin(arange(120, DType::f64)), {3, 40});
  const auto check = [](const auto& f, const Many& x) {
    const auto recorded = compile([f](const Many& in) { return f(in); });
    const Many wanted = f(x);
    for (int call = 0; call < 3; ++call) {
      const Many actual = recorded(x);
      REQUIRE(actual.size() == wanted.size());
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        CAPTURE(call, i);
        CHECK(difference(actual[i], wanted[i]) == "");
      }
    }
  };
  check(
      [](const Many& x) {   // outputs of a step, and a part of one
        return scan(
            [](std::span<const Tensor> in) {
              const Tensor sorted = sort(in[0] * in[1]);
              return Many{in[0] + in[1], sorted, argsort(in[1]), slice(sorted, {1}, {20})};
            },
            {x[0]}, {x[1]});
      },
      {a, xs});
  check(
      [](const Many& x) {   // a carry
        return Many{fori_loop(0, 5, [](std::int64_t, const Tensor& t) { return sort(sin(3 * t)); }, {x[0]})};
      },
      {a});
  check(
      [](const Many& x) {   // a branch
        return cond(
            sum(x[0]) > -100.0, {x[0]},
            [](const Tensor& t) {
              return Many{sort(t), t};
            },
            [](const Tensor& t) {
              return Many{t, t};
            });
      },
      {a});
  // A value that an optimizer replaces in the step.
  const auto train = [&](const Variable& v, Adam& adam) {
    return [&](const Many& x) {
      return scan(
          [&](std::span<const Tensor> in) {
            const Tensor old = v.value();
            GradientTape tape;
            const Tensor loss = mean(square(in[1] * v));
            adam.apply_gradients({{tape.gradient(loss, v), v}});
            return Many{in[0] + loss, old};
          },
          {zeros({}, DType::f64)}, {x[0]});
    };
  };
  const Variable v(ones({40}, DType::f64)), w(ones({40}, DType::f64));
  Adam of_v, of_w;
  const auto eager = train(v, of_v), step = train(w, of_w);
  const auto recorded = compile([&](const Many& x) { return step(x); });
  for (int call = 0; call < 3; ++call) {
    const Many wanted = eager({xs}), actual = recorded(Many{xs});
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      CAPTURE(call, i);
      CHECK(difference(actual[i], wanted[i]) == "");
    }
  }
}

TEST_CASE("a carry that no result depends on has no cotangent, so that it may be infinite",
          "[recorded][loops]") {
  const auto gradients = [](const Many& x) {   // x: a carry, a captured tensor
    Many all;
    for (const bool counted : {false, true}) {
      GradientTape tape;
      tape.watch(x[0], x[1]);
      const auto step = [&](const Tensor& u, const Tensor& v) {   // v: minus infinity from the first step on
        return std::array{u * 2, v + log(u - x[0]) * x[1]};
      };
      Tensor y;
      if (counted)
        y = while_loop([](const Tensor& k, const Tensor&, const Tensor&) { return k < 3; },
                       [&](const Tensor& k, const Tensor& u, const Tensor& v) {
                         const auto [p, q] = step(u, v);
                         return std::array{k + 1, p, q};
                       },
                       {count(0), x[0], x[0]})[1];
      else
        y = fori_loop(0, 3, [&](std::int64_t, const Tensor& u, const Tensor& v) { return step(u, v); },
                      {x[0], x[0]})[0];
      const auto [dx, dw] = tape.gradient(y, x[0], x[1]);
      CHECK_FALSE(dw.defined());
      all.push_back(dx.dense());
    }
    return all;
  };
  const Many x = {tensor({1.0, 2.0}, DType::f64), tensor({3.0, 0.0}, DType::f64)};
  const auto recorded = compile([&](const Many& in) { return gradients(in); });
  for (const Many& actual : {gradients(x), recorded(x), recorded(x)})
    for (const Tensor& dx : actual)
      CHECK(difference(dx, full({2}, 8, DType::f64)) == "");
}

}   // namespace loop_blocks_test
