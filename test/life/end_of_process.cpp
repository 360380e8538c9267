// Products and convolutions while the process ends: by threads that nobody waits for, and in destructors of
// globals; and a process without memory for the buffers of OpenBLAS, which ends all the same. Each in a
// process of its own, several times.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "tapedeck/tapedeck.h"

namespace td = tapedeck;

namespace {

void multiply() {
  const td::Tensor x = td::ones({200, 200});
  if (td::matmul(x, x).at({3, 5}) != 200) std::_Exit(2);
}
void multiply_transposed() {
  const td::Tensor x = td::ones({200, 200});
  if (td::matmul(x, x, {.transpose_a = true, .transpose_b = true}).at({3, 5}) != 200) std::_Exit(2);
}
void multiply_doubles() {
  const td::Tensor x = td::ones({200, 200}, td::DType::f64);
  if (td::matmul(x, x).at({3, 5}) != 200) std::_Exit(2);
}
void convolve(std::int64_t n) {
  const td::Tensor x = td::ones({2, n, n, 16}), k = td::ones({3, 3, 16, 32});
  if (td::conv2d(x, k).at({0, 4, 4, 0}) != 144) std::_Exit(2);
}
void convolve() { convolve(40); }
void convolve_others() {   // a geometry for each call
  static std::atomic<std::int64_t> n{40};
  convolve(n++ % 20 + 30);
}

struct Kind {
  const char* name;
  void (*compute)();
};
constexpr Kind kinds[] = {{"product", multiply},
                          {"transposed product", multiply_transposed},
                          {"product of doubles", multiply_doubles},
                          {"convolution", convolve},
                          {"convolutions", convolve_others}};

struct Late {
  void (*compute)() = nullptr;
  ~Late() {
    if (compute) compute();
  }
} late;   // destroyed after what has been made since main began

[[noreturn]] void exit_beside(void (*compute)()) {
  static std::atomic<int> done{0};
  for (int i = 0; i < 2; ++i)
    std::thread([compute] {
      for (;;)
        compute(), ++done;
    }).detach();
  while (done < 3)
    std::this_thread::yield();
  std::exit(0);
}

int run(const std::string& way, void (*compute)()) {
  if (way == "beside") exit_beside(compute);
  compute();
  late.compute = compute;
  return 0;
}

void limit(int resource, rlim_t most) {
  const rlimit both{most, most};
  setrlimit(resource, &both);
}

// The status of this program in another process.
int status_of(const char* way, const char* kind) {
  const pid_t child = fork();
  if (child == 0) {
    limit(RLIMIT_CPU, 20);   // it ends, however long it waits
    limit(RLIMIT_CORE, 0);
    execl("/proc/self/exe", "end_of_process", way, kind, nullptr);
    _exit(126);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

bool failed = false;
void expect_end(const char* way, const char* kind, int status) {
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
  std::fprintf(stderr, "end_of_process: %s, %s: status %#x\n", way, kind, static_cast<unsigned>(status));
  failed = true;
}

// A product within a limit of address space, which is set here, since packages crash that have no memory
// while they are loaded.
int without_memory(rlim_t megabytes) {
  limit(RLIMIT_AS, megabytes << 20);
  try {
    multiply_doubles();
    return 0;
  } catch (const std::bad_alloc&) {
    return 3;
  }
}

}   // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "without memory") == 0)
    return without_memory(static_cast<rlim_t>(std::atoi(argv[2])));
  if (argc == 3)
    for (const Kind& k : kinds)
      if (std::strcmp(k.name, argv[2]) == 0) return run(argv[1], k.compute);

  for (const char* way : {"beside", "late"})
    for (const Kind& k : kinds)
      for (int i = 0; i < 5; ++i)
        expect_end(way, k.name, status_of(way, k.name));

  for (int megabytes = 100; megabytes <= 400; megabytes += 25) {
    const int status = status_of("without memory", std::to_string(megabytes).c_str());
    if (WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 3)) continue;
    std::fprintf(stderr, "end_of_process: with %d MB: status %#x\n", megabytes,
                 static_cast<unsigned>(status));
    failed = true;
  }
  return failed;
}
