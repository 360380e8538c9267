// Reuse of tensor memory after threads end, and after one thread frees a tensor of another.
#include <sys/prctl.h>

#include <barrier>
#include <catch2/catch.hpp>
#include <mutex>
#include <set>
#include <thread>

#include "core/sanitizers.h"
#include "resident.h"
#include "tapedeck/dataset.h"
#include "tapedeck/distribute.h"
#include "tapedeck/tapedeck.h"

namespace thread_memory_test {

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

constexpr bool kMemoryIsReused = !kSanitized;
constexpr std::int64_t kMega = 1 << 20;

using Tensors = std::vector<Tensor>;

/// The blocks of all tensors that it is shown.
class Blocks {
 public:
  void add(const Tensors& tensors) {
    const std::lock_guard guard(lock_);
    for (const Tensor& t : tensors)
      all_.insert(t.handle());
  }
  std::size_t size() const { return all_.size(); }

 private:
  std::mutex lock_;
  std::set<const detail::Block*> all_;
};

Tensors small_tensors(int count) {
  Tensors made;
  for (int i = 0; i < count; ++i)
    made.push_back(tensor(1.0));
  return made;
}
Tensors tensors_of(std::int64_t bytes, int count) {
  Tensors made;
  for (int i = 0; i < count; ++i)
    made.push_back(ones({bytes / 4}));
  return made;
}

template <class F> auto on_another_thread(const F& f) {
  std::invoke_result_t<F> result;
  std::thread([&] { result = f(); }).join();
  return result;
}

template <class F> void on_threads_together(int count, const F& f) {
  std::barrier all_there(count);
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i)
    threads.emplace_back([&] { f(all_there); });
  for (std::thread& t : threads)
    t.join();
}

/// Empties the caches, and makes one for this thread.
void begin_with_a_cache(std::int64_t limit = std::int64_t{1} << 30) {
  set_buffer_cache_limit(limit);
  release_buffers();
  ones({64});
  release_buffers();
}

}   // namespace

TEST_CASE("threads that end leave their blocks to later threads", "[threads][memory]") {
  if (!kMemoryIsReused) return;
  Blocks blocks;
  for (int round = 0; round < 500; ++round)
    on_threads_together(3, [&](std::barrier<>& all_there) {
      const Tensors made = small_tensors(100);
      all_there.arrive_and_wait();
      blocks.add(made);
    });
  CHECK(blocks.size() < 3000);
}

TEST_CASE("repeated runs of replicas do not grow memory", "[threads][memory]") {
  if (!kMemoryIsReused) return;
  const auto run = [](int times) {
    for (int i = 0; i < times; ++i)
      Replicas(3).run([](Replica) { sum_over_replicas(ones({100})); });
  };
  run(100);
  const long before = resident_pages(), page = sysconf(_SC_PAGESIZE);
  run(400);   // once 20 KB each
  CHECK((resident_pages() - before) * page < 2 * kMega);
}

TEST_CASE("the free blocks of a thread that has ended suffice for several threads", "[threads][memory]") {
  if (!kMemoryIsReused) return;
  Blocks blocks;
  std::thread([&] { blocks.add(small_tensors(10'000)); }).join();
  const std::size_t before = blocks.size();
  on_threads_together(4, [&](std::barrier<>& all_there) {
    const Tensors made = small_tensors(1000);
    all_there.arrive_and_wait();
    blocks.add(made);
  });
  CHECK(blocks.size() == before);
}

TEST_CASE("blocks that another thread frees go back to threads that make tensors", "[threads][memory]") {
  if (!kMemoryIsReused) return;
  Blocks blocks;
  Tensors made;
  std::barrier turn(2);
  constexpr int kTurns = 100;
  std::thread maker([&] {
    for (int i = 0; i < kTurns; ++i) {
      made = small_tensors(1000);
      turn.arrive_and_wait();
      turn.arrive_and_wait();
    }
  });
  for (int i = 0; i < kTurns; ++i) {
    turn.arrive_and_wait();
    blocks.add(made);
    made.clear();
    turn.arrive_and_wait();
  }
  maker.join();
  CHECK(blocks.size() < 3000);
}

namespace {

/// Makes and frees tensors when the library's part of the thread has ended.
struct Late {
  Blocks* blocks = nullptr;
  Tensors kept;

  ~Late() {
    Tensors more = small_tensors(10);
    blocks->add(more);
    kept.push_back(ones({1000}));
  }
};
thread_local Late late;

}   // namespace

TEST_CASE("destructors of threads that end lose no memory", "[threads][memory]") {
  if (!kMemoryIsReused) return;
  const std::int64_t before = live_bytes();
  Blocks blocks;
  for (int i = 0; i < 500; ++i)
    std::thread([&] {
      late.blocks = &blocks;   // begins before the library does, so ends after it
      late.kept = small_tensors(300);
      late.kept.push_back(ones({10'000}));
      blocks.add(late.kept);
    }).join();
  CHECK(blocks.size() < 3000);
  CHECK(live_bytes() == before);
}

TEST_CASE("buffers that another thread frees are kept for those that make them", "[threads][memory]") {
  if (!kMemoryIsReused) return;
  begin_with_a_cache();
  SECTION("threads that end") {
    for (int i = 0; i < 100; ++i)
      on_another_thread([] { return tensors_of(kMega, 4); });
    CHECK(cached_bytes() == 4 * kMega);
  }
  SECTION("a thread that stays") {
    constexpr int kTurns = 100;
    Tensors made;
    std::int64_t most = 0;
    std::barrier turn(2);
    std::thread maker([&] {
      for (int i = 0; i < kTurns; ++i) {
        made = tensors_of(kMega, 4);
        turn.arrive_and_wait();
        turn.arrive_and_wait();
      }
    });
    for (int i = 0; i < kTurns; ++i) {
      turn.arrive_and_wait();
      made.clear();
      most = std::max(most, cached_bytes());
      turn.arrive_and_wait();
    }
    maker.join();
    CHECK(most == 4 * kMega);
  }
  release_buffers();
  CHECK(cached_bytes() == 0);
}

TEST_CASE("memory does not grow with the number of epochs", "[threads][memory]") {
  if (!kMemoryIsReused) return;
  begin_with_a_cache();
  const DataLoader loader(Dataset({ones({1000, 100})}), {.batch = 100, .shuffle = true});
  for (int epoch = 0; epoch < 1000; ++epoch)
    for (const Batch& b : loader.epoch(epoch))
      sum(b[0]);
  CHECK(cached_bytes() < kMega);   // a batch has 40 KB
  release_buffers();
}

TEST_CASE("all threads together cache an eighth of one thread's limit", "[threads][memory]") {
  if (!kMemoryIsReused) return;
  begin_with_a_cache(8 * kMega);
  on_another_thread([] { return tensors_of(kMega / 4, 100); });
  CHECK(cached_bytes() == kMega);
  on_another_thread([] { return tensors_of(2 * kMega, 1); });   // more than all may share
  CHECK(cached_bytes() == kMega);

  // Other sizes take the place of what nobody has used for longest.
  on_another_thread([] { return tensors_of(kMega / 64, 8); });
  CHECK(cached_bytes() == kMega - kMega / 8);
  on_another_thread([] { return tensors_of(kMega / 2, 1); });
  CHECK(cached_bytes() <= kMega);
  for (const std::int64_t bytes : {kMega / 64, kMega / 2}) {
    const std::int64_t before = cached_bytes();
    const Tensors again = on_another_thread([&] { return tensors_of(bytes, 1); });
    CHECK(cached_bytes() == before - bytes);
  }

  set_buffer_cache_limit(0);
  on_another_thread([] { return tensors_of(kMega / 4, 1); });
  begin_with_a_cache();
  CHECK(cached_bytes() == 0);
}

TEST_CASE("released buffers leave no holes in memory", "[threads][memory]") {
  if (!kMemoryIsReused) return;
  const long page = sysconf(_SC_PAGESIZE);
  prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);   // the system may fill free pages to make huge ones, at any time
  ones({4 * kMega});
  begin_with_a_cache();   // after this, malloc takes a megabyte from its heap
  Tensors between;
  const auto interleaved = [&] {
    Tensors made;
    for (int i = 0; i < 64; ++i) {
      made.push_back(ones({kMega / 4}));
      between.push_back(ones({64}));
    }
    return made;
  };
  const long before = resident_pages();
  { const Tensors here = interleaved(), elsewhere = on_another_thread(interleaved); }
  CHECK((resident_pages() - before) * page > 64 * kMega);
  release_buffers();
  CHECK((resident_pages() - before) * page < 8 * kMega);
  prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0);
}

}   // namespace thread_memory_test
