// Command-line options.
#pragma once
#include <cstdint>
#include <stdexcept>
#include <string>

struct Options {
  bool mlp = true, cnn = true;   // the networks to train
  std::int64_t epochs = 30;
  std::int64_t batch = 32;
  std::uint64_t seed = 1;
  int threads = 1;
  int replicas = 1;         // number of threads that each process a part of every batch; 0: the ranks of an
                            // MPI job
  bool recorded = false;    // whether the training step is a compiled function
  std::string data;         // by default found automatically
  std::string plot, tape;   // by default in the program's folder
  std::string weights;      // empty: not written
  std::string log;          // a folder; empty: not written
  bool help = false;
};

/// An option that does not exist, or a value that the option does not accept.
struct WrongOption : std::runtime_error {
  using std::runtime_error::runtime_error;
};

extern const char* const kHelp;

Options parse_options(int argc, char** argv);
