// Calls public functions with random arguments, and differentiates what comes out, in a library with the
// address and undefined-behaviour sanitizers. A call may end with a result, a tapedeck::Error or
// std::bad_alloc, within 5 s of processor time, which are 2 without the sanitizers; all else ends the program
// with the seed and the number of the call, which repeat it: calls --seed S --only N.
#include <sanitizer/allocator_interface.h>
#include <sanitizer/common_interface_defs.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <exception>
#include <iostream>
#include <map>
#include <new>

#include "calls.h"
#include "options.h"
#include "tensors_of.h"

// The memory of one call is limited: more than this is refused, so that what a large extent asks for is
// computed within the limit of time.
namespace {

constexpr std::int64_t kMostMemory = 16 << 20;
std::atomic<std::int64_t> live{0}, live_before{0};

void count_allocation(const volatile void*, size_t size) { live += static_cast<std::int64_t>(size); }
void count_release(const volatile void* p) {
  live -= static_cast<std::int64_t>(__sanitizer_get_allocated_size(const_cast<const void*>(p)));
}
bool is_too_much(std::size_t bytes) {
  return bytes > kMostMemory || live - live_before + static_cast<std::int64_t>(bytes) > kMostMemory;
}
void* allocate(std::size_t bytes, std::size_t alignment) {
  void* p = nullptr;
  if (is_too_much(bytes) || posix_memalign(&p, std::max(alignment, sizeof(void*)), bytes ? bytes : 1) != 0)
    throw std::bad_alloc();
  return p;
}

}   // namespace

void* operator new(std::size_t bytes) { return allocate(bytes, alignof(std::max_align_t)); }
void* operator new(std::size_t bytes, std::align_val_t a) {
  return allocate(bytes, static_cast<std::size_t>(a));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept try {
  return operator new(bytes);
} catch (const std::bad_alloc&) {
  return nullptr;
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
extern "C" void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept {
  void* p = nullptr;
  return is_too_much(bytes) || posix_memalign(&p, alignment, bytes) != 0 ? nullptr : p;
}

namespace tapedeck::fuzz {
namespace {

constexpr int kMostSeconds = 5;   // for two million numbers of a gamma distribution, too

// What to print when a call fails in any way.
char now[256];
void say_now() { (void)!write(2, now, std::strlen(now)); }
[[noreturn]] void fail(const std::string& why, const std::string& call) {
  std::cerr << "calls: " << why << "\n  " << call << std::endl;
  say_now();
  std::_Exit(1);
}
void on_timeout(int) {
  constexpr char text[] = "calls: more than 5 s of processor time\n";
  (void)!write(2, text, sizeof text - 1);
  __sanitizer_print_stack_trace();
  say_now();
  std::_Exit(1);
}
void set_timer(int seconds) {
  const itimerval t{{0, 0}, {seconds, 0}};
  setitimer(ITIMER_PROF, &t, nullptr);
}

std::vector<Tensor> trainable(std::vector<Tensor> list) {
  std::erase_if(list, [](const Tensor& x) { return !x.defined() || !is_trainable(x.dtype()); });
  return list;
}
std::vector<Tensor> dense(const std::vector<Gradient>& list) {
  std::vector<Tensor> all;
  for (const Gradient& g : list)
    if (g.defined()) all.push_back(g.dense());
  return all;
}
void read(const std::vector<Tensor>& list) {   // all elements, where the sanitizer sees it
  for (const Tensor& x : list)
    if (x.defined() && x.size() && x.size() < 1 << 16 && !is_complex(x.dtype())) (void)x.to_vector<double>();
}

/// How one call went.
enum Outcome { result, error, no_memory };

class Calls {
 public:
  explicit Calls(Options o) : options_(std::move(o)), functions_(all_functions()) {}

  // Makes call `number`; returns whether it was one of the function that was asked for.
  bool make(std::uint64_t number) {
    Draw d(options_.seed, number);
    const std::size_t which = d.bits() % functions_.size();
    Function& f = *functions_[which];
    if (!options_.function.empty() && f.name() != options_.function) return false;
    std::snprintf(now, sizeof now, "calls: to repeat %s: calls --seed %llu --only %llu\n",
                  std::string(f.name()).c_str(), static_cast<unsigned long long>(options_.seed),
                  static_cast<unsigned long long>(number));
    const bool valid = d.chance(50);
    // What arguments are made of may be too much, too.
    if (guarded(f, "drawing arguments", [&] {
          f.draw(d);
          for (int spoilt = valid ? 0 : d.chance(75) ? 1 : 2; spoilt-- > 0;)
            f.spoil(d);
        }) != result)
      return true;
    if (options_.verbose) std::cerr << (valid ? "valid " : "spoilt ") << f.text() << std::endl;
    std::vector<Tensor> y;
    const Outcome first = guarded(f, "the call", [&] { read(y = f.call()); });
    ++calls_;
    auto& count = counts_[f.name()];
    ++count.calls[valid];
    count.results[valid] += first == result;
    if (first == result) differentiate(f, d, y);
    y.clear();
    f.clear();
    return true;
  }

  std::uint64_t calls() const { return calls_; }
  std::uint64_t derivatives() const { return derivatives_; }
  /// Prints how many of the calls gave a result; returns whether a function never did.
  bool report() const {
    bool useless = false;
    for (const auto& f : functions_) {
      const auto at = counts_.find(f->name());
      const Count c = at == counts_.end() ? Count{} : at->second;
      if (options_.report)
        std::cout << f->name() << ": " << c.results[1] << " results of " << c.calls[1] << " meant calls, "
                  << c.results[0] << " of " << c.calls[0] << " spoilt ones\n";
      if (c.calls[1] > 100 && c.results[1] * 5 < c.calls[1]) {
        std::cout << "calls: " << f->name() << " gives results for " << c.results[1] << " of " << c.calls[1]
                  << " meant calls only\n";
        useless = true;
      }
    }
    return useless;
  }

 private:
  struct Count {
    std::uint64_t calls[2] = {}, results[2] = {};
  };

  template <class F> Outcome guarded(Function& f, std::string_view what, const F& act) {
    live_before = live.load();
    set_timer(kMostSeconds);
    Outcome outcome = result;
    std::string wrong;
    try {
      act();
    } catch (const InternalError& e) {
      wrong = std::string("InternalError: ") + e.what();
    } catch (const Error& e) {
      outcome = error;
      if (options_.verbose) std::cerr << what << ": " << e.what() << std::endl;
    } catch (const std::bad_alloc& e) {
      outcome = no_memory;
      if (options_.verbose) std::cerr << what << ": " << e.what() << std::endl;
    } catch (const std::exception& e) {
      wrong = e.what();
    }
    set_timer(0);
    live_before = live.load();
    if (!wrong.empty()) fail(std::string(what) + " threw " + wrong, f.text());
    return outcome;
  }

  void differentiate(Function& f, Draw& d, const std::vector<Tensor>& y) {
    const std::vector<Tensor> x = trainable(f.tensors());
    if (x.empty() || trainable(y).empty()) return;
    std::int64_t inputs = 0, outputs = 0;
    for (const Tensor& t : x)
      inputs += t.size();
    for (const Tensor& t : y)
      outputs += t.defined() ? t.size() : 0;
    if (inputs + outputs > 1 << 14) return;
    const bool few = inputs <= 64 && outputs <= 64;
    for (int i = 0; i < 2; ++i) {
      const int way = d.in(0, few ? 5 : 3);
      ++derivatives_;
      constexpr std::string_view names[] = {"the gradient",          "the tangent",
                                            "the second derivative", "forward over reverse",
                                            "the Jacobian",          "the Jacobian, row by row"};
      guarded(f, names[way], [&] {
        if (way == 0) read(gradients(f, x));
        if (way == 1) read(tangents(f, x, d, false));
        if (way == 2) second(f, x);
        if (way == 3) read(tangents(f, x, d, true));
        if (way >= 4) jacobians(f, x, way == 4);
      });
    }
  }

  static std::vector<Tensor> gradients(Function& f, const std::vector<Tensor>& x) {
    GradientTape tape;
    for (const Tensor& t : x)
      tape.watch(t);
    return dense(tape.gradient(Targets(trainable(f.call())), Sources(x)));
  }
  static void second(Function& f, const std::vector<Tensor>& x) {
    GradientTape outer;
    for (const Tensor& t : x)
      outer.watch(t);
    const std::vector<Tensor> g = gradients(f, x);
    if (!g.empty()) read(dense(outer.gradient(Targets(g), Sources(x))));
  }
  static std::vector<Tensor> tangents(Function& f, const std::vector<Tensor>& x, Draw& d, bool of_gradients) {
    std::vector<Tensor> dx, some;
    std::vector<std::uint64_t> ids;
    for (const Tensor& t : x) {
      if (std::find(ids.begin(), ids.end(), t.id()) != ids.end()) continue;   // a primal is given once
      ids.push_back(t.id());
      some.push_back(t);
      dx.push_back(d.tensor(t.shape(), t.dtype()));
    }
    ForwardAccumulator forward{Sources(some), std::span<const Tensor>(dx)};
    const std::vector<Tensor> y = of_gradients ? gradients(f, x) : trainable(f.call());
    return test::tensors_of(forward.jvp(Sources(y)));
  }
  static void jacobians(Function& f, const std::vector<Tensor>& x, bool vectorize) {
    GradientTape tape({.persistent = true});
    for (const Tensor& t : x)
      tape.watch(t);
    const std::vector<Tensor> y = trainable(f.call());
    for (const Tensor& t : y)
      read(test::tensors_of(tape.jacobian(t, Sources(x), {.vectorize = vectorize})));
  }

  Options options_;
  std::vector<std::unique_ptr<Function>> functions_;
  std::map<std::string_view, Count> counts_;
  std::uint64_t calls_ = 0, derivatives_ = 0;
};

int run(const Options& o) {
  __sanitizer_install_malloc_and_free_hooks(count_allocation, count_release);
  __sanitizer_set_death_callback(say_now);
  signal(SIGPROF, on_timeout);
  set_warning_handler([](std::string_view) {});
  // What the library and those below it keep for good is not charged to a call.
  (void)matmul(ones({64, 64}), ones({64, 64}));
  Calls calls(o);
  for_each_number(o, [&](std::uint64_t n) { calls.make(n); });
  std::cout << "calls: seed " << o.seed << ": " << calls.calls() << " calls, " << calls.derivatives()
            << " derivatives, " << std::clock() / CLOCKS_PER_SEC << " s of processor time\n";
  return calls.report();
}

}   // namespace
}   // namespace tapedeck::fuzz

int main(int argc, char** argv) {
  return tapedeck::fuzz::run(tapedeck::fuzz::read_options("calls", argc, argv));
}
