// Registers pthread_atfork handlers when the library is loaded.
#include "core/fork.h"

#include <pthread.h>
#include <atomic>

namespace tapedeck {

constinit std::mutex warnings_lock, code_lock, rare_lock, memory_lock;

namespace {

constinit std::atomic<bool> is_child{false};

void acquire() {
  warnings_lock.lock();
  code_lock.lock();
  rare_lock.lock();
  memory_lock.lock();
}

void release() {
  memory_lock.unlock();
  rare_lock.unlock();
  code_lock.unlock();
  warnings_lock.unlock();
}

[[gnu::constructor]] void watch_forks() {
  pthread_atfork(acquire, release, [] { release(), is_child = true; });
}

}   // namespace

bool forked() { return is_child.load(std::memory_order_relaxed); }

}   // namespace tapedeck
