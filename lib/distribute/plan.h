// Plan: what a rank is about to do. Ranks exchange their plans before a collective operation, and detect
// where they differ.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace tapedeck {

/// The kind of a gradient. The maximum kind over ranks selects the reduction.
enum Kind : char { kNone, kSlices, kDense };

/// The plan of one rank or, merged, of several: what they agree on, or the error if they differ.
struct Plan {
  std::string name = {};
  std::string options = {};                 // of the ranks; the same on all ranks
  std::vector<std::string> subjects = {};   // what the operation works on; the same on all ranks
  std::string kinds = {}, min_kinds = {};   // Kind of each subject; maximum and minimum over ranks
  std::string error = {};
  std::vector<std::int64_t> order = {};   // the order of gradients' arrival on this rank; merged: on rank 0
  std::int64_t prediction = 0;   // number of the prediction for early sends; 0: none, or ranks differ
  std::int64_t sent = 0;         // whether any rank has sent gradients early

  /// Serialized.
  std::string bytes() const;
  static Plan of(std::string bytes);

  /// Merges the plan of rank `from` into this one, of rank `rank`.
  void merge(const Plan& other, int rank, int from);
};

}   // namespace tapedeck
