// Plan: what a rank is about to do, as the ranks tell each other before they do it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace tapedeck {

/// Of a gradient; of those of several ranks the highest one says how their sum is made.
enum Kind : char { kNone, kSlices, kDense };

/// Of one rank; of several, what they agree on, or why they do not.
struct Plan {
  std::string name = {};
  std::vector<std::string> subjects = {};   // the same on all ranks
  std::string kinds = {}, min_kinds = {};   // of each; the highest and the lowest of all ranks
  std::string error = {};
  std::vector<std::int64_t> order = {};   // in which gradients came on this rank; of several, on rank 0
  std::int64_t prediction = 0;   // by which gradients are sent already; 0: none, or not the same on all ranks
  std::int64_t sent = 0;         // whether some rank has sent any

  /// As a message.
  std::string bytes() const;
  static Plan of(std::string bytes);

  /// With that of another rank: this one is of `rank`, the other one of `from`.
  void merge(const Plan& other, int rank, int from);
};

}   // namespace tapedeck
