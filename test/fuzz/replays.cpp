// Makes random programs, records each, and replays it with other inputs: results and variables must have the
// bits of the program itself, and the inputs of a replay must stay unchanged. A failure names the seed and
// the number of the program, which repeat it: replays --seed S --only N. --without NAME,NAME leaves functions
// out.
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <iostream>

#include "options.h"
#include "replays.h"

namespace tapedeck::replays {
namespace {

char now[256];
void on_signal(int signal) {
  (void)!write(2, now, std::strlen(now));
  (void)!write(2, signal == SIGPROF ? "replays: too slow\n" : "replays: crashed\n", 17 + (signal == SIGPROF));
  _exit(1);
}

class Shrinker {
 public:
  explicit Shrinker(Program& p, std::uint64_t seed) : p_(p), seed_(seed) {}

  void shrink() {
    for (bool* option : {&p_.wrong_indices, &p_.elsewhere, &p_.specials, &p_.repeats, &p_.into, &p_.set}) {
      if (!*option) continue;
      *option = false;
      if (!fails()) *option = true;
    }
    for (std::size_t i = p_.results.size(); i-- > 0 && p_.results.size() > 1;) {
      const std::vector<int> before = p_.results;
      p_.results.erase(p_.results.begin() + static_cast<std::ptrdiff_t>(i));
      if (!fails()) p_.results = before;
    }
    freeze(p_.nodes);
    freeze(p_.nodes);
  }

 private:
  // Nodes become constants where the failure stays.
  void freeze(std::vector<Node>& nodes) {
    for (auto n = nodes.rbegin(); n != nodes.rend(); ++n) {
      if (n->frozen) continue;
      n->frozen = true;
      if (fails()) continue;
      n->frozen = false;
      freeze(n->body);
    }
  }
  bool fails() {
    std::uint64_t replays = 0;
    try {
      const std::string fault = check_program(p_, seed_, replays);
      return !fault.empty() && fault.find("the program itself") == std::string::npos;
    } catch (const std::exception&) {
      return false;
    }
  }

  Program& p_;
  std::uint64_t seed_;
};

int fuzz_all(const fuzz::Options& o) {
  for (const int s : {SIGSEGV, SIGFPE, SIGABRT, SIGILL, SIGBUS, SIGPROF})
    signal(s, on_signal);
  set_warning_handler([](std::string_view) {});
  set_num_threads(1);
  std::uint64_t programs = 0, replays = 0, failures = 0;
  fuzz::for_each_number(o, [&](std::uint64_t n) {
    std::snprintf(now, sizeof now, "replays: to repeat: replays --seed %llu --only %llu\n",
                  static_cast<unsigned long long>(o.seed), static_cast<unsigned long long>(n));
    const itimerval limit{{0, 0}, {120, 0}};
    setitimer(ITIMER_PROF, &limit, nullptr);
    Program p = draw_program(o.seed, n, o.without);
    if (o.verbose) std::cerr << text_of(p) << std::flush;
    const std::uint64_t seed = o.seed * 1000003 + n;
    const auto fault_of = [&](std::uint64_t& count) {
      try {
        return check_program(p, seed, count);
      } catch (const std::exception& e) {
        return std::string("throws: ") + e.what();
      }
    };
    const std::string fault = fault_of(replays);
    ++programs;
    if (fault.empty()) return;
    ++failures;
    Shrinker(p, seed).shrink();
    std::uint64_t again = 0;
    const std::string last = fault_of(again);
    std::cout << "replays: " << (last.empty() ? fault : last) << "\n" << text_of(p) << now << std::endl;
  });
  std::cout << "replays: seed " << o.seed << ": " << programs << " programs, " << replays << " replays, "
            << failures << " failures\n";
  return failures > 0;
}

}   // namespace
}   // namespace tapedeck::replays

int main(int argc, char** argv) {
  return tapedeck::replays::fuzz_all(tapedeck::fuzz::read_options("programs", argc, argv, "replays"));
}
