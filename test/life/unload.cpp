// Repeated dlopen and dlclose of a module that uses the library, while threads that have used it still run.
// The library must stay loaded, since its code runs when these threads end. The program itself is not linked
// with it.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <future>
#include <thread>

namespace {

void require(bool ok, const char* what) {
  if (ok) return;
  const char* why = dlerror();
  std::fprintf(stderr, "unload: %s: %s\n", what, why ? why : "wrong");
  std::_Exit(1);
}

}   // namespace

int main(int, char** argv) {
  using Use = double (*)();
  double first = 0;
  for (int round = 0; round < 20; ++round) {
    void* module = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    require(module, "dlopen");
    const auto use = reinterpret_cast<Use>(dlsym(module, "use_library"));
    require(use, "dlsym");
    std::promise<double> result;
    std::promise<void> closed;
    std::thread other([&] {
      result.set_value(use());
      closed.get_future().wait();
    });   // its exit runs code of the library
    const double here = use(), there = result.get_future().get();
    if (round == 0) first = here;
    require(here == first && there == first, "a gradient");
    require(dlclose(module) == 0, "dlclose");
    require(dlopen("libtapedeck.so.0", RTLD_NOW | RTLD_NOLOAD), "the library stays");
    closed.set_value();
    other.join();
  }
}
