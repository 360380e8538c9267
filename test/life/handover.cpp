// Tensors passed to other threads: freed while the thread that made them runs and after it has ended, by
// threads that do nothing else. Their memory must be reused.
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "../resident.h"
#include "core/sanitizers.h"
#include "tapedeck/tapedeck.h"

namespace td = tapedeck;
using tapedeck::kAddressSanitizer;

namespace {

void require(bool ok, const char* what) {
  if (ok) return;
  std::fprintf(stderr, "handover: %s\n", what);
  std::_Exit(1);
}

constexpr int kSmall = 2000, kLarge = 20;

std::vector<td::Tensor> make() {
  std::vector<td::Tensor> list;
  for (int i = 0; i < kSmall; ++i)
    list.push_back(td::tensor(1.0 * i));
  for (int i = 0; i < kLarge; ++i)
    list.push_back(td::full({10'000}, i));
  return list;
}

void check(const std::vector<td::Tensor>& list) {
  for (int i = 0; i < kSmall; ++i)
    require(list[static_cast<std::size_t>(i)].item() == i, "a small tensor of another thread");
  for (int i = 0; i < kLarge; ++i)
    require(list[static_cast<std::size_t>(kSmall + i)].at({9'999}) == i, "a large tensor of another thread");
}

// Early in the process: this depends on the number of recorders that have ended.
void ends_elsewhere_after_the_first_tape() {
  { const td::GradientTape first; }
  const td::Tensor x = td::ones({3});
  td::GradientTape tape;
  tape.watch(x);
  td::Tensor y = x * x;
  std::thread([gone = std::move(y)]() mutable { gone = {}; }).join();
  require(tape.size() == 0, "an entry is freed when its output ends on another thread");
}

void made_elsewhere_freed_here() {
  std::vector<td::Tensor> list;
  std::thread([&] { list = make(); }).join();
  check(list);
}
void made_here_freed_elsewhere() {
  std::vector<td::Tensor> list = make();
  std::thread([gone = std::move(list)]() mutable { gone.clear(); }).join();
}
void made_and_freed_by_two_others() {
  std::vector<td::Tensor> list;
  std::thread([&] { list = make(); }).join();
  std::thread([&] { list.clear(); }).join();
}
void made_by_a_thread_that_still_runs() {
  std::vector<td::Tensor> list = make(), copy = list;
  std::thread other([&] { check(list), list.clear(); });
  check(copy);
  copy.clear();
  other.join();
}

}   // namespace

int main() {
  ends_elsewhere_after_the_first_tape();
  const std::int64_t live = td::live_bytes();
  long warm = 0;
  for (int round = 0; round < 60; ++round) {
    made_elsewhere_freed_here();
    made_here_freed_elsewhere();
    made_and_freed_by_two_others();
    made_by_a_thread_that_still_runs();
    require(td::live_bytes() == live, "live bytes came back");
    if (round == 20 && !kAddressSanitizer) warm = td::test::resident_pages();
  }
  // If small tensors leaked in each round, two rounds would be 40 MB.
  require(kAddressSanitizer || td::test::resident_pages() - warm < 2500,
          "memory came back");   // the sanitizer delays reuse
}
