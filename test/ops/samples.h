// The samples of the library's ops: what they are tested with, and what the tests must know about each.
// F_samples.cpp has those of the family F, lib/ops/<group>/F.cpp.
#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "tapedeck/gradcheck.h"
#include "tapedeck/op.h"

namespace tapedeck::test {

/// What an op is tested with. Where a field says why, the test that it speaks of leaves the op out.
struct OpSamples {
  std::string_view op;
  bool takes_complex = false;   // in place of f64
  std::string_view real_differs =
      {};              // why complex inputs on the real line give something else than real ones
  unsigned held = 0;   // bit i: no derivative in input i, though there is one; it must be none
  std::string_view no_differences = {};   // why the derivative is not that of differences
  bool throws_on_nan = false;
  std::string_view by_hand =
      {};   // why no expected output comes from a NumPy, SciPy, mpmath or torch expression
  std::vector<Sample> (*samples)();
};

struct SampleFamily {
  std::string_view name;
  std::span<const OpSamples> ops;
};
/// In the order of op_families().
std::span<const SampleFamily> sample_families();

/// Throws std::out_of_range, with the op's name, where there are none.
const OpSamples& entry_of(const Op& op);
inline std::vector<Sample> samples_of(const Op& op) { return entry_of(op).samples(); }

}   // namespace tapedeck::test
