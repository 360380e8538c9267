// Command-line options of the small examples.
#include "example.h"

#include <ctime>
#include <filesystem>
#include <sstream>
#include <string_view>

#include <fmt/format.h>

#include "tapedeck/error.h"
#include "tapedeck/gradcheck.h"

void Run::claim(bool holds, const std::string& what) {
  fmt::print("{}: {}\n", holds ? "holds" : "FAILS", what);
  failed = failed || !holds;
}

void Run::claim(const tapedeck::Agreement& agreement, const std::string& what) {
  std::ostringstream text;
  text << agreement;
  claim(static_cast<bool>(agreement), fmt::format("{}: {}", what, text.str()));
}

int run_example(int argc, char** argv, const char* about, const std::function<void(Run&)>& example) {
  const std::string name = std::filesystem::path(argv[0]).filename().string();
  try {
    Run run;
    std::string folder = ".";
    for (int i = 1; i < argc; ++i) {
      const std::string_view option = argv[i];
      if (option == "--help") {
        fmt::print(
            "{}: {}\n\n  --short       a small run\n  --out FOLDER  where the picture is written (the "
            "current folder)\n  --help        this text\n",
            name, about);
        return 0;
      }
      if (option == "--short") {
        run.quick = true;
      } else if (option == "--out" && i + 1 < argc) {
        folder = argv[++i];
      } else {
        fmt::print(stderr, "{}: {} {}; see --help\n", name,
                   option == "--out" ? "a folder is missing after" : "there is no option", option);
        return 2;
      }
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
