// Common parts of the examples: four options, claims that are verified, a picture, and a clock.
#pragma once
#include <fstream>
#include <functional>
#include <string>

#include "picture.h"

namespace tapedeck {
struct Agreement;
}

struct Run {
  bool quick = false;   // --short: the smallest problem that still demonstrates the idea
  bool time = false;    // --time: only the time of a training step, for scripts/bench examples
  Picture picture;      // written to NAME.svg in the folder of --out

  /// Prints whether a claim of the example holds. If it fails, the exit status is 1.
  void claim(bool holds, const std::string& what);
  /// Prints whether a derivative agrees with finite differences. If it does not, the exit status is 1.
  void claim(const tapedeck::Agreement& agreement, const std::string& what);
  bool failed = false;

  /// With --time, runs the step repeatedly, prints its median time in seconds, and returns true: the example
  /// then ends. Otherwise returns false.
  bool only_times(const std::function<void()>& step) const;
};

/// The main function of an example: parses --short, --time, --out FOLDER (created if missing) and --help,
/// runs the example, writes the picture, and returns the exit status: 0, 1 for a failed claim or an
/// exception, 2 for an invalid option.
int run_example(int argc, char** argv, const char* about, const std::function<void(Run&)>& example);

/// The processor time of f in seconds. Programs print it without claims about it, since it differs from run
/// to run.
double cpu_seconds(const std::function<void()>& f);

/// The path of a file in examples/data of the sources that the program was built from.
std::string example_data(const std::string& name);

/// An output file that is opened before the computation of its contents. Throws FileError if it cannot be
/// written.
class Output {
 public:
  explicit Output(const std::string& path);
  std::ostream& stream() { return stream_; }
  const std::string& path() const { return path_; }
  void finish();

 private:
  void check() const;

  std::string path_;
  std::ofstream stream_;
};
