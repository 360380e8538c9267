// Time of a step with many replicas: networks of 10⁴ to 10⁷ parameters, with 32 rows per replica, as threads
// and as MPI ranks, alternately, each in its own process or job. Prints tables of medians, as ratios.
// scaling_bench [ROUNDS]: 5 rounds by default. The program starts itself: scaling_bench threads N, and mpirun
// -np N scaling_bench ranks.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "median.h"
#include "tapedeck/distribute.h"
#include "tapedeck/tapedeck.h"

namespace td = tapedeck;

namespace {

constexpr std::int64_t kRows = 32, kLayers = 4;
struct Size {
  const char* name;
  std::int64_t width;
  int repetitions;   // of measurements in a process; width: of the layers, all square
};
constexpr Size kSizes[] = {{"10⁴", 50, 100}, {"10⁵", 158, 50}, {"10⁶", 500, 15}, {"10⁷", 1581, 5}};

class Network {
 public:
  explicit Network(std::int64_t width) {
    for (std::uint64_t i = 0; i < kLayers; ++i)
      weights_.emplace_back(td::random::normal({width, width}, {.seed = i}) /
                            std::sqrt(static_cast<double>(width)));
  }
  td::Loss loss(const td::Tensor& x) const {
    return [this, x] {
      td::Tensor y = x;
      for (const td::Variable& w : weights_)
        y = td::tanh(td::matmul(y, w));
      return td::mean(td::square(y - x));
    };
  }

 private:
  std::vector<td::Variable> weights_;
};

// own: forward and backward. together: apply_gradients on all replicas. update: apply_gradients of one
// replica by itself. whole: minimize. copy: memcpy of as many bytes as the gradients have. number: the sum of
// a number over all replicas.
enum Part { own, together, update, whole, copy, number, kParts };
using Figures = std::array<double, kParts>;   // medians, in seconds

/// Returns the figures of the first replica, the root of the tree. Each part begins when all replicas have
/// reached it.
Figures measured(const Size& size, const std::function<void(const std::function<void(td::Replica)>&)>& run) {
  const Network shared(size.width);
  const td::Tensor one = td::tensor(1.0f);
  td::Adam of_all({.learning_rate = 1e-6});
  Figures result = {};
  run([&](td::Replica replica) {
    const Network mine(size.width);
    td::Adam of_one({.learning_rate = 1e-6});
    const td::Tensor x =
        td::random::normal({kRows, size.width}, {.seed = 10 + static_cast<std::uint64_t>(replica.index)});
    const td::Loss loss = shared.loss(x), my_loss = mine.loss(x);
    const std::size_t bytes = static_cast<std::size_t>(kLayers * size.width * size.width) * sizeof(float);
    const auto from = std::make_unique<char[]>(bytes), to = std::make_unique<char[]>(bytes);
    std::vector<td::GradientAndVariable> gradients, my_gradients;

    std::array<std::vector<double>, kParts> times;
    const auto time = [&](Part what, const std::function<void()>& f) {
      td::sum_over_replicas(one);
      const auto start = std::chrono::steady_clock::now();
      f();
      times[what].push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    };
    for (int i = 0; i < size.repetitions + 2; ++i) {
      if (i == 2) times = {};   // discards the warm-up
      time(own, [&] { gradients = td::Optimizer::compute_gradients(loss); });
      time(together, [&] { of_all.apply_gradients(gradients); });
      gradients.clear();
      {
        const td::SkipAggregation alone;
        my_gradients = td::Optimizer::compute_gradients(my_loss);
      }
      time(update, [&] {
        const td::SkipAggregation alone;
        of_one.apply_gradients(my_gradients);
      });
      my_gradients.clear();
      time(whole, [&] { of_all.minimize(loss); });
      time(copy, [&] { std::memcpy(to.get(), from.get(), bytes); });
      time(number, [&] { td::sum_over_replicas(one); });
    }
    if (replica.index == 0)
      for (std::size_t what = 0; what < kParts; ++what)
        result[what] = bench::median(times[what]);
  });
  return result;
}

/// Measures and, if `speaks`, prints a line for each size, for the process that started this one.
void measure(const std::function<void(const std::function<void(td::Replica)>&)>& run, bool speaks) {
  td::set_num_threads(1);
  for (const Size& size : kSizes) {
    const Figures f = measured(size, run);
    if (!speaks) continue;
    for (const double seconds : f)
      std::printf("%.9f ", seconds);
    std::printf("\n");
  }
}

// The code of the process that starts the others.

struct Way {
  const char* name;
  int replicas;
  bool ranks;
};
constexpr Way kWays[] = {{"1 rank", 1, true},
                         {"2 ranks", 2, true},
                         {"4 ranks", 4, true},
                         {"2 threads", 2, false},
                         {"4 threads", 4, false}};

std::vector<Figures> run(const Way& way) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string(),
                    n = std::to_string(way.replicas);
  const std::string command =
      way.ranks ? "mpirun --oversubscribe --bind-to none -np " + n + " '" + self + "' ranks </dev/null"
                : "'" + self + "' threads " + n;
  const std::unique_ptr<FILE, int (*)(FILE*)> out(popen(command.c_str(), "r"), pclose);
  std::vector<Figures> figures(std::size(kSizes));
  for (Figures& f : figures)
    for (double& seconds : f)
      if (!out || std::fscanf(out.get(), "%lf", &seconds) != 1)
        throw std::runtime_error("scaling_bench: fails: " + command);
  return figures;
}

// Prints times as multiples of a step of one rank, rows as multiples of its rows; the exchange also as a
// multiple of a copy of the gradients by one rank.
void print(const std::vector<std::vector<Figures>>& figures) {
  std::printf(
      "| parameters | replicas | own | exchange | update | step | rows a second | exchange in copies "
      "|\n|---|---|---|---|---|---|---|---|\n");
  for (std::size_t s = 0; s < std::size(kSizes); ++s)
    for (std::size_t w = 0; w < std::size(kWays); ++w) {
      const Figures &f = figures[w][s], &one = figures[0][s];
      const double exchange = f[together] - f[update];
      std::printf("| %s | %s | %.2f | %.2f | %.2f | %.2f | %.2f | %.1f |\n", kSizes[s].name, kWays[w].name,
                  f[own] / one[whole], exchange / one[whole], f[update] / one[whole], f[whole] / one[whole],
                  kWays[w].replicas * one[whole] / f[whole], exchange / one[copy]);
    }
  std::printf("\nThe sum of a number, relative to the smallest step of one rank:");
  for (std::size_t w = 0; w < std::size(kWays); ++w)
    std::printf("%s %s %.2f", w ? "," : "", kWays[w].name, figures[w][0][number] / figures[0][0][whole]);
  std::printf("\n");
}

}   // namespace

int main(int argc, char** argv) try {
  const std::string mode = argc > 1 ? argv[1] : "5";
  if (mode == "ranks") {
    const td::Ranks ranks;
    measure([&](const auto& f) { ranks.run(f); }, ranks.replica().index == 0);
    return 0;
  }
  if (mode == "threads" && argc > 2) {
    const td::Replicas threads(std::atoi(argv[2]));
    measure([&](const auto& f) { threads.run(f); }, true);
    return 0;
  }
  for (const char* name : {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "OMPI_ALLOW_RUN_AS_ROOT",
                           "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"})
    setenv(name, "1", 1);
  std::vector<std::vector<std::vector<Figures>>> rounds(std::size(kWays));   // by Way, round and size
  for (int r = 0; r < std::max(std::atoi(mode.c_str()), 1); ++r)
    for (std::size_t w = 0; w < std::size(kWays); ++w)
      rounds[w].push_back(run(kWays[w]));

  std::vector<std::vector<Figures>> medians(std::size(kWays), std::vector<Figures>(std::size(kSizes)));
  for (std::size_t w = 0; w < std::size(kWays); ++w)
    for (std::size_t s = 0; s < std::size(kSizes); ++s)
      for (std::size_t what = 0; what < kParts; ++what) {
        std::vector<double> all;
        for (const auto& round : rounds[w])
          all.push_back(round[s][what]);
        medians[w][s][what] = bench::median(all);
      }
  print(medians);
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
