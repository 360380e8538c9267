// Times competitors alternately, and prints a table.
#include "report.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>

#include "median.h"

namespace bench {
namespace {

using Clock = std::chrono::steady_clock;

std::vector<std::string> chosen;

double seconds_of(const Run& f, int repeats) {
  const auto begin = Clock::now();
  for (int i = 0; i < repeats; ++i)
    f();
  return std::chrono::duration<double>(Clock::now() - begin).count() / repeats;
}

}   // namespace

Race::Race(std::span<const Run> competitors, int rounds) : times_(competitors.size()) {
  constexpr double enough = 1e-3;   // seconds
  std::vector<int> repeats;
  for (const Run& f : competitors) {
    f(), f();
    int n = 1;
    while (seconds_of(f, n) * n < enough)
      n *= 2;
    repeats.push_back(n);
  }
  for (int round = 0; round < rounds; ++round)
    for (std::size_t i = 0; i < times_.size(); ++i) {
      competitors[i]();
      times_[i].push_back(seconds_of(competitors[i], repeats[i]));
    }
}
double Race::seconds(std::size_t competitor) const { return median(times_[competitor]); }
double Race::ratio(std::size_t a, std::size_t b) const {
  std::vector<double> ratios;
  for (std::size_t round = 0; round < times_[a].size(); ++round)
    ratios.push_back(times_[a][round] / times_[b][round]);
  return median(std::move(ratios));
}

double Race::difference(std::size_t a, std::size_t b) const {
  std::vector<double> differences;
  for (std::size_t round = 0; round < times_[a].size(); ++round)
    differences.push_back(times_[a][round] - times_[b][round]);
  return median(std::move(differences));
}

void choose(std::span<char* const> words) { chosen.assign(words.begin(), words.end()); }
bool is_chosen(const std::string& name) {
  return chosen.empty() || std::any_of(chosen.begin(), chosen.end(), [&](const std::string& word) {
           return name.find(word) != std::string::npos;
         });
}

void report(const std::string& name, double figure, const std::string& unit, const Goal& goal,
            const std::string& remark) {
  char wanted[40] = "";
  if (std::isfinite(goal.at_least)) std::snprintf(wanted, sizeof wanted, "at least %.3g", goal.at_least);
  if (std::isfinite(goal.at_most)) std::snprintf(wanted, sizeof wanted, "at most %.3g", goal.at_most);
  const char* verdict = !*wanted ? "" : figure >= goal.at_least && figure <= goal.at_most ? "" : "missed";
  std::printf("%-44s %9.3g %-20s %-15s %-6s  %s\n", name.c_str(), figure, unit.c_str(), wanted, verdict,
              remark.c_str());
  std::fflush(stdout);
}

std::string beside_eager(const Race& race, std::size_t replay, std::size_t eager) {
  char text[80];
  std::snprintf(text, sizeof text, "%.4g us, %.2f times as fast as eager", race.seconds(replay) * 1e6,
                race.ratio(eager, replay));
  return text;
}

td::Tensor numbers(const td::Shape& shape, std::uint64_t seed, double low, double high, td::DType dtype) {
  return td::random::uniform(shape, {seed}, low, high, dtype);
}

}   // namespace bench
