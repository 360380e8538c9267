// parallel_for over oneTBB.
#include <atomic>

#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include "base/format.h"
#include "base/parallel.h"
#include "tapedeck/threads.h"

namespace tapedeck {
namespace {

std::atomic<int> threads{1};

}  // namespace

void set_num_threads(int n) {
  if (n < 1) throw_error<ArgumentError>("set_num_threads: {} threads; use 1 or more", n);
  threads = n;
}

int num_threads() { return threads; }

void detail::run_parallel(std::int64_t pieces, void (*run)(const void*, std::int64_t), const void* f) {
  const int n = threads.load(std::memory_order_relaxed);
  if (n == 1) {
    for (std::int64_t i = 0; i < pieces; ++i) run(f, i);
    return;
  }
  // An arena of the wished size; the caller's thread is one of its workers.
  tbb::task_arena arena(n);
  arena.execute([&] {
    tbb::parallel_for(std::int64_t{0}, pieces, [&](std::int64_t i) { run(f, i); });
  });
}

}  // namespace tapedeck
