// Makes random programs of the library's functions and checks that all ways to differentiate them agree, and
// that differences confirm them. A failure names the seed and the number of the program, which repeat it:
// programs --seed S --only N.
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iostream>

#include "options.h"
#include "programs_check.h"
#include "tapedeck/op.h"

// A step that needs more memory than this is not taken.
extern "C" void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept {
  constexpr std::size_t most = 32 << 20;
  void* p = nullptr;
  return bytes > most || posix_memalign(&p, std::max(alignment, sizeof p), bytes) != 0 ? nullptr : p;
}

namespace tapedeck::fuzz {
namespace {

// Makes steps constants while the failure stays.
void simplify(std::vector<Step>& steps, const std::function<bool()>& fails) {
  for (auto s = steps.rbegin(); s != steps.rend(); ++s) {
    s->frozen = true;
    if (fails()) continue;
    s->frozen = false;
    simplify(s->body, fails);
  }
}

// Of the ops, those without a derivative are not recorded, so it is not known whether they ran.
void report_uses() {
  for (const auto& [name, u] : function_uses())
    std::cout << name << ": " << u.used << " of " << u.drawn << "\n";
  std::cout << "differentiable ops that were not recorded:";
  for (const ops::Family& family : ops::families())
    for (const Op* op : family.ops)
      if (op->rule.kind != RuleKind::none && op->rule.kind != RuleKind::undefined &&
          !ops_recorded().contains(op->name))
        std::cout << " " << op->name;
  std::cout << std::endl;
}

char now[256];
void on_signal(int signal) {
  (void)!write(2, now, std::strlen(now));
  (void)!write(2, signal == SIGPROF ? "programs: too slow\n" : "programs: crashed\n", 18);
  _exit(1);
}

int run(const Options& o) {
  for (const int s : {SIGSEGV, SIGFPE, SIGABRT, SIGILL, SIGBUS, SIGPROF})
    signal(s, on_signal);
  set_warning_handler([](std::string_view) {});
  std::uint64_t programs = 0, rough = 0, singular = 0, failures = 0;
  for_each_number(o, [&](std::uint64_t n) {
    std::snprintf(now, sizeof now, "programs: to repeat: programs --seed %llu --only %llu\n",
                  static_cast<unsigned long long>(o.seed), static_cast<unsigned long long>(n));
    const itimerval limit{{0, 0}, {60, 0}};
    setitimer(ITIMER_PROF, &limit, nullptr);
    Program p = draw_program(o.seed, n, o.function);
    if (o.verbose) std::cerr << text_of(p);
    const Verdict v = check_program(p);
    ++programs, rough += v.rough, singular += v.singular;
    const std::optional<Failure>& f = v.failure;
    if (!f) return;
    ++failures;
    simplify(p.steps, [&] {
      const auto now = check_program(p).failure;
      return now && now->check == f->check;
    });
    const auto last = check_program(p).failure;
    std::cout << "programs: " << f->check << ": " << (last ? last->what : f->what) << "\n"
              << text_of(p) << now << std::endl;
  });
  std::cout << "programs: seed " << o.seed << ": " << programs << " programs, " << rough << " not smooth, "
            << singular << " with infinite derivatives, " << failures << " failures\n";
  if (o.report) report_uses();
  return failures > 0;
}

}   // namespace
}   // namespace tapedeck::fuzz

int main(int argc, char** argv) {
  return tapedeck::fuzz::run(tapedeck::fuzz::read_options("programs", argc, argv));
}
