// Command-line options of the small examples.
#include "example.h"

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <sstream>
#include <string_view>

#include <fmt/format.h>

#include "tapedeck/error.h"
#include "tapedeck/gradcheck.h"

namespace {

constexpr const char* kHelp =
    "{}: {}\n\n"
    "  --short       a small run\n"
    "  --time        only the seconds of a training step, where the example has layers; no picture\n"
    "  --out FOLDER  where the picture is written (the current folder)\n"
    "  --help        this text\n";

}   // namespace

void Run::claim(bool holds, const std::string& what) {
  fmt::print("{}: {}\n", holds ? "holds" : "FAILS", what);
  failed = failed || !holds;
}

void Run::claim(const tapedeck::Agreement& agreement, const std::string& what) {
  std::ostringstream text;
  text << agreement;
  claim(static_cast<bool>(agreement), fmt::format("{}: {}", what, text.str()));
}

bool Run::only_times(const std::function<void()>& step) const {
  if (!time) return false;
  for (int i = 0; i < 5; ++i)   // warm-up: the first steps create slots and buffers
    step();
  std::vector<double> seconds(quick ? 5 : 21);
  for (double& s : seconds)
    s = cpu_seconds(step);
  std::nth_element(seconds.begin(), seconds.begin() + std::ssize(seconds) / 2, seconds.end());
  fmt::print("seconds of a step: {:.6g}\n", seconds[seconds.size() / 2]);
  return true;
}

int run_example(int argc, char** argv, const char* about, const std::function<void(Run&)>& example) {
  const std::string name = std::filesystem::path(argv[0]).filename().string();
  try {
    Run run;
    std::string folder = ".";
    for (int i = 1; i < argc; ++i) {
      const std::string_view option = argv[i];
      if (option == "--help") {
        fmt::print(fmt::runtime(kHelp), name, about);
        return 0;
      }
      if (option == "--short") {
        run.quick = true;
      } else if (option == "--time") {
        run.time = true;
      } else if (option == "--out" && i + 1 < argc) {
        folder = argv[++i];
      } else {
        fmt::print(stderr, "{}: {} {}; see --help\n", name,
                   option == "--out" ? "a folder is missing after" : "there is no option", option);
        return 2;
      }
    }
    if (run.time) {
      example(run);
      return run.failed;
    }
    std::filesystem::create_directories(folder);
    Output file(fmt::format("{}/{}.svg", folder, name));
    example(run);
    run.picture.write(file.stream());
    file.finish();
    fmt::print("picture: {}\n", file.path());
    return run.failed;
  } catch (const std::exception& e) {
    fmt::print(stderr, "{}: {}\n", name, e.what());
    return 1;
  }
}

double cpu_seconds(const std::function<void()>& f) {
  const std::clock_t start = std::clock();
  f();
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

Output::Output(const std::string& path) : path_(path), stream_(path) { check(); }

void Output::finish() {
  stream_.flush();
  check();
}

void Output::check() const {
  if (!stream_) throw tapedeck::FileError(fmt::format("cannot write {}", path_));
}
