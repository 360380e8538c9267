// Random numbers: published test vectors, ranges, moments and distributions with fixed keys, and independence
// of the number of threads.
#include <Random123/philox.h>
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>
#include <set>

#include "distances.h"

namespace random_test {

using namespace tapedeck;
using namespace tapedeck::test;
using random::Key;

namespace {

constexpr DType kFloating[] = {DType::f32, DType::f64};

double evenly(double v) { return v; }
double normally(double v) { return 0.5 * std::erfc(-v / std::sqrt(2.0)); }

double within_two(double v) { return (normally(v) - normally(-2)) / (normally(2) - normally(-2)); }

double correlation(const Tensor& x, const Tensor& y) {
  const std::vector<double> a = x.to_vector(), b = y.to_vector();
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0) / static_cast<double>(a.size());
}

}   // namespace

// The test vectors of Random123 for philox4x32 with ten rounds.
TEST_CASE("Philox gives its known answers", "[random]") {
  using Philox = r123::Philox4x32;
  const auto answers = [](Philox::ctr_type counter, Philox::key_type key, Philox::ctr_type expected) {
    return Philox()(counter, key) == expected;
  };
  CHECK(answers({{0, 0, 0, 0}}, {{0, 0}}, {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}}));
  CHECK(answers({{~0u, ~0u, ~0u, ~0u}}, {{~0u, ~0u}}, {{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}}));
  CHECK(answers({{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}, {{0xa4093822, 0x299f31d0}},
                {{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}));
}

TEST_CASE("uniform numbers are the leading bits of Philox", "[random]") {
  const std::vector<float> x = random::uniform({5}, {}).to_vector<float>();
  CHECK(x[0] == 0x6627e8p-24f);
  CHECK(x[1] == 0xe169c5p-24f);
  CHECK(x[2] == 0xbc57acp-24f);
  CHECK(x[3] == 0x9b00dbp-24f);

  // The third vector: its counter is block 0x85a308d3243f6a88 of stream 0x0370734413198a2e, beyond the size
  // of any tensor; block 0 of a stream is not.
  const auto words = r123::Philox4x32()({{1, 0, 0x13198a2e, 0x03707344}}, {{0xa4093822, 0x299f31d0}});
  CHECK(random::uniform({5}, {0x299f31d0a4093822, 0x0370734413198a2e}).at<float>({4}) ==
        static_cast<float>(words[0] >> 8) * 0x1p-24f);
}

TEST_CASE("a key gives the same numbers each time, another key others", "[random]") {
  const auto numbers = [](Key key) { return random::uniform({100}, key).to_vector(); };
  CHECK(numbers({.seed = 7}) == numbers({.seed = 7}));
  CHECK(numbers({.seed = 7}) != numbers({.seed = 8}));
  CHECK(numbers({.seed = 7}) != numbers({.seed = 7, .stream = 1}));
  CHECK(numbers({.seed = std::uint64_t{1} << 40}) != numbers({}));
}

TEST_CASE("the first numbers do not depend on how many are drawn", "[random]") {
  for (const DType dtype : kFloating)
    for (const std::int64_t n : {1, 3, 31, 33, 4095, 4097}) {
      const auto first = [&](const Tensor& x) {
        std::vector<double> v = x.to_vector();
        v.resize(static_cast<std::size_t>(n));
        return v;
      };
      CHECK(first(random::uniform({n}, {.seed = 3}, 0, 1, dtype)) ==
            first(random::uniform({5000}, {.seed = 3}, 0, 1, dtype)));
      CHECK(first(random::normal({n}, {.seed = 3}, dtype)) ==
            first(random::normal({5000}, {.seed = 3}, dtype)));
      CHECK(first(random::truncated_normal({n}, {.seed = 3}, dtype)) ==
            first(random::truncated_normal({5000}, {.seed = 3}, dtype)));
    }
}

TEST_CASE("the number of threads makes no difference", "[random]") {
  const auto all = [] {
    std::vector<std::vector<double>> v;
    for (const DType dtype : kFloating) {
      v.push_back(random::uniform({99, 1001}, {.seed = 5}, -1, 1, dtype).to_vector());
      v.push_back(random::normal({99, 1001}, {.seed = 5}, dtype).to_vector());
      v.push_back(random::truncated_normal({99, 1001}, {.seed = 5}, dtype).to_vector());
    }
    return v;
  };
  const auto one = all();
  set_num_threads(2);
  CHECK(all() == one);
  set_num_threads(1);
}

TEST_CASE("uniform numbers lie in [low, high)", "[random]") {
  for (const DType dtype : kFloating) {
    const std::vector<double> v = sorted(random::uniform({1 << 16}, {.seed = 1}, -2, 3, dtype));
    CHECK(v.front() >= -2);
    CHECK(v.back() < 3);
    CHECK(v.front() < -1.999);
    CHECK(v.back() > 2.999);
  }
  // Two adjacent f32 numbers: rounding must not reach the upper bound.
  const float high = std::nextafter(1.0f, 2.0f);
  CHECK(sorted(random::uniform({1000}, {.seed = 1}, 1, high)).back() == 1);
}

TEST_CASE("uniform numbers are evenly distributed", "[random]") {
  for (const DType dtype : kFloating) {
    const Tensor x = random::uniform({200000}, {.seed = 42}, 0, 1, dtype);
    CHECK(distance_from(evenly, x) < 1.95);
    CHECK(moment(x, 1) == Approx(0.5).margin(0.003));
    CHECK(moment(x, 2) == Approx(1.0 / 3).margin(0.003));
  }
}

TEST_CASE("normal numbers are normally distributed", "[random]") {
  for (const DType dtype : kFloating) {
    const Tensor x = random::normal({200000}, {.seed = 42}, dtype);
    CHECK(distance_from(normally, x) < 1.95);
    CHECK(moment(x, 1) == Approx(0).margin(0.01));
    CHECK(moment(x, 2) == Approx(1).margin(0.015));
    CHECK(moment(x, 3) == Approx(0).margin(0.04));
    CHECK(moment(x, 4) == Approx(3).margin(0.15));
    const std::vector<double> v = sorted(x);
    CHECK(std::isfinite(v.front()));
    CHECK(std::isfinite(v.back()));
  }
}

TEST_CASE("truncated normal numbers are the normal ones within two standard deviations", "[random]") {
  for (const DType dtype : kFloating) {
    const Tensor x = random::truncated_normal({200000}, {.seed = 12}, dtype);
    CHECK(distance_from(within_two, x) < 1.95);
    // Moments of the density φ(v) / (2 Φ(2) - 1) on [-2, 2]: the second is 1 - 4 φ(2) / (2 Φ(2) - 1); each
    // further one follows by integration by parts.
    CHECK(moment(x, 1) == Approx(0).margin(0.008));
    CHECK(moment(x, 2) == Approx(0.7737413035).margin(0.008));
    CHECK(moment(x, 3) == Approx(0).margin(0.02));
    CHECK(moment(x, 4) == Approx(1.4161891248).margin(0.03));
    const std::vector<double> v = sorted(x);
    CHECK((v.front() >= -2 && v.front() < -1.999 && v.back() <= 2 && v.back() > 1.999));
  }
  // Each value is the inverse of the distribution function, at the uniform number made from the same bits.
  const std::vector<double> u = random::uniform({5000}, {.seed = 12}, 0, 1, DType::f64).to_vector(),
                            z = random::truncated_normal({5000}, {.seed = 12}, DType::f64).to_vector();
  double worst = 0;
  for (std::size_t i = 0; i < u.size(); ++i)
    worst = std::max(worst, std::abs(within_two(z[i]) - u[i]));
  CHECK(worst < 1e-15);
}

TEST_CASE("neighbours, and the two numbers of a pair, are not correlated", "[random]") {
  const Tensor x = random::normal({200016}, {.seed = 9});
  for (const std::int64_t lag : {1, 4, 16}) {
    const Tensor a = slice(x, {0}, {200000}), b = slice(x, {lag}, {200000});
    CHECK(std::abs(correlation(a, b)) < 0.01);
    CHECK(std::abs(correlation(square(a), square(b)) - 1) < 0.03);
  }
}

TEST_CASE("split returns independent keys", "[random]") {
  const Key key{.seed = 7};
  std::set<std::pair<std::uint64_t, std::uint64_t>> keys{{key.seed, key.stream}};
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const Key child = key.split(i), grandchild = child.split(i);
    keys.insert({child.seed, child.stream});
    keys.insert({grandchild.seed, grandchild.stream});
  }
  CHECK(keys.size() == 2001);
  const Tensor a = random::normal({100000}, key.split(0)), b = random::normal({100000}, key.split(1));
  CHECK(std::abs(correlation(a, b)) < 0.015);
  CHECK(std::abs(correlation(a, random::normal({100000}, key))) < 0.015);
}

TEST_CASE("a permutation holds every index once, and all are equally likely", "[random]") {
  const std::vector<double> v = sorted(random::permutation(1000, {.seed = 1}));
  for (std::size_t i = 0; i < v.size(); ++i)
    REQUIRE(v[i] == static_cast<double>(i));
  CHECK(random::permutation(0, {}).shape() == Shape{0});
  CHECK(random::permutation(1, {}).item() == 0);

  std::vector<int> counts(24);
  for (std::uint64_t i = 0; i < 24000; ++i) {
    const std::vector<std::int64_t> p = random::permutation(4, {.seed = i}).to_vector<std::int64_t>();
    std::size_t rank = 0;
    for (std::size_t a = 0; a < 4; ++a)
      rank = rank * (4 - a) +
             static_cast<std::size_t>(std::count_if(p.begin() + static_cast<std::ptrdiff_t>(a), p.end(),
                                                    [&](std::int64_t b) { return b < p[a]; }));
    ++counts[rank];
  }
  double chi_squared = 0;
  for (const int n : counts)
    chi_squared += (n - 1000.0) * (n - 1000.0) / 1000;
  CHECK(chi_squared < 49.7);   // exceeded in one case of 1000, for 23 degrees of freedom
}

TEST_CASE("invalid arguments of random ops are rejected", "[random][errors]") {
  CHECK_THROWS_WITH(random::uniform({1}, {}, 1, 0),
                    "uniform: low must be less than high, and high - low finite: low is 1, high is 0");
  CHECK_THROWS_AS(random::uniform({1}, {}, 1, 1), ArgumentError);
  CHECK_THROWS_AS(random::uniform({1}, {}, -1e308, 1e308, DType::f64), ArgumentError);
  CHECK_THROWS_WITH(random::normal({1}, {}, DType::i32), "normal: returns f32 or f64, not i32");
  CHECK_THROWS_WITH(random::truncated_normal({1}, {}, DType::u8),
                    "truncated_normal: returns f32 or f64, not u8");
  CHECK_THROWS_AS(random::permutation(-1, {}), ShapeError);
}

}   // namespace random_test
