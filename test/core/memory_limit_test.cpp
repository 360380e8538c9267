// The limit of tensor memory, and its peak.
#include <atomic>
#include <catch2/catch.hpp>
#include <thread>
#include <vector>

#include "core/sanitizers.h"
#include "message_of.h"
#include "tapedeck/memory.h"
#include "tapedeck/tapedeck.h"

namespace memory_limit_test {

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

constexpr std::int64_t kBytes = 1 << 20;   // a size class of its own, so no byte is added
Tensor megabytes(std::int64_t n) { return zeros({n * kBytes}, DType::u8); }

struct Limit {
  explicit Limit(std::int64_t more) { set_memory_limit(live_bytes() + more); }
  ~Limit() { set_memory_limit({}); }
};

}   // namespace

TEST_CASE("a tensor beyond the memory limit is not allocated", "[memory_limit]") {
  CHECK_FALSE(memory_limit().has_value());
  const std::int64_t before = live_bytes();
  {
    const Limit limit(2 * kBytes);
    CHECK(memory_limit() == before + 2 * kBytes);
    const Tensor x = megabytes(1), y = megabytes(1);
    CHECK_THROWS_AS(megabytes(1), OutOfMemory);
    CHECK(live_bytes() == before + 2 * kBytes);   // what was not made does not count
    CHECK(ones({8}).size() == 8);                 // small tensors do not count
    std::string text;
    try {
      (void)zeros({2, 512, 1024}, DType::u8);
    } catch (const std::bad_alloc& e) {
      text = e.what();
    }
    CHECK(text == "tensor: no memory for the 1048576 bytes of u8[2,512,1024]: tensors have " +
                      std::to_string(before + 2 * kBytes) + " bytes, and the limit is " +
                      std::to_string(before + 2 * kBytes) + "; set_memory_limit changes it");
  }
  CHECK(live_bytes() == before);
  CHECK(megabytes(4).size() == 4 * kBytes);
  CHECK(message_of<ArgumentError>([] { set_memory_limit(-1); }) ==
        "set_memory_limit: -1 bytes; use 0 or more");
  CHECK_FALSE(memory_limit().has_value());
}

TEST_CASE("a refused tensor does not count against other threads", "[memory_limit][threads]") {
  const Limit limit(2 * kBytes);
  std::atomic<bool> done{false};
  std::thread other([&] {
    while (!done)
      try {
        (void)megabytes(4);
      } catch (const OutOfMemory&) {}
  });
  const int tries = kSanitized ? 250 : 2000;   // which is often enough to meet a refusal by chance
  int made = 0;
  for (int i = 0; i < tries; ++i)
    try {
      made += megabytes(1).defined();
    } catch (const OutOfMemory&) {}
  done = true;
  other.join();
  CHECK(made == tries);
}

TEST_CASE("ops that the limit refused succeed with a higher limit", "[memory_limit]") {
  const Variable w(ones({512, 512}));
  const auto gradient = [&] {
    GradientTape tape;
    return sum(tape.gradient(sum(exp(w) * exp(w)), w).dense()).item();
  };
  const double expected = gradient();
  const std::int64_t before = live_bytes();
  for (const std::int64_t more : {0, 1, 2, 3}) {   // in megabytes, one for each tensor
    const Limit limit(more * kBytes);
    CHECK_THROWS_AS(gradient(), OutOfMemory);
    CHECK(live_bytes() == before);
  }
  CHECK(gradient() == expected);
}

TEST_CASE("the peak of memory is the most since its reset", "[memory_limit]") {
  reset_peak_memory();
  const std::int64_t before = live_bytes();
  CHECK(peak_memory() == before);
  { const Tensor x = megabytes(2), y = megabytes(1); }
  { const Tensor x = megabytes(1); }
  CHECK(peak_memory() == before + 3 * kBytes);
  {
    const Limit limit(kBytes);
    CHECK_THROWS_AS(megabytes(8), OutOfMemory);
  }
  CHECK(peak_memory() == before + 3 * kBytes);   // what was refused was never there
  const Tensor held = megabytes(1);
  reset_peak_memory();
  CHECK(peak_memory() == before + kBytes);
}

TEST_CASE("threads share the limit and the peak of memory", "[memory_limit]") {
  const std::int64_t before = live_bytes();
  reset_peak_memory();
  std::atomic<int> made{0}, refused{0}, ready{0};
  constexpr int kThreads = 4, kTries = 50;
  {
    const Limit limit(2 * kBytes);
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i)
      threads.emplace_back([&] {
        ++ready;
        while (ready < kThreads)
          std::this_thread::yield();
        for (int k = 0; k < kTries; ++k) {
          try {
            const Tensor x = megabytes(1);
            ++made;
          } catch (const OutOfMemory&) {
            ++refused;
          }
        }
      });
    for (std::thread& t : threads)
      t.join();
  }
  CHECK(made + refused == kThreads * kTries);
  CHECK(made >= 1);
  CHECK(live_bytes() == before);
  CHECK(peak_memory() <= before + 2 * kBytes);
  CHECK(peak_memory() >= before + kBytes);
}

}   // namespace memory_limit_test
