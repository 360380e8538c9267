// What the examples have in common: three options, claims that may fail, a picture, and a clock.
#pragma once
#include <fstream>
#include <functional>
#include <string>

#include "picture.h"

namespace tapedeck {
struct Agreement;
}

struct Run {
  bool quick = false;   // --short: as small as still shows the idea
  Picture picture;      // written to NAME.svg in the folder of --out

  /// Says whether something that the example claims is so. What fails makes the program's status 1.
  void claim(bool holds, const std::string& what);
  /// The same of a derivative and differences, with what they are.
  void claim(const tapedeck::Agreement& agreement, const std::string& what);
  bool failed = false;
};

/// The main function of an example: reads --short, --out FOLDER (made where it is missing) and --help, runs,
/// writes the picture, and gives the status: 0, 1 for a claim that failed or an exception, 2 for a wrong
/// option.
int run_example(int argc, char** argv, const char* about, const std::function<void(Run&)>& example);

/// Seconds of the processor that f takes: what else the machine does counts little. They are shown, but no
/// claim is made of them, since they differ from run to run.
double cpu_seconds(const std::function<void()>& f);

/// The path of a file in examples/data of the sources that the program was built from.
std::string example_data(const std::string& name);

/// A file that is opened before the work whose result it gets. Throws FileError where it cannot be written.
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
