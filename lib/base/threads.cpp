// parallel_for over oneTBB.
#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>

#include <tbb/info.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include "base/format.h"
#include "base/parallel.h"
#include "tapedeck/threads.h"

namespace tapedeck {
namespace {

std::atomic<int> threads{1};
std::atomic<tbb::task_arena*> arena{nullptr};   // of the wished size, the caller's thread included; null for one thread
constinit std::mutex change;

// One for each size that was ever wished, never destroyed: another thread may still be in it. More workers than the machine
// has would only make TBB warn.
tbb::task_arena* arena_of(int n) {
  static auto& arenas = *new std::map<int, tbb::task_arena>;
  return &arenas.try_emplace(n, std::min(n, tbb::info::default_concurrency())).first->second;
}

}  // namespace

void set_num_threads(int n) {
  if (n < 1) throw_error<ArgumentError>("set_num_threads: {} threads; use 1 or more", n);
  const std::lock_guard lock(change);
  arena = n == 1 ? nullptr : arena_of(n);
  threads = n;
}

int num_threads() { return threads; }

void detail::run_parallel(std::int64_t pieces, void (*run)(const void*, std::int64_t), const void* f) {
  tbb::task_arena* const workers = arena.load(std::memory_order_acquire);
  if (!workers) {
    for (std::int64_t i = 0; i < pieces; ++i) run(f, i);
    return;
  }
  workers->execute([&] {
    tbb::parallel_for(std::int64_t{0}, pieces, [&](std::int64_t i) { run(f, i); });
  });
}

}  // namespace tapedeck
