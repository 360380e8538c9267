// Runs parallel_for on TBB's pool: one task per thread, each taking pieces until none is left. So a thread
// that starts late, or never, delays nothing, and failing to allocate tasks costs only speed.
#include <algorithm>
#include <atomic>
#include <exception>
#include <new>
#include <thread>
#include <vector>

#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include "core/fork.h"
#include "core/format.h"
#include "core/parallel.h"
#include "core/sanitizers.h"
#include "core/thread_state.h"
#include "tapedeck/threads.h"

namespace tapedeck {
namespace {

std::atomic<int> threads{1};

class Pieces {
 public:
  Pieces(std::int64_t count, void (*run)(const void*, std::int64_t), const void* f)
      : count_(count), run_(run), f_(f) {}

  // Takes pieces until all are taken. Keeps the first exception, and skips the remaining pieces.
  void work() noexcept {
    bool& inside = thread_state.inside_parallel;
    inside = true;
    try {
      for (std::int64_t i; (i = next_.fetch_add(1, std::memory_order_relaxed)) < count_;)
        run_(f_, i);
    } catch (...) {
      next_.store(count_, std::memory_order_relaxed);
      if (!thrown_.exchange(true)) error_ = std::current_exception();
    }
    inside = false;
  }
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  const std::int64_t count_;
  void (*const run_)(const void*, std::int64_t);
  const void* const f_;
  std::atomic<std::int64_t> next_{0};
  std::atomic<bool> thrown_{false};
  std::exception_ptr error_;
};

// Keeps the pool alive forever: TBB's destructors would detach the pool's threads, which crashes in a forked
// child, where they do not exist. Held by a static, so that leak checkers find it reachable.
void keep_pool() {
  [[gnu::used]] static const auto* const kept = new tbb::task_scheduler_handle(tbb::attach{});
  (void)kept;
}

// Isolated: while a thread waits here it must not start an unrelated task of the user's inside this one.
void work_on_pool(Pieces& pieces, int tasks) {
  try {
    keep_pool();
    tbb::this_task_arena::isolate([&] {
      tbb::parallel_for(
          0, tasks, [&](int) { pieces.work(); }, tbb::simple_partitioner());
    });
  } catch (const std::bad_alloc&) {
    pieces.work();
  }
}

// For the thread sanitizer, which does not understand TBB's synchronization.
void work_on_new_threads(Pieces& pieces, int tasks) {
  std::vector<std::thread> others;
  for (int i = 1; i < tasks; ++i)
    others.emplace_back([&] { pieces.work(); });
  pieces.work();
  for (std::thread& t : others)
    t.join();
}

}   // namespace

void set_num_threads(int n) {
  if (n < 1) throw_error<ArgumentError>("set_num_threads: {} threads; use 1 or more", n);
  threads.store(n, std::memory_order_relaxed);
}

int num_threads() { return forked() ? 1 : threads.load(std::memory_order_relaxed); }

void detail::run_parallel(std::int64_t count, void (*run)(const void*, std::int64_t), const void* f) {
  const int tasks = static_cast<int>(std::min<std::int64_t>(num_threads(), count));
  if (tasks == 1 || thread_state.inside_parallel) {
    for (std::int64_t i = 0; i < count; ++i)
      run(f, i);
    return;
  }
  Pieces pieces(count, run, f);
  if (kThreadSanitizer)
    work_on_new_threads(pieces, tasks);
  else
    work_on_pool(pieces, tasks);
  pieces.rethrow();
}

}   // namespace tapedeck
