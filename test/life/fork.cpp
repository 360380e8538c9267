// fork() without exec: the child computes, on one thread, whatever the parent's threads were doing; the
// parent goes on.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "core/sanitizers.h"
#include "tapedeck/compile.h"
#include "tapedeck/dataset.h"
#include "tapedeck/tapedeck.h"

namespace td = tapedeck;

namespace {

void require(bool ok, const char* what) {
  if (ok) return;
  std::fprintf(stderr, "fork: %s\n", what);
  std::_Exit(1);
}

double work() {
  const td::random::Key key{3};
  const td::Tensor a = td::random::normal({300, 400}, key.split(0)),
                   b = td::random::normal({400, 500}, key.split(1));
  td::GradientTape tape;
  tape.watch(a);
  const td::Tensor convolved =
      td::conv2d(td::reshape(a, {10, 30, 25, 16}),
                 td::reshape(td::slice(td::reshape(b, {200'000}), {0}, {4608}), {3, 3, 16, 32}));
  const td::Tensor loss = td::sum(td::tanh(td::matmul(a, b) * 0.01)) + td::sum(td::tanh(convolved * 0.01));
  return loss.item() + td::sum(tape.gradient(loss, a).dense()).item();
}

// Forks, runs f in the child and waits for it: for at most a minute.
template <class F> void in_child(const F& f) {
  const pid_t child = fork();
  require(child >= 0, "fork");
  if (child == 0) {
    alarm(60);
    f();
    std::exit(0);   // with static destructors
  }
  int status = 0;
  waitpid(child, &status, 0);
  require(WIFEXITED(status) && WEXITSTATUS(status) == 0, "a child hung, crashed or was wrong");
}

// Calls f while other threads wait. They have all started: a thread that starts holds locks of the
// sanitizers.
template <class F> void beside_threads(const F& f) {
  constexpr int kThreads = 4;
  std::atomic<bool> stop = false;
  std::atomic<int> waiting = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&] {
      ++waiting;
      stop.wait(false);
    });
  while (waiting < kThreads)
    std::this_thread::yield();
  f();
  stop = true, stop.notify_all();
  for (std::thread& t : threads)
    t.join();
}

// Whether the child of a process with threads can start some, as BLAS does in the child. In qemu 7.2 it
// cannot.
bool threads_start_in_children() {
  int status = 0;
  beside_threads([&] {
    const pid_t child = fork();
    require(child >= 0, "fork");
    if (child == 0) {
      alarm(60);
      beside_threads([] {});
      std::_Exit(0);
    }
    waitpid(child, &status, 0);
  });
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// The thread that makes the batches of an epoch is not in the child.
void fork_in_an_epoch() {
  const td::DataLoader loader(td::Dataset({td::arange(10)}), {.batch = 2, .prefetch = 1});
  const auto count = [](td::Epoch&& epoch) {
    int n = 0;
    for ([[maybe_unused]] const td::Batch& batch : epoch)
      ++n;
    return n;
  };
  td::Epoch begun = loader.epoch(0);
  td::Epoch::Iterator at = begun.begin();
  in_child([&] {
    bool failed = false;
    try {
      ++at;
    } catch (const td::ArgumentError&) {
      failed = true;
    }
    require(failed, "an epoch of the parent goes on in the child");
    require(count(loader.epoch(0)) == 5, "an epoch of the child");
    begun.~Epoch();   // waits for nothing
    std::_Exit(0);
  });
  int left = 0;
  for (; at != begun.end(); ++at)
    ++left;
  require(left == 5, "the parent's epoch goes on");
}

const td::Tensor of_process = td::ones({3000});

}   // namespace

// Memory that the parent's other threads own at the fork is lost in the child: not a leak of the library.
extern "C" const char* __asan_default_options() { return "detect_leaks=0"; }

int main() {
  if (!threads_start_in_children()) {
    std::puts("skipped: fork: threads do not start in a child, as in an emulator");
    return 77;
  }
  td::set_num_threads(4);
  const double expected = work();
  const auto recorded = td::compile([](const td::Tensor& x) {
    td::GradientTape tape;
    tape.watch(x);
    return tape.gradient(td::sum(td::tanh(td::matmul(x, x)) * x), x);
  });
  const td::Tensor x = td::random::normal({200, 200}, {.seed = 1}), gradient = recorded(x).dense();
  const auto replays = [&] { return td::all(td::equal(recorded(x).dense(), gradient)).item() != 0; };
  require(replays(), "a replay");
  in_child([&] {
    require(replays(), "a replay of what the parent recorded");
    require(td::num_threads() == 1, "the child has one thread");
    require(work() == expected, "the child's result");
    td::set_num_threads(4);
    require(td::num_threads() == 1 && work() == expected, "the child stays at one thread");
    std::thread([&] { require(work() == expected, "a thread of the child"); }).join();
    in_child([&] { require(work() == expected, "the child's child"); });
  });
  require(work() == expected && replays() && td::num_threads() == 4, "the parent goes on");

  // Forks while other threads make batches, and take and release every lock. Sanitized builds are left out:
  // locks of the sanitizer's allocator that another thread holds stay taken in the child.
  if (tapedeck::kAddressSanitizer) return 0;
  fork_in_an_epoch();
  std::atomic<bool> stop = false;
  std::vector<std::thread> others;
  for (int i = 0; i < 3; ++i)
    others.emplace_back([&] {
      while (!stop) {
        const td::Tensor x = td::tensor(2.0);
        td::GradientTape tape;
        tape.watch(x);
        td::Tensor y = x * x;
        std::thread([gone = std::move(y)]() mutable { gone = {}; }).join();
        td::matmul(td::ones({2, 2}), td::ones({2, 2}));
      }
    });
  for (int i = 0; i < 100; ++i)
    in_child([&] {
      const td::Tensor x = td::tensor(3.0);
      td::GradientTape tape;
      tape.watch(x);
      require(tape.gradient(x * x, x).dense().item() == 6, "a gradient in a child");
      require(td::sum(td::matmul(td::ones({2, 2}), td::ones({2, 2}))).item() == 8, "a product in a child");
    });
  stop = true;
  for (std::thread& t : others)
    t.join();
}
