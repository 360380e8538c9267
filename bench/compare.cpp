// Runs every case of the benchmark programs, the limits and libtorch turn by turn on one core, a process each, and joins
// them by name. In: suites. Out: a table of medians, and with --json a file of them.
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

using json = nlohmann::ordered_json;   // keeps the keys as they are written here

namespace {

constexpr std::string_view kUsage = R"(usage: scripts/bench [suite...] [--json FILE] [--rounds N]
  suites: overhead elementwise broadcast reduce matmul train (all by default)
  --json FILE  write the figures to FILE, too
  --rounds N   how often each program runs; the figures are medians over the rounds (3)
)";

constexpr std::string_view kSuites[] = {"overhead", "elementwise", "broadcast", "reduce", "matmul", "train"};
constexpr std::string_view kPrograms[] = {"tape_bench", "kernel_bench", "train_bench"};
constexpr std::string_view kRates[] = {"GB/s", "GFLOP/s"};

/// Where libtorch's figure for one of our cases is: the process to run, and the first and fourth field of its line.
struct Peer {
  std::string_view name, process, peer_case, metric;
  std::string_view size = {};   // where it is written in another way than ours
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
    {"train/mlp_step", "mlp", "mlp_784-512-512-10", "step_us_med"},
    {"train/mlp_forward", "mlp", "mlp_784-512-512-10", "nograd_fwd_us_med"},
    {"train/mlp_gradients", "mlp", "mlp_784-512-512-10", "fwd_bwd_us_med"},
    {"train/mlp_adam", "mlp", "mlp_784-512-512-10", "adam_us_med"},
    {"train/tiny_mlp_step", "mlp_tiny", "mlp_4-16-16-3", "step_us_med"},
    {"train/tiny_mlp_forward", "mlp_tiny", "mlp_4-16-16-3", "nograd_fwd_us_med"},
    {"train/tiny_mlp_gradients", "mlp_tiny", "mlp_4-16-16-3", "fwd_bwd_us_med"},
    {"train/tiny_mlp_adam", "mlp_tiny", "mlp_4-16-16-3", "adam_us_med"},
};

struct Case {
  std::string program, suite, name, size;
  std::string unit = {};
  std::vector<double> tapedeck = {}, peer = {}, limit = {};

  std::string path() const { return suite + "/" + name + "/" + size; }
  bool higher_is_better() const { return std::ranges::find(kRates, unit) != std::end(kRates); }
  const Peer* torch() const {
    const auto found = std::ranges::find(kPeers, suite + "/" + name, &Peer::name);
    return found == std::end(kPeers) ? nullptr : &*found;
  }
};

std::optional<double> median(std::vector<double> v) {
  if (v.empty()) return {};
  std::ranges::sort(v);
  return v[v.size() / 2];
}

/// How many times better than the other figure.
std::optional<double> ratio(const Case& c, const std::vector<double>& other) {
  const auto ours = median(c.tapedeck), theirs = median(other);
  if (!ours || !theirs) return {};
  return c.higher_is_better() ? *ours / *theirs : *theirs / *ours;
}

std::string output_of(const std::string& command) {
  FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) throw std::runtime_error("bench: cannot run " + command);
  std::string out;
  for (char part[4096]; const std::size_t n = std::fread(part, 1, sizeof part, pipe);) out.append(part, n);
  if (pclose(pipe) != 0) throw std::runtime_error("bench: failed: " + command);
  return out;
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, separator);) parts.push_back(part);
  return parts;
}

/// The programs beside this one.
class Programs {
 public:
  explicit Programs(std::filesystem::path folder) : folder_(std::move(folder)), has_torch_(exists(folder_ / "torch_bench")) {
    for (const std::string& name : list("limit_bench")) limits_.insert(name);
  }
  bool has_torch() const { return has_torch_; }

  std::vector<Case> cases(const std::set<std::string>& suites) const {
    std::vector<Case> found;
    for (const std::string_view program : kPrograms) {
      for (const std::string& name : list(std::string(program))) {
        const auto parts = split(name, '/');
        if (suites.contains(parts.at(0))) found.push_back({std::string(program), parts.at(0), parts.at(1), parts.at(2)});
      }
    }
    return found;
  }

  void measure(Case& c) const {
    c.tapedeck.push_back(run(c.program, c));
    if (limits_.contains(c.path())) c.limit.push_back(run("limit_bench", c));
  }
  /// Lines of libtorch's program by "case,size,threads,metric".
  std::map<std::string, double> torch(const std::string& process) const {
    std::map<std::string, double> figures;
    for (const std::string& line : split(output_of(file("torch_bench") + " " + process + " 1"), '\n')) {
      const std::size_t comma = line.rfind(',');
      if (comma != std::string::npos) figures[line.substr(0, comma)] = std::stod(line.substr(comma + 1));
    }
    return figures;
  }

 private:
  std::string file(const std::string& program) const { return "'" + (folder_ / program).string() + "'"; }

  /// suite/case/size of all cases of a program; what Google Benchmark adds behind these is dropped.
  std::vector<std::string> list(const std::string& program) const {
    std::vector<std::string> names;
    for (const std::string& line : split(output_of(file(program) + " --benchmark_list_tests"), '\n')) {
      const auto parts = split(line, '/');
      names.push_back(parts.at(0) + "/" + parts.at(1) + "/" + parts.at(2));
    }
    return names;
  }

  double run(const std::string& program, Case& c) const {
    const std::string out = output_of(file(program) + " --benchmark_filter='^" + c.path() + "(/|$)' --benchmark_format=json" +
                                      " --benchmark_min_warmup_time=0.1 --benchmark_min_time=0.02 --benchmark_repetitions=15" +
                                      " --benchmark_report_aggregates_only=true 2>/dev/null");
    const json parsed = json::parse(out);
    for (const json& b : parsed.at("benchmarks")) {
      if (b.at("aggregate_name").get<std::string>() != "median") continue;
      for (const std::string unit : {"ns/op", "GB/s", "GFLOP/s"}) {
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
  bool has_torch_;
  std::set<std::string> limits_;
};

void show_progress(const std::string& text) {
  if (isatty(STDERR_FILENO)) std::cerr << "\r\033[K" << text << std::flush;
}

void run_round(const Programs& programs, std::vector<Case>& cases) {
  std::map<std::string, std::map<std::string, double>> torch;
  for (Case& c : cases) {
    show_progress(c.path());
    programs.measure(c);
    const Peer* peer = programs.has_torch() ? c.torch() : nullptr;
    if (!peer) continue;
    const std::string process(peer->process);
    if (!torch.contains(process)) torch[process] = programs.torch(process);
    const std::string size = peer->size.empty() ? c.size : std::string(peer->size);
    c.peer.push_back(torch[process].at(std::string(peer->peer_case) + "," + size + ",1," + std::string(peer->metric)));
  }
  show_progress("");
}

void print_table(const std::vector<Case>& cases) {
  const auto figure = [](std::optional<double> v, const char* format) {
    char text[32] = "-";
    if (v) std::snprintf(text, sizeof text, format, *v);
    return std::string(text);
  };
  const char* row = "%-30s %10s %-7s %10s %10s %9s %9s\n";
  std::printf(row, "case", "size", "unit", "tapedeck", "libtorch", "speed-up", "of limit");
  for (const Case& c : cases)
    std::printf(row, (c.suite + "/" + c.name).c_str(), c.size.c_str(), c.unit.c_str(), figure(median(c.tapedeck), "%.4g").c_str(),
                figure(median(c.peer), "%.4g").c_str(), figure(ratio(c, c.peer), "%.2fx").c_str(), figure(ratio(c, c.limit), "%.2f").c_str());
}

json to_json(const std::vector<Case>& cases) {
  const auto value = [](std::optional<double> v) { return v ? json(*v) : json(); };
  json list = json::array();
  for (const Case& c : cases)
    list.push_back({{"suite", c.suite}, {"case", c.name}, {"size", c.size}, {"threads", 1}, {"unit", c.unit},
                    {"better", c.higher_is_better() ? "higher" : "lower"}, {"tapedeck", value(median(c.tapedeck))},
                    {"peer", value(median(c.peer))}, {"limit", value(median(c.limit))}, {"speedup", value(ratio(c, c.peer))},
                    {"of_limit", value(ratio(c, c.limit))}});
  return list;
}

/// This process and all that it starts stay on the last core they may use, with one thread.
void pin() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) {
    int last = CPU_SETSIZE - 1;
    while (last > 0 && !CPU_ISSET(last, &allowed)) --last;
    CPU_ZERO(&allowed);
    CPU_SET(last, &allowed);
    sched_setaffinity(0, sizeof allowed, &allowed);
  }
  for (const char* name : {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"}) setenv(name, "1", 1);
}

struct Options {
  std::set<std::string> suites;
  std::string json_file;
  int rounds = 3;
};

/// Nothing where the words make no sense.
std::optional<Options> parse(std::vector<std::string> words) {
  Options options;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool takes_value = words[i] == "--json" || words[i] == "--rounds";
    if (takes_value && i + 1 == words.size()) return {};
    if (words[i] == "--json") options.json_file = words[++i];
    else if (words[i] == "--rounds") options.rounds = std::atoi(words[++i].c_str());
    else if (std::ranges::find(kSuites, words[i]) != std::end(kSuites)) options.suites.insert(words[i]);
    else return {};
  }
  if (options.suites.empty()) options.suites.insert(std::begin(kSuites), std::end(kSuites));
  if (options.rounds < 1) return {};
  return options;
}

}  // namespace

int main(int argc, char** argv) try {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (std::ranges::find(words, "--help") != words.end()) return std::cout << kUsage, 0;
  const auto options = parse(words);
  if (!options) return std::cerr << kUsage, 2;

  std::ofstream json_file;
  if (!options->json_file.empty()) {
    json_file.open(options->json_file);
    if (!json_file) throw std::runtime_error("bench: cannot write " + options->json_file);
  }
  pin();
  const Programs programs(std::filesystem::read_symlink("/proc/self/exe").parent_path());
  if (!programs.has_torch()) std::cerr << "bench: libtorch-dev is not installed, so there is nothing to compare with\n";
  std::vector<Case> cases = programs.cases(options->suites);
  for (int round = 0; round < options->rounds; ++round) run_round(programs, cases);

  print_table(cases);
  if (json_file.is_open()) json_file << to_json(cases).dump(2) << '\n';
} catch (const std::exception& e) {
  std::cerr << e.what() << '\n';
  return 1;
}
