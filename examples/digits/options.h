// What the command line asks for.
#pragma once
#include <cstdint>
#include <stdexcept>
#include <string>

struct Options {
  bool mlp = true, cnn = true;   // which networks
  std::int64_t epochs = 30;
  std::int64_t batch = 32;
  std::uint64_t seed = 1;
  int threads = 1;
  int replicas = 1;         // threads that each take a part of every batch; 0: the ranks of an MPI job do
  std::string data;         // found by itself
  std::string plot, tape;   // beside the program
  std::string weights;      // empty: not written
  bool help = false;
};

/// An option that does not exist, or a value that it does not take.
struct WrongOption : std::runtime_error {
  using std::runtime_error::runtime_error;
};

extern const char* const kHelp;

Options parse_options(int argc, char** argv);
