// When two calls of a compiled function use the same program: if the types of arguments and result, the
// values of numbers, and the identities of tensors and keys agree. Each case also calls the function itself,
// with the arguments in several orders, since the first call decides what is recorded.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include "compile/unchanged.h"
#include "tapedeck/compile.h"
#include "tapedeck/tapedeck.h"

using namespace tapedeck;
using random::Key;
using test::difference;

namespace {

std::vector<Tensor> list(const Tensor& x) { return {x}; }
std::vector<Tensor> list(const std::vector<Tensor>& x) { return x; }
template <class... T> std::vector<Tensor> list(const std::tuple<T...>& x) {
  std::vector<Tensor> all;
  const auto add = [&](const auto& e) {
    const std::vector<Tensor> some = list(e);
    all.insert(all.end(), some.begin(), some.end());
  };
  std::apply([&](const auto&... e) { (add(e), ...); }, x);
  return all;
}
template <class A, class B> std::vector<Tensor> list(const std::pair<A, B>& x) {
  return list(std::tuple<A, B>(x));
}

/// "" if the compiled function gives for these arguments what f gives, twice.
template <class F, class R, class... X> std::string compare(const F& f, const R& recorded, const X&... x) {
  for (int call = 0; call < 2; ++call) {
    const auto wanted = f(x...);
    const auto actual = recorded(x...);
    static_assert(std::is_same_v<decltype(wanted), decltype(actual)>);
    if (const std::string d = difference(list(actual), list(wanted)); !d.empty())
      return "call " + std::to_string(call) + ": " + d;
  }
  return "";
}

enum class Small : std::uint8_t { a, b };
enum class Large : std::int64_t { a, b };
enum Plain { plain_a, plain_b };

Tensor normal(Key key) { return random::normal({3}, key); }
Tensor uniform(Key key) { return random::uniform({3}, key); }

}   // namespace

TEST_CASE("numbers of different types make different programs", "[recorded][signature]") {
  const auto f = [](const Tensor& x, auto n) { return x + n; };
  const Tensor i = tensor({1, 2}), d = tensor({1.0, 2.0});
  for (const int order : {0, 1}) {
    const auto recorded = compile(f);
    const auto calls = [&](const Tensor& x) {
      const auto all = [&](auto... n) {
        for (const std::string& fault : {compare(f, recorded, x, n)...})
          CHECK(fault == "");
      };
      if (order == 0)
        all(0, 0.0F, 0.0, false, std::int64_t{0}, std::int8_t{0}, std::uint32_t{0});
      else
        all(0.0, std::uint32_t{0}, std::int64_t{0}, 0.0F, 0, std::int8_t{0}, false);
    };
    calls(i);
    calls(d);
  }
}

TEST_CASE("enumerators and numbers of the same bits make different programs", "[recorded][signature]") {
  const auto f = [](const Tensor& x, auto e) {
    using E = decltype(e);
    const double kind = std::is_same_v<E, Small>          ? 1
                        : std::is_same_v<E, Large>        ? 2
                        : std::is_same_v<E, Plain>        ? 3
                        : std::is_same_v<E, std::int64_t> ? 4
                        : std::is_same_v<E, bool>         ? 5
                                                          : 6;
    return x * (10 * kind + static_cast<double>(e));
  };
  const Tensor x = tensor({1.0, 2.0});
  const auto recorded = compile(f, {.max_programs = 100});
  for (int again = 0; again < 2; ++again) {
    CHECK(compare(f, recorded, x, Small::a) == "");
    CHECK(compare(f, recorded, x, std::uint8_t{0}) == "");
    CHECK(compare(f, recorded, x, false) == "");
    CHECK(compare(f, recorded, x, Large::a) == "");
    CHECK(compare(f, recorded, x, std::int64_t{0}) == "");
    CHECK(compare(f, recorded, x, plain_a) == "");
    CHECK(compare(f, recorded, x, 0) == "");
    CHECK(compare(f, recorded, x, Small::b) == "");
    CHECK(compare(f, recorded, x, Large::b) == "");
    CHECK(compare(f, recorded, x, plain_b) == "");
  }
}

TEST_CASE("signatures compare numbers by their bits, NaN included", "[recorded][signature]") {
  const auto f = [](const Tensor& x, auto n) { return x / n; };
  const Tensor x = tensor({1.0, -2.0, 0.0});
  const auto recorded = compile(f, {.max_programs = 100});
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (int again = 0; again < 2; ++again) {
    CHECK(compare(f, recorded, x, 0.0) == "");
    CHECK(compare(f, recorded, x, -0.0) == "");
    CHECK(compare(f, recorded, x, nan) == "");
    CHECK(compare(f, recorded, x, -nan) == "");
    CHECK(compare(f, recorded, x, 0.0F) == "");
    CHECK(compare(f, recorded, x, -0.0F) == "");
    CHECK(compare(f, recorded, x, std::numeric_limits<double>::infinity()) == "");
  }
  const auto counted = recorded.programs().size();
  recorded(x, nan);   // NaN is a number that was there before
  CHECK(recorded.programs().size() == counted);
}

TEST_CASE("each structure of arguments has its own program", "[recorded][signature]") {
  struct Telling {
    Tensor operator()(const Tensor& x) const { return x * 2; }
    Tensor operator()(const std::tuple<Tensor>& x) const { return std::get<0>(x) * 3; }
    Tensor operator()(const Tensor& x, const Tensor& y) const { return x - y; }
    Tensor operator()(const std::pair<Tensor, Tensor>& x) const { return x.first + x.second; }
    Tensor operator()(const std::tuple<Tensor, Tensor>& x) const { return std::get<0>(x) * std::get<1>(x); }
    Tensor operator()(const std::vector<Tensor>& x) const { return x.empty() ? tensor(7.0) : x[0] * 5; }
    Tensor operator()(const std::array<Tensor, 2>& x) const { return x[0] / x[1]; }
    Tensor operator()(const std::vector<std::vector<Tensor>>& x) const {
      Tensor sum = tensor(0.0);
      for (const auto& row : x)
        for (const Tensor& e : row)
          sum = sum * 10 + e * static_cast<double>(row.size());
      return sum;
    }
  };
  const Telling f;
  const Tensor a = tensor({1.0, 2.0}), b = tensor({3.0, 5.0}), c = tensor({7.0, 11.0});
  using Rows = std::vector<std::vector<Tensor>>;
  for (const bool forwards : {true, false}) {
    const auto recorded = compile(f, {.max_programs = 100});
    for (int i = 0; i < 12; ++i)
      switch (forwards ? i : 11 - i) {
        case 0:
          CHECK(compare(f, recorded, a) == "");
          break;
        case 1:
          CHECK(compare(f, recorded, std::tuple(a)) == "");
          break;
        case 2:
          CHECK(compare(f, recorded, a, b) == "");
          break;
        case 3:
          CHECK(compare(f, recorded, std::pair(a, b)) == "");
          break;
        case 4:
          CHECK(compare(f, recorded, std::tuple(a, b)) == "");
          break;
        case 5:
          CHECK(compare(f, recorded, std::vector{a}) == "");
          break;
        case 6:
          CHECK(compare(f, recorded, std::vector{a, b}) == "");
          break;
        case 7:
          CHECK(compare(f, recorded, std::array{a, b}) == "");
          break;
        case 8:
          CHECK(compare(f, recorded, Rows{{a}, {b, c}}) == "");
          break;
        case 9:
          CHECK(compare(f, recorded, Rows{{a, b}, {c}}) == "");
          break;
        case 10:
          CHECK(compare(f, recorded, Rows{{a, b, c}, {}}) == "");
          break;
        default:
          CHECK(compare(f, recorded, std::vector<Tensor>()) == "");
      }
  }
}

TEST_CASE("the same numbers in different positions make different programs", "[recorded][signature]") {
  using Numbers = std::vector<std::vector<double>>;
  const auto f = [](const Tensor& x, const Numbers& n) {
    Tensor y = x;
    for (const auto& row : n) {
      y = y * 2;
      for (const double e : row)
        y = y + e;
    }
    return y;
  };
  const auto g = [](const Tensor& x, std::pair<int, double> a, std::tuple<double, int> b) {
    return x * a.first + a.second * std::get<0>(b) - std::get<1>(b);
  };
  const Tensor x = tensor({1.0, 2.0});
  const auto recorded = compile(f, {.max_programs = 100});
  const auto other = compile(g, {.max_programs = 100});
  for (int again = 0; again < 2; ++again) {
    CHECK(compare(f, recorded, x, Numbers{{1, 2}, {3}}) == "");
    CHECK(compare(f, recorded, x, Numbers{{1}, {2, 3}}) == "");
    CHECK(compare(f, recorded, x, Numbers{{}, {1, 2, 3}}) == "");
    CHECK(compare(f, recorded, x, Numbers{{1, 2, 3}, {}}) == "");
    CHECK(compare(f, recorded, x, Numbers{}) == "");
    CHECK(compare(g, other, x, std::pair(1, 2.0), std::tuple(3.0, 4)) == "");
    CHECK(compare(g, other, x, std::pair(2, 1.0), std::tuple(3.0, 4)) == "");
    CHECK(compare(g, other, x, std::pair(1, 2.0), std::tuple(4.0, 3)) == "");
  }
}

TEST_CASE("each type of the result has its own program", "[recorded][signature]") {
  struct Telling {
    Tensor operator()(const Tensor& x, int) const { return x * 2; }
    std::vector<Tensor> operator()(const Tensor& x, unsigned) const { return {x * 3, x}; }
    std::pair<Tensor, Tensor> operator()(const Tensor& x, long) const { return {x * 4, x}; }
    std::tuple<Tensor, std::vector<Tensor>> operator()(const Tensor& x, unsigned long) const {
      return {x * 5, {x}};
    }
  };
  const Telling f;
  const Tensor x = tensor({1.0, 2.0});
  for (const bool forwards : {true, false}) {
    const auto recorded = compile(f, {.max_programs = 100});
    for (int again = 0; again < 2; ++again)
      for (int i = 0; i < 4; ++i) {
        const int which = forwards ? i : 3 - i;
        if (which == 0) CHECK(compare(f, recorded, x, 1) == "");
        if (which == 1) CHECK(compare(f, recorded, x, 1U) == "");
        if (which == 2) CHECK(compare(f, recorded, x, 1L) == "");
        if (which == 3) CHECK(compare(f, recorded, x, 1UL) == "");
      }
  }
}

TEST_CASE("each pattern of identical tensors has its own program", "[recorded][signature]") {
  const auto f = [](const Tensor& a, const Tensor& b, const std::vector<Tensor>& rest) {
    GradientTape tape({.persistent = true});
    tape.watch(a);   // whose gradient has all terms where one tensor is several arguments
    Tensor y = a * a * b;
    for (const Tensor& t : rest)
      y = y + t * t * a;
    const Gradient g = tape.gradient(sum(y), a), h = tape.gradient(sum(y), b);
    return std::vector<Tensor>{y, g.dense(), h.defined() ? h.dense() : Tensor()};
  };
  const Tensor x[3] = {tensor({1.0, 2.0}), tensor({3.0, -4.0}), tensor({0.5, 6.0})};
  const auto recorded = compile(f, {.max_programs = 1000});
  for (int again = 0; again < 2; ++again)
    for (int way = 0; way < 81; ++way) {
      const Tensor &a = x[way % 3], &b = x[way / 3 % 3], &c = x[way / 9 % 3], &d = x[way / 27];
      INFO(way);
      CHECK(compare(f, recorded, a, b, std::vector{c, d}) == "");
    }
  CHECK(recorded.programs().size() == 14);   // the partitions of four into up to three
}

TEST_CASE("tensors that share memory under different handles are different tensors",
          "[recorded][signature]") {
  const auto f = [](const Tensor& a, const Tensor& b) {
    GradientTape tape;
    tape.watch(a);
    return tape.gradient(sum(a * b), a).dense();
  };
  const Tensor x = arange(100) * 0.5, whole = slice(x, {0}, {100}), part = slice(x, {3}, {50}),
               same = slice(x, {3}, {50}), copy = x;
  const auto recorded = compile(f);
  for (int again = 0; again < 2; ++again) {
    CHECK(compare(f, recorded, x, copy) == "");
    CHECK(compare(f, recorded, x, whole) == "");
    CHECK(compare(f, recorded, part, same) == "");
    CHECK(compare(f, recorded, part, part) == "");
    CHECK(compare(f, recorded, x, x * 2) == "");
  }
}

TEST_CASE("an argument that f also captures is an argument in each call", "[recorded][signature]") {
  const Tensor captured = arange(20) * 0.25;
  const auto f = [&](const Tensor& x) { return x * 2 - captured; };
  for (const bool captured_first : {true, false}) {
    const auto recorded = compile(f);
    const Tensor other = captured + 1;
    for (int again = 0; again < 2; ++again) {
      CHECK(compare(f, recorded, captured_first ? captured : other) == "");
      CHECK(compare(f, recorded, captured_first ? other : captured) == "");
    }
  }
}

TEST_CASE("each pattern of identical keys has its own program", "[recorded][signature][keys]") {
  const auto f = [](Key a, Key b, Key c) { return normal(a) * 100 + normal(b) * 10 - normal(c); };
  const Key keys[3] = {{.seed = 1}, {.seed = 2}, {.seed = 1, .stream = 1}};
  for (int first = 0; first < 27; ++first) {   // what is recorded first
    const auto recorded = compile(f, {.max_programs = 100});
    for (int next = 0; next < 27; ++next) {
      const int way = (first + next) % 27;
      INFO("first " << first << ", now " << way);
      CHECK(compare(f, recorded, keys[way % 3], keys[way / 3 % 3], keys[way / 9]) == "");
    }
  }
}

TEST_CASE("a constant key that equals an argument stays constant", "[recorded][signature][keys]") {
  const Key outer{.seed = 7};
  const auto f = [&](Key k) {
    return std::vector<Tensor>{normal(k) + normal(Key{.seed = 1}), normal(Key{.seed = 0}) - normal(k),
                               normal(outer) + uniform(k), normal(outer.split(1)) + normal(k.split(1)),
                               normal(Key{}.split(2)) + normal(k.split(2))};
  };
  for (const Key first :
       {Key{.seed = 1}, Key{.seed = 7}, Key{}, Key{.seed = 3}, outer.split(1), Key{}.split(2)}) {
    const auto recorded = compile(f);
    CHECK(compare(f, recorded, first) == "");
    for (std::uint64_t seed = 0; seed < 9; ++seed)
      CHECK(compare(f, recorded, Key{.seed = seed}) == "");
    CHECK(compare(f, recorded, outer.split(1)) == "");
    CHECK(compare(f, recorded, Key{}.split(2)) == "");
    CHECK(recorded.programs().size() == 1);
  }
}

TEST_CASE("keys split inside and outside", "[recorded][signature][keys]") {
  const auto f = [](Key a, Key b) {
    return std::vector<Tensor>{normal(a.split(3)) - normal(b), uniform(a.split(3).split(4)),
                               normal(b.split(4)), normal(a)};
  };
  const Key k{.seed = 5}, l{.seed = 6, .stream = 9};
  const std::vector<std::pair<Key, Key>> calls = {{k, k.split(3)}, {k, l},          {l, k},
                                                  {k, k},          {k.split(3), k}, {l, k.split(3)},
                                                  {l, l.split(3)}, {k, k.split(2)}};
  for (std::size_t first = 0; first < calls.size(); ++first) {
    const auto recorded = compile(f);
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const auto& [a, b] = calls[(first + i) % calls.size()];
      INFO("first " << first << ", now " << (first + i) % calls.size());
      CHECK(compare(f, recorded, a, b) == "");
    }
  }
}

TEST_CASE("keys split by the argument's own numbers", "[recorded][signature][keys]") {
  const auto f = [](Key k) {
    std::vector<Tensor> y;
    for (std::uint64_t i = 0; i < 4; ++i)
      y.push_back(normal(k.split(i)) + uniform(k.split(i).split(3 - i)));
    y.push_back(random::permutation(9, k.split(0)));
    y.push_back(dropout(ones({20}), 0.5, k.split(1)));
    return y;
  };
  const auto recorded = compile(f);
  Key k{.seed = 4};
  for (int i = 0; i < 6; ++i) {
    CHECK(compare(f, recorded, k) == "");
    k = k.split(static_cast<std::uint64_t>(i));
  }
  CHECK(recorded.programs().size() == 1);
}

TEST_CASE("a key that is kept outside is a constant", "[recorded][signature][keys]") {
  struct State {
    Key key{.seed = 11};
  } state;
  const auto f = [&](Key k) { return normal(state.key) - normal(k); };
  for (const Key first : {state.key, Key{.seed = 1}}) {
    const auto recorded = compile(f);
    CHECK(compare(f, recorded, first) == "");
    CHECK(compare(f, recorded, Key{.seed = 12}) == "");
    CHECK(compare(f, recorded, state.key) == "");
  }
}

TEST_CASE("a key that f keeps is the key of the current call", "[recorded][signature][keys]") {
  // What f stores during the recording is a key all the same: a later function may use it.
  Key kept;
  const auto f = [&](Key k) {
    kept = k.split(1);
    return normal(kept);
  };
  const auto recorded = compile(f);
  for (std::uint64_t seed = 1; seed < 5; ++seed)
    CHECK(difference(recorded(Key{.seed = seed}), normal(Key{.seed = seed}.split(1))) == "");
  const Key used = kept;
  const auto g = [&](Key k) { return normal(used) * normal(k); };   // in which it is a constant
  const auto other = compile(g);
  for (const Key k : {used, Key{.seed = 3}, Key{.seed = 4}, used})
    CHECK(compare(g, other, k) == "");
}

TEST_CASE("keys in lists and tuples", "[recorded][signature][keys]") {
  using Keys = std::vector<Key>;
  const auto f = [](const Keys& k, const std::pair<Tensor, Key>& p, const std::tuple<Key, int>& t) {
    Tensor y = p.first;
    for (const Key& key : k)
      y = y * 2 + normal(key);
    return y - normal(p.second) * std::get<1>(t) + uniform(std::get<0>(t));
  };
  const Key a{.seed = 1}, b{.seed = 2}, c{.seed = 3};
  const Tensor x = tensor({1.0, 2.0, 3.0});
  const auto recorded = compile(f, {.max_programs = 100});
  for (int again = 0; again < 2; ++again) {
    CHECK(compare(f, recorded, Keys{a, a}, std::pair(x, a), std::tuple(a, 1)) == "");
    CHECK(compare(f, recorded, Keys{a, b}, std::pair(x, a), std::tuple(a, 1)) == "");
    CHECK(compare(f, recorded, Keys{b, a}, std::pair(x, c), std::tuple(a, 1)) == "");
    CHECK(compare(f, recorded, Keys{b, b}, std::pair(x, b), std::tuple(c, 1)) == "");
    CHECK(compare(f, recorded, Keys{c}, std::pair(x, b), std::tuple(c, 1)) == "");
    CHECK(compare(f, recorded, Keys{a, b, c}, std::pair(x, b), std::tuple(c, 2)) == "");
    CHECK(compare(f, recorded, Keys{}, std::pair(x, c), std::tuple(c, 2)) == "");
  }
}

TEST_CASE("variables as arguments", "[recorded][signature]") {
  const auto f = [](const Variable& v, const Variable& w, const Tensor& x) {
    return v.value() * x - w.value() * 2;
  };
  const Variable a(tensor({1.0, 2.0})), b(tensor({5.0, -3.0}));
  const Tensor x = tensor({2.0, 3.0});
  const auto recorded = compile(f);
  for (int again = 0; again < 3; ++again) {
    CHECK(compare(f, recorded, a, b, x) == "");
    CHECK(compare(f, recorded, b, a, x) == "");
    CHECK(compare(f, recorded, a, a, x + again) == "");
    CHECK(compare(f, recorded, b, a, a.value()) == "");
    a.assign(a.value() * 1.5);
  }
}
