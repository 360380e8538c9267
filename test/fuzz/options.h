// The command line of programs that make random calls or programs.
#pragma once
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <limits>
#include <random>
#include <string>

namespace tapedeck::fuzz {

struct Options {
  std::uint64_t seed = std::random_device()();
  std::uint64_t from = 0, end = std::numeric_limits<std::uint64_t>::max();
  double seconds = std::numeric_limits<double>::infinity();
  std::string function, without;   // without: names that are left out, with commas between
  bool report = false, verbose = false;
};

/// `things` names what is counted; it is also the name of the program, unless one is given.
inline Options read_options(std::string_view things, int argc, char** argv, std::string_view program = {}) {
  Options o;
  const std::string name(things);
  const std::string usage = "usage: " + std::string(program.empty() ? things : program) +
                            " [--seed S] [--only N | --from N] [--" + name +
                            " N] [--seconds T] [--function NAME] [--without NAMES] [--report] [--verbose]";
  std::uint64_t count = 0;
  for (int i = 1; i < argc; ++i) {
    const std::string_view a = argv[i];
    const auto value = [&] {
      if (++i == argc) std::cerr << usage << "\n", std::exit(2);
      return argv[i];
    };
    if (a == "--seed")
      o.seed = std::strtoull(value(), nullptr, 10);
    else if (a == "--only")
      o.from = std::strtoull(value(), nullptr, 10), count = 1, o.verbose = true;
    else if (a == "--from")
      o.from = std::strtoull(value(), nullptr, 10);
    else if (a == "--" + name)
      count = std::strtoull(value(), nullptr, 10);
    else if (a == "--seconds")
      o.seconds = std::strtod(value(), nullptr);
    else if (a == "--function")
      o.function = value();
    else if (a == "--without")
      o.without = value();
    else if (a == "--report")
      o.report = true;
    else if (a == "--verbose")
      o.verbose = true;
    else
      std::cerr << usage << "\n", std::exit(2);
  }
  if (count) o.end = o.from + count;
  return o;
}

/// Calls f with each number of the range, until the time is over.
inline void for_each_number(const Options& o, const std::function<void(std::uint64_t)>& f) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  for (std::uint64_t n = o.from; n < o.end; ++n) {
    f(n);
    if (std::chrono::duration<double>(Clock::now() - start).count() >= o.seconds) break;
  }
}

}   // namespace tapedeck::fuzz
