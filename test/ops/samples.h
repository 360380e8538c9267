// The samples of the library's ops, and what the tests must know about each op. F_samples.cpp has the samples
// of the family F, whose table is in lib/ops/<group>/F.cpp.
#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "tapedeck/gradcheck.h"
#include "tapedeck/op.h"

namespace tapedeck::test {

/// The test data of one op. If a field gives a reason, the test that it belongs to leaves the op out.
struct OpSamples {
  std::string_view op;
  bool takes_complex = false;   // the op also takes c128 where the samples have f64
  std::string_view real_differs =
      {};   // why complex inputs with imaginary part 0 give other results than real ones
  unsigned held =
      0;   // bit i: input i is treated as constant although a derivative exists; its gradient must be none
  std::string_view no_differences = {};   // why the derivative does not agree with differences
  bool throws_on_nan = false;
  /// The oracle by which scripts/oracle computes the outputs, for the samples without an oracle of their own:
  /// an expression of the inputs and of `attrs`, the attributes as sample_dump prints them.
  std::string_view oracle = {};
  std::string_view no_oracle = {};   // why no other program computes the outputs
  double floor = 0;                  // for the samples whose floor is 0
  std::vector<Sample> (*samples)();
};

struct SampleFamily {
  std::string_view name;
  std::span<const OpSamples> ops;
};
/// In the order of ops::families().
std::span<const SampleFamily> sample_families();

/// Throws std::out_of_range, with the op's name, if the op has no samples.
const OpSamples& entry_of(const Op& op);
inline std::vector<Sample> samples_of(const Op& op) { return entry_of(op).samples(); }

}   // namespace tapedeck::test
