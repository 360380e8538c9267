// The memory that tapes keep, and for how long: bytes, entries and handles.
#include <unistd.h>
#include <catch2/catch.hpp>

#include "core/sanitizers.h"
#include "ops/odd_ops.h"
#include "resident.h"
#include "tapedeck/memory.h"

namespace memory_test {

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

constexpr std::int64_t kLong = 1'000'000;
const Shape kLarge = {64, 64};   // 16 KiB in f32

}   // namespace

TEST_CASE("nothing that a tape saved outlives its gradient", "[memory]") {
  const Tensor x = ones(kLarge);
  const std::int64_t base = live_bytes();
  GradientTape tape;
  tape.watch(x);
  {
    Tensor y = x;
    for (int i = 0; i < 10; ++i)
      y = tanh(y) * x;
    const Tensor loss = sum(y);
    y = {};
    CHECK(live_bytes() > base);
    const Gradient g = tape.gradient(loss, x);
    CHECK(live_bytes() == base + g.nbytes());
  }
  CHECK(live_bytes() == base);
}

TEST_CASE("a persistent tape holds what it saved until it ends or is reset", "[memory]") {
  const Tensor x = ones(kLarge);
  const std::int64_t base = live_bytes();
  {
    GradientTape tape({.persistent = true});
    tape.watch(x);
    const Tensor loss = sum(exp(x) * x);
    const std::int64_t saved = live_bytes();
    CHECK(saved == base + x.nbytes());   // exp's output, once, for both rules; x is not the tape's
    for (int i = 0; i < 3; ++i)
      tape.gradient(loss, x);
    CHECK(live_bytes() == saved);
    tape.reset();
    CHECK(live_bytes() == base);
    tape.watch(x);
    const Tensor again = sum(exp(x));
    CHECK(live_bytes() == saved);
  }
  CHECK(live_bytes() == base);
}

TEST_CASE("only what a rule reads is saved", "[memory]") {
  const Tensor x = ones(kLarge);
  GradientTape tape;
  tape.watch(x);
  const std::int64_t base = live_bytes();
  Tensor y = x + x;
  y = -y;
  y = y - 1;
  y = 3 * y;
  const Tensor total = sum(y);
  y = {};
  CHECK(live_bytes() == base);
}

TEST_CASE("outputs that are dropped take their entries with them", "[memory]") {
  const Tensor x = ones(kLarge);
  const std::int64_t base = live_bytes();
  GradientTape tape;
  tape.watch(x);
  for (const int end : {1, 2, 3}) {
    Tensor y = x;
    for (int i = 0; i < 20; ++i)
      y = end == 1 ? exp(y) * 0.1 : end == 2 ? y * x : outputs(kPair, {y})[static_cast<std::size_t>(i % 2)];
    CHECK(tape.size() >= 20);
    y = {};
    CHECK(tape.size() == 0);
    CHECK(live_bytes() == base);
  }
}

TEST_CASE("an entry is kept while an output or a later op needs it", "[memory]") {
  const Tensor x = tensor(3.0);
  GradientTape tape;
  tape.watch(x);
  std::vector<Tensor> p = outputs(kPair, {x});
  p[0] = {};
  CHECK(tape.size() == 1);
  Tensor y = exp(p[1]);
  p.clear();
  CHECK(tape.size() == 2);
  const Tensor copy = y;
  y = {};
  CHECK(tape.size() == 2);
  CHECK(tape.gradient(log(copy), x).dense().item() == Approx(2));
}

TEST_CASE("a watched tensor may be dropped and its slot used again", "[memory]") {
  GradientTape tape;
  const Tensor x = tensor(2.0);
  for (int i = 0; i < 1000; ++i) {
    const Tensor passing = tensor(1.0 * i);
    tape.watch(passing);
    const Tensor y = passing * passing;
  }
  tape.watch(x);
  const Tensor z = x * x;
  CHECK(tape.size() == 1);
  CHECK(tape.gradient(z, x).dense().item() == 4);
}

TEST_CASE("a million recorded ops whose outputs are dropped run at constant memory", "[memory][long]") {
  const Tensor x = tensor(0.5), large = ones(kLarge);
  for (const bool output_is_kept_by_the_rule : {true, false}) {
    GradientTape tape;
    tape.watch(x);
    std::size_t most = 0;
    for (std::int64_t i = 0; i < kLong; ++i) {
      const Tensor y = output_is_kept_by_the_rule ? exp(x) : x * x;
      if (i % 1000 == 0) most = std::max(most, tape.size());
    }
    CHECK(most <= 1);
  }
  GradientTape tape;
  tape.watch(large);
  const std::int64_t base = live_bytes();
  std::int64_t most = 0;
  for (int i = 0; i < 10'000; ++i) {
    const Tensor y = exp(large), z = y * y;
    most = std::max(most, live_bytes());
  }
  CHECK(most <= base + 3 * large.nbytes());
  CHECK(live_bytes() == base);
}

TEST_CASE("a running value keeps only the entries that lead to it", "[memory]") {
  const Tensor x = tensor(0.999);
  GradientTape tape;
  tape.watch(x);
  Tensor total = x;
  for (int i = 0; i < 1000; ++i) {
    total = total * x;
    const Tensor aside = exp(total);
  }
  CHECK(tape.size() == 1000);
}

TEST_CASE("a chain of a million ops records, differentiates and is freed", "[memory][long]") {
  const Tensor x = tensor(1.0);
  const std::int64_t base = live_bytes();
  for (const bool differentiate : {true, false}) {
    GradientTape tape;
    tape.watch(x);
    Tensor y = x;
    for (std::int64_t i = 0; i < kLong / 2; ++i)
      y = -(y * 1.0);
    CHECK(tape.size() == kLong);
    if (differentiate)
      CHECK(tape.gradient(y, x).dense().item() == 1);
    else
      y = {};   // the whole chain becomes unreachable at once
    CHECK(tape.size() == 0);
  }
  CHECK(live_bytes() == base);
}

TEST_CASE("a chain of a million ops is freed by its tape", "[memory][long]") {
  const Tensor x = tensor(1.0);
  Tensor y = x;
  {
    GradientTape tape({.persistent = true});
    tape.watch(x);
    for (std::int64_t i = 0; i < kLong; ++i)
      y = y * x;
  }
  CHECK(y.item() == 1);
}

TEST_CASE("moving a tensor into an op leaves tensors that share its memory unchanged", "[memory]") {
  const Tensor expected = ones(kLarge);
  SECTION("a reshape") {
    Tensor x = ones(kLarge);
    const Tensor flat = reshape(x, {-1});
    const Tensor y = std::move(x) * 5.0;
    CHECK(sum(flat).item() == 4096);
    CHECK(y.at({0, 0}) == 5);
  }
  SECTION("rows of it") {
    Tensor x = ones(kLarge);
    const Tensor rows = slice(x, {1, 0}, {2, -1});
    const Tensor y = exp(std::move(x));
    CHECK(sum(rows).item() == 128);
  }
  SECTION("the view itself is moved") {
    const Tensor x = ones(kLarge);
    const Tensor y = -slice(x, {1, 0}, {2, -1});
    CHECK(sum(x).item() == 4096);
  }
  SECTION("a copy of the handle") {
    Tensor x = ones(kLarge);
    const Tensor copy = x;
    const Tensor y = std::move(x) + 1;
    CHECK(sum(copy).item() == 4096);
  }
  SECTION("a tape holds it") {
    Tensor x = ones(kLarge);
    const Tensor source = x;
    GradientTape tape;
    tape.watch(x);
    Tensor y = x * 3;
    const Tensor product = y * y;
    const Tensor z = std::move(y) + 100;
    CHECK(tape.gradient(product, source).dense().at({0, 0}) == 18);
  }
}

TEST_CASE("gradients of several sources do not share memory that one of them may overwrite", "[memory]") {
  const Tensor a = ones(kLarge), b = ones(kLarge);
  GradientTape tape;
  tape.watch(a), tape.watch(b);
  const auto [da, db] = tape.gradient(a + b, a, b);
  Tensor first = da.dense();
  const Tensor changed = std::move(first) * 7;
  CHECK(db.dense().at({1, 1}) == 1);
  CHECK(da.dense().at({1, 1}) == 1);
}

TEST_CASE("the buffer cache respects its limit", "[memory]") {
  release_buffers();
  CHECK(cached_bytes() == 0);
  set_buffer_cache_limit(1 << 20);
  { const Tensor small = ones({1 << 16}), large = ones({1 << 20}); }
  CHECK(cached_bytes() <= 1 << 20);
  release_buffers();
  CHECK(cached_bytes() == 0);
  set_buffer_cache_limit(std::int64_t{1} << 30);
}

TEST_CASE("huge pages do not enlarge a buffer", "[memory]") {
  if (kSanitized) return;   // they keep memory themselves
  release_buffers();
  const long before = resident_pages(), page = sysconf(_SC_PAGESIZE);
  constexpr std::int64_t n = (1 << 23) + 17;
  const Tensor x = full({n}, 3.0f), y = x + 1;
  CHECK(y.at<float>({0}) == 4);
  CHECK(y.at<float>({n - 1}) == 4);
  // A buffer has room for a quarter more, all of which is in memory where malloc fills what it gives. Beside
  // it nothing is, but what lies in one more large page at its end.
  constexpr std::int64_t most = 2 * (n * 5 + (std::int64_t{1} << 21) + (1 << 20));
  CHECK((resident_pages() - before) * page < most);
}

}   // namespace memory_test
