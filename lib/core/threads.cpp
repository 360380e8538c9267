// Runs parallel_for on TBB's pool: one task per thread, each of which takes pieces until none is left, first
// from its own range. So a thread that starts late, or never, delays nothing, and a failure to allocate tasks
// costs only speed.
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

// The pieces of one call, divided into one contiguous range per task.
class Pieces {
 public:
  Pieces(std::int64_t count, int tasks, void (*run)(const void*, std::int64_t), const void* f)
      : count_(count), ranges_(std::min(tasks, kMostRanges)), run_(run), f_(f) {
    for (int r = 0; r < ranges_; ++r)
      new (next_ + r) Next{first_of(r)};
  }

  // Runs the pieces of range `own`, then remaining pieces of other ranges, until all are taken. A thread that
  // has the same range in each call finds the data it wrote in the last call in its caches. Keeps the first
  // exception, and skips the remaining pieces.
  void work(int own) noexcept {
    bool& inside = thread_state.inside_parallel;
    inside = true;
    try {
      for (int k = 0; k < ranges_; ++k)
        run_range((own + k) % ranges_);
    } catch (...) {
      for (int r = 0; r < ranges_; ++r)
        next_[r].piece.store(count_, std::memory_order_relaxed);
      if (!thrown_.exchange(true)) error_ = std::current_exception();
    }
    inside = false;
  }
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  static constexpr int kMostRanges = 64;
  struct alignas(64) Next {
    std::atomic<std::int64_t> piece;
  };

  std::int64_t first_of(int range) const { return count_ * range / ranges_; }
  void run_range(int range) {
    const std::int64_t end = first_of(range + 1);
    for (std::int64_t i; (i = next_[range].piece.fetch_add(1, std::memory_order_relaxed)) < end;)
      run_(f_, i);
  }

  const std::int64_t count_;
  const int ranges_;
  void (*const run_)(const void*, std::int64_t);
  const void* const f_;
  union {   // only the first `ranges_` are set
    Next next_[kMostRanges];
  };
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
          0, tasks, [&](int) { pieces.work(std::max(0, tbb::this_task_arena::current_thread_index())); },
          tbb::simple_partitioner());
    });
  } catch (const std::bad_alloc&) {
    pieces.work(0);
  }
}

// For the thread sanitizer, which does not understand TBB's synchronization.
void work_on_new_threads(Pieces& pieces, int tasks) {
  std::vector<std::thread> others;
  for (int i = 1; i < tasks; ++i)
    others.emplace_back([&pieces, i] { pieces.work(i); });
  pieces.work(0);
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
  Pieces pieces(count, tasks, run, f);
  if (kThreadSanitizer)
    work_on_new_threads(pieces, tasks);
  else
    work_on_pool(pieces, tasks);
  pieces.rethrow();
}

}   // namespace tapedeck
