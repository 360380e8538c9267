// Runs every case of the benchmark programs, of the limits, and of libtorch (as installed and tuned),
// alternately on the same cores, each in its own process, and matches them by name. Arguments: suites. Prints
// a table of medians; with --json, also writes them to a file.
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>

#include "median.h"

using json = nlohmann::ordered_json;   // keeps the order of keys

namespace {

constexpr std::string_view kUsage = R"(usage: scripts/bench [suite...] [--json FILE] [--rounds N]
       scripts/bench ops [word...]
       scripts/bench derivatives [word...]
       scripts/bench layers [word...]
       scripts/bench halves
       scripts/bench function [word...]
       scripts/bench optimizers [word...]
       scripts/bench gradbench [word...] [--forms NAME,NAME] [--json FILE]
       scripts/bench examples [name...]
       scripts/bench models
       scripts/bench loops [word...]
       scripts/bench scaling [rounds]
  suites: overhead elementwise broadcast reduce matmul einsum train embedding memory rosenbrock jacobian functions map
          (all by default)
  --json FILE  write the figures to FILE, too
  --rounds N   how often each program runs; the figures are medians over the rounds (3)
  --threads N  tapedeck with N threads beside itself with one, and libtorch with N (1: beside the limits of one thread)
  ops          every op that libtorch has too, beside it, on one thread; only those whose names contain a word, if there are any
  derivatives  Hessians, their products and Jacobians beside libtorch in one process, on one thread; words as above
  layers       layers of tapedeck/nn.h in the same way
  optimizers   steps of optimizers in the same way
  halves       ops, reductions, gradients and matrix products of bf16 beside f32, on one thread
  function     compiled functions beside the functions themselves, on one thread; words as above
  gradbench    GradBench's evals beside derivatives by hand, ADOL-C and libtorch, on one thread; words as above; --forms: beside
               those by hand only these, as natural,expert
  examples     training steps of the examples with layers beside the same networks in python3-torch, on one thread
  models       replays of a formula beside numba, numexpr and TorchScript, where installed, on one thread
  loops        loops and branches in compiled functions beside eager mode and loops by hand, on one thread; words as above
  scaling      what a step of 1, 2 and 4 replicas costs, on threads and as ranks of MPI
)";

constexpr std::string_view kSuites[] = {"overhead", "elementwise", "broadcast", "reduce", "matmul",
                                        "einsum",   "train",       "embedding", "memory", "rosenbrock",
                                        "jacobian", "functions",   "map"};
constexpr std::string_view kPrograms[] = {"tape_bench",      "kernel_bench",     "train_bench",
                                          "rnn_bench",       "convnet_bench",    "embedding_bench",
                                          "memory_bench",    "rosenbrock_bench", "jacobian_bench",
                                          "functions_bench", "map_bench",        "map_plain_bench"};
constexpr std::string_view kRates[] = {"GB/s", "GFLOP/s"};

// The settings that make libtorch fastest: the widest vectors, an allocator that keeps large blocks, and a
// BLAS without its own thread pool.
constexpr const char* kAllocator = "/usr/lib/x86_64-linux-gnu/libtcmalloc_minimal.so.4";
constexpr const char* kBlas = "/usr/lib/x86_64-linux-gnu/openblas-openmp";

bool can_tune_torch() { return std::filesystem::exists(kAllocator) && std::filesystem::exists(kBlas); }
/// The value of ATEN_CPU_CAPABILITY. If it is set, libtorch uses these vectors without asking the processor.
const char* widest_vectors() { return __builtin_cpu_supports("avx512f") ? "avx512" : "avx2"; }
constexpr const char* kNotTuned =
    "bench: libtcmalloc-minimal4 and libopenblas0-openmp are not installed, so libtorch is not tuned\n";

/// Where to find libtorch's figure for a case: the process to run, and the first and fourth field of its
/// output line.
struct Peer {
  std::string_view name, process, peer_case, metric;
  std::string_view size = {};   // set if libtorch's program writes the size differently
  std::string_view note = {};   // says how libtorch's work differs
};
constexpr Peer kPeers[] = {
    {"overhead/no_gradient", "chain", "chain_active", "inference_ns_per_op_med"},
    {"overhead/recorded", "chain", "chain_active", "record_ns_per_op_med"},
    {"overhead/backward", "chain", "chain_active", "backward_ns_per_op_med"},
    {"elementwise/add", "elementwise", "add", "alloc_GBps_med"},
    {"elementwise/tanh", "elementwise", "tanh", "nograd_fwd_us_med"},
    {"elementwise/exp", "reduce", "exp", "us_med", "1000x1000"},
    {"elementwise/tanh_xwb_sum", "elementwise", "tanh_xwb_sum", "nograd_fwd_us_med"},
    {"elementwise/tanh_xwb_sum_grad", "elementwise", "tanh_xwb_sum", "fwd_bwd_us_med"},
    {"broadcast/add_row", "reduce", "bcast_add_row", "us_med"},
    {"broadcast/add_column", "reduce", "bcast_add_col", "us_med"},
    {"broadcast/add_row_grad", "reduce", "bcast_add_row", "fwd_bwd_us_med"},
    {"broadcast/add_column_grad", "reduce", "bcast_add_col", "fwd_bwd_us_med"},
    {"reduce/sum_all", "reduce", "sum_all", "us_med"},
    {"reduce/sum_axis0", "reduce", "sum_axis0", "us_med"},
    {"reduce/sum_axis1", "reduce", "sum_axis1", "us_med"},
    {"reduce/transpose", "reduce", "transpose_copy", "us_med"},
    {"reduce/softmax", "reduce", "softmax_axis1", "us_med"},
    {"matmul/matmul", "matmul", "matmul", "GFLOPs_med"},
    {"matmul/matmul_grad", "matmul", "matmul_fwd_bwd", "GFLOPs_med"},
    {"einsum/batched_product", "einsum", "batched_product", "us_med"},
    {"einsum/attention", "einsum", "attention", "us_med"},
    {"einsum/outer_product", "einsum", "outer_product", "us_med"},
    {"train/mlp_step", "mlp", "mlp_784-512-512-10", "step_us_med"},
    {"train/mlp_forward", "mlp", "mlp_784-512-512-10", "nograd_fwd_us_med"},
    {"train/mlp_gradients", "mlp", "mlp_784-512-512-10", "fwd_bwd_us_med"},
    {"train/mlp_adam", "mlp", "mlp_784-512-512-10", "adam_us_med"},
    {"train/tiny_mlp_step", "mlp_tiny", "mlp_4-16-16-3", "step_us_med"},
    {"train/tiny_mlp_forward", "mlp_tiny", "mlp_4-16-16-3", "nograd_fwd_us_med"},
    {"train/tiny_mlp_gradients", "mlp_tiny", "mlp_4-16-16-3", "fwd_bwd_us_med"},
    {"train/tiny_mlp_adam", "mlp_tiny", "mlp_4-16-16-3", "adam_us_med"},
    {"train/lstm_forward", "lstm", "lstm", "nograd_fwd_ms_med", "T100xB32xH128"},
    {"train/lstm_gradients", "lstm", "lstm", "fwd_bwd_ms_med", "T100xB32xH128"},
    {"train/convnet_forward", "convnet", "convnet", "nograd_fwd_ms_med", "b64"},
    {"train/convnet_gradients", "convnet", "convnet", "fwd_bwd_ms_med", "b64"},
    {"embedding/sparse_gradient", "embedding_sparse", "embedding_sparse", "fwd_bwd_us_med", "1Mx64,b1024"},
    {"embedding/sparse_step", "embedding_sparse", "embedding_sparse", "step_us_med", "1Mx64,b1024"},
    {"embedding/sparse_step_fresh_ids", "embedding_sparse", "embedding_sparse", "step_fresh_ids_us_med",
     "1Mx64,b1024"},
    {"embedding/dense_gradient", "embedding_dense", "embedding_dense", "fwd_bwd_us_med", "1Mx64,b1024"},
    {"embedding/dense_step", "embedding_dense", "embedding_dense", "step_us_med", "1Mx64,b1024"},
    {"memory/fan_out_sum", "fanout", "fanout", "fwd_bwd_ms_med"},
    {"memory/fan_out_sum_peak", "fanout", "fanout", "peak_MB"},
    {"memory/fan_out_add", "fanout_add", "fanout_add", "fwd_bwd_ms_med"},
    {"memory/fan_out_add_peak", "fanout_add", "fanout_add", "peak_MB"},
    {"memory/deep", "deep", "deep500", "fwd_bwd_ms_med"},
    {"memory/deep_forward", "deep", "deep500", "nograd_fwd_ms_med"},
    {"memory/deep_peak", "deep", "deep500", "peak_MB"},
    {"rosenbrock/gradient", "hessian", "grad_rosenbrock", "f64_us_med"},
    {"rosenbrock/hessian", "hessian", "hessian_rosenbrock", "f64_us_med", "",
     "libtorch: a call of grad for each row, since its C++ API has no vmap"},
    {"rosenbrock/hvp", "hessian", "hvp_rosenbrock", "f64_us_med"},
    {"map/damped", "map", "damped", "nograd_fwd_us_med"},
    {"map/damped_by_ops", "map", "damped", "nograd_fwd_us_med"},
    {"map/damped_plain", "map", "damped", "nograd_fwd_us_med"},
    {"map/damped_grad", "map", "damped", "fwd_bwd_us_med"},
    {"map/damped_grad_by_ops", "map", "damped", "fwd_bwd_us_med"},
    {"map/damped_grad_plain", "map", "damped", "fwd_bwd_us_med"},
    {"functions/sum", "functions", "sum", "ns_med"},
    {"functions/prod", "functions", "prod", "ns_med"},
    {"functions/log_sum_exp", "functions", "log_sum_exp", "ns_med"},
    {"functions/matrix_product", "functions", "matrix_product", "ns_med"},
    {"functions/normal_log_pdf", "functions", "normal_log_pdf", "ns_med"},
    {"functions/regression", "functions", "regression", "ns_med"},
};

struct Case {
  std::string program, suite, name, size;
  std::string unit = {};
  std::vector<double> tapedeck = {}, one_thread = {}, torch = {}, tuned = {}, limit = {};

  std::string path() const { return suite + "/" + name + "/" + size; }
  bool higher_is_better() const { return std::ranges::find(kRates, unit) != std::end(kRates); }
  const Peer* peer() const {
    const auto found = std::ranges::find(kPeers, suite + "/" + name, &Peer::name);
    return found == std::end(kPeers) ? nullptr : &*found;
  }
};

std::optional<double> median(std::vector<double> v) {
  if (v.empty()) return {};
  return bench::median(std::move(v));
}

/// The factor by which tapedeck's figure is better than the other.
std::optional<double> ratio(const Case& c, const std::vector<double>& other) {
  const auto ours = median(c.tapedeck), theirs = median(other);
  if (!ours || !theirs) return {};
  return c.higher_is_better() ? *ours / *theirs : *theirs / *ours;
}

std::string output_of(const std::string& command) {
  FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) throw std::runtime_error("bench: cannot run " + command);
  std::string out;
  for (char part[4096]; const std::size_t n = std::fread(part, 1, sizeof part, pipe);)
    out.append(part, n);
  if (pclose(pipe) != 0) throw std::runtime_error("bench: failed: " + command);
  return out;
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, separator);)
    parts.push_back(part);
  return parts;
}

/// The programs in the same folder as this one.
class Programs {
 public:
  Programs(std::filesystem::path folder, int threads) : folder_(std::move(folder)), threads_(threads) {
    if (threads == 1)
      for (const std::string& name : list("limit_bench"))
        limits_.insert(name);
  }
  bool has_torch() const { return exists(folder_ / "torch_bench"); }

  std::vector<Case> cases(const std::set<std::string>& suites) const {
    std::vector<Case> found;
    for (const std::string_view program : kPrograms) {
      for (const std::string& name : list(std::string(program))) {
        const auto parts = split(name, '/');
        if (suites.contains(parts.at(0)))
          found.push_back({std::string(program), parts.at(0), parts.at(1), parts.at(2)});
      }
    }
    return found;
  }

  void measure(Case& c) const {
    c.tapedeck.push_back(run(c.program, threads_, c));
    if (threads_ > 1) c.one_thread.push_back(run(c.program, 1, c));
    if (limits_.contains(c.path())) c.limit.push_back(run("limit_bench", 1, c));
  }
  /// The figures that libtorch's program prints, by "case,size,threads,metric".
  std::map<std::string, double> torch(const std::string& process, bool tuned) const {
    const std::string threads = std::to_string(threads_);
    std::string environment = "OMP_NUM_THREADS=" + threads + " OPENBLAS_NUM_THREADS=" + threads;
    if (tuned)
      environment += std::string(" ATEN_CPU_CAPABILITY=") + widest_vectors() + " LD_PRELOAD=" + kAllocator +
                     " LD_LIBRARY_PATH=" + kBlas;
    std::map<std::string, double> figures;
    for (const std::string& line :
         split(output_of(environment + " " + file("torch_bench") + " " + process + " " + threads), '\n')) {
      const std::size_t comma = line.rfind(',');
      if (comma != std::string::npos) figures[line.substr(0, comma)] = std::stod(line.substr(comma + 1));
    }
    return figures;
  }

 private:
  std::string file(const std::string& program) const { return "'" + (folder_ / program).string() + "'"; }

  /// suite/case/size of all cases of a program, without the suffixes that Google Benchmark adds.
  std::vector<std::string> list(const std::string& program) const {
    std::vector<std::string> names;
    for (const std::string& line : split(output_of(file(program) + " --benchmark_list_tests"), '\n')) {
      const auto parts = split(line, '/');
      names.push_back(parts.at(0) + "/" + parts.at(1) + "/" + parts.at(2));
    }
    return names;
  }

  double run(const std::string& program, int threads, Case& c) const {
    const std::string out =
        output_of("OPENBLAS_NUM_THREADS=1 TAPEDECK_THREADS=" + std::to_string(threads) + " " + file(program) +
                  " --benchmark_filter='^" + c.path() + "(/|$)' --benchmark_format=json" +
                  " --benchmark_min_warmup_time=0.1 --benchmark_min_time=0.02 --benchmark_repetitions=15" +
                  " --benchmark_report_aggregates_only=true 2>/dev/null");
    const json parsed = json::parse(out);
    for (const json& b : parsed.at("benchmarks")) {
      if (b.at("aggregate_name").get<std::string>() != "median") continue;
      for (const std::string unit : {"ns/op", "GB/s", "GFLOP/s", "MB"}) {
        if (!b.contains(unit)) continue;
        c.unit = unit;
        return b.at(unit).get<double>();
      }
      c.unit = b.at("time_unit").get<std::string>();
      return b.at("real_time").get<double>();
    }
    throw std::runtime_error("bench: " + program + " has no median for " + c.path());
  }

  std::filesystem::path folder_;
  int threads_;
  std::set<std::string> limits_;
};

void show_progress(const std::string& text) {
  if (isatty(STDERR_FILENO)) std::cerr << "\r\033[K" << text << std::flush;
}

/// Runs each of libtorch's programs once per round, for all cases for which it prints figures.
class Torch {
 public:
  Torch(const Programs& programs, bool tuned, int threads)
      : programs_(programs), tuned_(tuned), threads_(std::to_string(threads)) {}
  double figure(const Case& c, const Peer& peer) {
    const std::string process(peer.process);
    if (!figures_.contains(process)) figures_[process] = programs_.torch(process, tuned_);
    const std::string size = peer.size.empty() ? c.size : std::string(peer.size);
    return figures_[process].at(std::string(peer.peer_case) + "," + size + "," + threads_ + "," +
                                std::string(peer.metric));
  }

 private:
  const Programs& programs_;
  bool tuned_;
  std::string threads_;
  std::map<std::string, std::map<std::string, double>> figures_;
};

void run_round(const Programs& programs, int threads, std::vector<Case>& cases) {
  Torch torch(programs, false, threads), tuned(programs, true, threads);
  for (Case& c : cases) {
    show_progress(c.path());
    programs.measure(c);
    const Peer* peer = programs.has_torch() ? c.peer() : nullptr;
    if (!peer) continue;
    c.torch.push_back(torch.figure(c, *peer));
    if (can_tune_torch()) c.tuned.push_back(tuned.figure(c, *peer));
  }
  show_progress("");
}

/// `times` is the factor by which tapedeck is better than the preceding figure.
void print_table(const std::vector<Case>& cases, int threads) {
  const auto figure = [](std::optional<double> v, const char* format) {
    char text[32] = "-";
    if (v) std::snprintf(text, sizeof text, format, *v);
    return std::string(text);
  };
  const char* row = "%-34s %10s %-7s %10s %10s %7s %10s %7s %9s%s\n";
  std::printf(row, "case", "size", "unit", "tapedeck", "libtorch", "times", "tuned", "times",
              threads > 1 ? "1 thread" : "of limit", "");
  for (const Case& c : cases) {
    const std::string note(c.torch.empty() ? "" : c.peer()->note);
    std::printf(row, (c.suite + "/" + c.name).c_str(), c.size.c_str(), c.unit.c_str(),
                figure(median(c.tapedeck), "%.4g").c_str(), figure(median(c.torch), "%.4g").c_str(),
                figure(ratio(c, c.torch), "%.2f").c_str(), figure(median(c.tuned), "%.4g").c_str(),
                figure(ratio(c, c.tuned), "%.2f").c_str(),
                figure(ratio(c, threads > 1 ? c.one_thread : c.limit), "%.2f").c_str(),
                note.empty() ? "" : ("  " + note).c_str());
  }
}

json to_json(const std::vector<Case>& cases, int threads) {
  const auto value = [](std::optional<double> v) { return v ? json(*v) : json(); };
  json list = json::array();
  for (const Case& c : cases)
    list.push_back({{"suite", c.suite},
                    {"case", c.name},
                    {"size", c.size},
                    {"threads", threads},
                    {"unit", c.unit},
                    {"better", c.higher_is_better() ? "higher" : "lower"},
                    {"tapedeck", value(median(c.tapedeck))},
                    {"one_thread", value(median(c.one_thread))},
                    {"peer", value(median(c.torch))},
                    {"peer_tuned", value(median(c.tuned))},
                    {"limit", value(median(c.limit))},
                    {"speedup", value(ratio(c, c.torch))},
                    {"speedup_tuned", value(ratio(c, c.tuned))},
                    {"of_one_thread", value(ratio(c, c.one_thread))},
                    {"of_limit", value(ratio(c, c.limit))}});
  return list;
}

/// Pins this process and all its children to the last cores that they may use.
void pin(int cores) {
  cpu_set_t allowed, chosen;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  CPU_ZERO(&chosen);
  for (int core = CPU_SETSIZE; core-- > 0 && CPU_COUNT(&chosen) < cores;)
    if (CPU_ISSET(core, &allowed)) CPU_SET(core, &chosen);
  sched_setaffinity(0, sizeof chosen, &chosen);
}

struct Options {
  std::set<std::string> suites;
  std::string json_file;
  int rounds = 3, threads = 1;
};

/// Programs that compare and print by themselves, and that this process then executes instead of itself.
constexpr std::string_view kByThemselves[] = {"ops",    "derivatives", "layers",  "optimizers",
                                              "halves", "function",    "scaling", "gradbench"};
constexpr std::string_view kWithoutTorch[] = {"halves", "function", "scaling"};
// Both libraries get the same allocator and BLAS; tapedeck's speed does not depend on them.
void tune_torch() {
  if (!can_tune_torch()) {
    std::cerr << kNotTuned;
    return;
  }
  setenv("ATEN_CPU_CAPABILITY", widest_vectors(), 1);
  setenv("LD_PRELOAD", kAllocator, 1);
  setenv("LD_LIBRARY_PATH", kBlas, 1);
}
[[noreturn]] void run_by_itself(std::vector<std::string> words) {
  const std::string program =
      (std::filesystem::read_symlink("/proc/self/exe").parent_path() / (words[0] + "_bench")).string();
  for (const char* name : {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"})
    setenv(name, "1", 1);
  if (std::ranges::find(kWithoutTorch, words[0]) == std::end(kWithoutTorch)) tune_torch();
  std::vector<char*> arguments;
  for (std::string& word : words)
    arguments.push_back(word.data());   // the first is in the place of the program's name
  arguments.push_back(nullptr);
  execv(program.c_str(), arguments.data());
  throw std::runtime_error("bench: cannot run " + program + ", which needs " +
                           (words[0] == "scaling" ? "libopenmpi-dev" : "libtorch-dev"));
}

/// Returns nothing if the words are not valid.
std::optional<Options> parse(std::vector<std::string> words) {
  Options options;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool takes_value = words[i] == "--json" || words[i] == "--rounds" || words[i] == "--threads";
    if (takes_value && i + 1 == words.size()) return {};
    if (words[i] == "--json")
      options.json_file = words[++i];
    else if (words[i] == "--rounds")
      options.rounds = std::atoi(words[++i].c_str());
    else if (words[i] == "--threads")
      options.threads = std::atoi(words[++i].c_str());
    else if (std::ranges::find(kSuites, words[i]) != std::end(kSuites))
      options.suites.insert(words[i]);
    else
      return {};
  }
  if (options.suites.empty()) options.suites.insert(std::begin(kSuites), std::end(kSuites));
  if (options.rounds < 1 || options.threads < 1) return {};
  return options;
}

}   // namespace

int main(int argc, char** argv) try {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (std::ranges::find(words, "--help") != words.end()) return std::cout << kUsage, 0;
  if (!words.empty() && std::ranges::find(kByThemselves, words[0]) != std::end(kByThemselves)) {
    if (words[0] != "scaling") pin(1);   // replicas use all cores
    run_by_itself(words);
  }
  const auto options = parse(words);
  if (!options) return std::cerr << kUsage, 2;

  std::ofstream json_file;
  if (!options->json_file.empty()) {
    json_file.open(options->json_file);
    if (!json_file) throw std::runtime_error("bench: cannot write " + options->json_file);
  }
  const int threads = options->threads;
  pin(threads);
  const Programs programs(std::filesystem::read_symlink("/proc/self/exe").parent_path(), threads);
  if (!programs.has_torch())
    std::cerr << "bench: libtorch-dev is not installed, so there is nothing to compare with\n";
  else if (!can_tune_torch())
    std::cerr << kNotTuned;
  std::vector<Case> cases = programs.cases(options->suites);
  for (int round = 0; round < options->rounds; ++round)
    run_round(programs, threads, cases);

  print_table(cases, threads);
  if (json_file.is_open()) json_file << to_json(cases, threads).dump(2) << '\n';
} catch (const std::exception& e) {
  std::cerr << e.what() << '\n';
  return 1;
}
