// Late destruction: static and thread-local objects that hold tensors, or compute with them in their
// destructors.
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "tapedeck/tapedeck.h"

namespace td = tapedeck;

namespace {

void require(bool ok, const char* what) {
  if (ok) return;
  std::fprintf(stderr, "exit: %s\n", what);
  std::_Exit(1);
}

double gradient_at(double x) {
  const td::Tensor t = td::full({3000}, x);
  td::GradientTape tape;
  tape.watch(t);
  return tape.gradient(td::sum(t * t), t).dense().at({2999});
}

// Its destructor computes while the process or a thread ends, and releases a tensor of another thread.
struct Late {
  td::Tensor held;
  ~Late() {
    require(gradient_at(3) == 6, "a gradient while objects are destroyed");
    require(!held.defined() || held.at({1}) == 1, "a tensor that was held");
  }
};

Late before_everything;   // destroyed after all of the library's state for this thread
thread_local Late of_thread;

struct Everything {
  td::Tensor small = td::tensor({1.0, 2.0}), large = td::ones({1000, 100});
  td::Variable variable{td::ones({200}), {.name = "static"}};
  td::Adam adam;
  td::GradientTape tape{{.persistent = true}};
  td::Tensor loss = td::sum(variable * variable);
  td::Gradient gradient = tape.gradient(loss, variable);
};

Everything& everything() {
  static Everything all;
  return all;
}

void use_thread_locals() {
  of_thread.held =
      td::ones({5});   // constructed before the library registers its thread-exit handler, and after
  thread_local td::Tensor large = td::ones({5000});
  thread_local td::GradientTape tape;
  tape.watch(large);
  thread_local const td::Tensor y = td::exp(large) * large;
  require(y.at({1}) > 2.7, "a tensor of the thread");
}

}   // namespace

int main() {
  before_everything.held = td::ones({4000});
  everything().adam.apply_gradients({{everything().gradient, everything().variable}});
  require(everything().adam.slot(everything().variable, "m").defined(), "a slot");
  for (int i = 0; i < 20; ++i)
    std::thread(use_thread_locals).join();
  use_thread_locals();
  td::set_num_threads(2);
  require(td::sum(td::ones({1000, 3000})).item() == 3e6, "a sum on two threads");
}
