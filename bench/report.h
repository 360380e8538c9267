// Shared by the benchmarks of compiled functions: races, which time competitors, and the lines of the report.
#pragma once
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "tapedeck/compile.h"
#include "tapedeck/tapedeck.h"

namespace bench {

namespace td = tapedeck;
using Run = std::function<void()>;

/// Times of competitors that ran alternately. Before each turn a competitor runs once unmeasured, since the
/// others leave their data in the caches and, where they free many blocks, work for the next allocation.
class Race {
 public:
  explicit Race(std::span<const Run> competitors, int rounds = 15);

  /// Median seconds of one run.
  double seconds(std::size_t competitor) const;
  /// Median, over the rounds, of the time of `a` divided by the time of `b`.
  double ratio(std::size_t a, std::size_t b) const;
  /// Median, over the rounds, of the seconds of `a` less those of `b`.
  double difference(std::size_t a, std::size_t b) const;

 private:
  std::vector<std::vector<double>> times_;
};

/// The range in which a figure should be.
struct Goal {
  double at_least = -std::numeric_limits<double>::infinity(),
         at_most = std::numeric_limits<double>::infinity();
};

/// Chooses the cases whose names contain one of the words of the command line; all if no word is given.
void choose(std::span<char* const> words);
bool is_chosen(const std::string& name);

/// Prints a line: the case, a figure, its unit, the goal, and whether it is reached.
void report(const std::string& name, double figure, const std::string& unit, const Goal& goal,
            const std::string& remark = "");

/// A replay compared with the function itself: "8.2 us, 3.1 times as fast as eager".
std::string beside_eager(const Race& race, std::size_t replay, std::size_t eager);

/// Random numbers, uniform in [low, high).
td::Tensor numbers(const td::Shape& shape, std::uint64_t seed, double low = 0.5, double high = 1.5,
                   td::DType dtype = td::DType::f32);

}   // namespace bench
