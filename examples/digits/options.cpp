// Parses the command line. A value may follow its option as the next argument or after an equals sign.
#include "options.h"

#include <charconv>
#include <filesystem>
#include <limits>
#include <string_view>

#include <fmt/format.h>

#include "../common/example.h"

const char* const kHelp = R"(digits: trains small networks on handwritten digits and tests them on others

  --model NAME  mlp, which sees the pixels as a list, cnn, which sees a picture, or both (both)
  --epochs N    passes over the training digits (30)
  --batch N     digits in a step (32)
  --seed N      of the first weights and the order of the digits (1)
  --threads N   threads that compute; the result does not depend on it (1)
  --replicas N  replicas that each take a part of every batch, on threads of their own; mpi: each rank of the MPI job is one,
                as in mpirun -np 4 digits --replicas mpi (1)
  --recorded    replays the training step instead of running it anew for each batch; the result has the same bits
  --data FILE   the digits (examples/data/digits.csv.gz)
  --plot FILE   where the loss curves are written, as SVG (loss.svg beside the program)
  --tape FILE   where the tape of a training step is written, for Graphviz, and drawn as SVG beside it
                if Graphviz is there (tape.dot beside the program); with both networks, the cnn's
  --weights FILE
                where the trained weights are written, in the safetensors format (nowhere)
  --log FOLDER  where a log of each network's training is written, which scripts/report shows (nowhere)
  --help        this text
)";

namespace {

namespace fs = std::filesystem;

template <class T> T number(std::string_view option, std::string_view text, T lowest, T highest) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < lowest || value > highest)
    throw WrongOption(
        fmt::format("{} takes a whole number from {} to {}: \"{}\"", option, lowest, highest, text));
  return value;
}

// The source folder that the program was built from, or else the current folder.
std::string default_data() {
  const std::string data = example_data("digits.csv.gz");
  return fs::exists(data) ? data : "examples/data/digits.csv.gz";
}

std::string beside_program(const char* name) {
  std::error_code unknown;
  return (fs::read_symlink("/proc/self/exe", unknown).parent_path() / name).string();
}

void choose_model(Options& options, std::string_view name) {
  if (name != "mlp" && name != "cnn" && name != "both")
    throw WrongOption(fmt::format("--model takes mlp, cnn or both: \"{}\"", name));
  options.mlp = name != "cnn";
  options.cnn = name != "mlp";
}

int replicas(std::string_view text) { return text == "mpi" ? 0 : number("--replicas", text, 1, 1024); }

}   // namespace

Options parse_options(int argc, char** argv) {
  Options options;
  options.data = default_data();
  options.plot = beside_program("loss.svg");
  options.tape = beside_program("tape.dot");
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i], option = argument.substr(0, argument.find('='));
    const auto value = [&]() -> std::string_view {
      if (option.size() < argument.size()) return argument.substr(option.size() + 1);
      if (i + 1 == argc) throw WrongOption(fmt::format("{} needs a value", option));
      return argv[++i];
    };
    if (argument == "--help")
      options.help = true;
    else if (option == "--model")
      choose_model(options, value());
    else if (option == "--epochs")
      options.epochs = number<std::int64_t>(option, value(), 1, 100'000);
    else if (option == "--batch")
      options.batch = number<std::int64_t>(option, value(), 1, 100'000);
    else if (option == "--seed")
      options.seed = number<std::uint64_t>(option, value(), 0, std::numeric_limits<std::uint64_t>::max());
    else if (option == "--threads")
      options.threads = number(option, value(), 1, 1024);
    else if (option == "--replicas")
      options.replicas = replicas(value());
    else if (argument == "--recorded")
      options.recorded = true;
    else if (option == "--data")
      options.data = value();
    else if (option == "--plot")
      options.plot = value();
    else if (option == "--tape")
      options.tape = value();
    else if (option == "--weights")
      options.weights = value();
    else if (option == "--log")
      options.log = value();
    else
      throw WrongOption(fmt::format("there is no option {}", argument));
  }
  return options;
}
