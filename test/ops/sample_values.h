// The samples of an op with the expected outputs that test/data/sample_values.json has for them.
#pragma once
#include "ops/samples.h"

namespace tapedeck::test {

/// As samples_of, but a sample without expected outputs gets those of the file, if it is there, and a sample
/// without a floor gets the op's.
std::vector<Sample> complete_samples_of(const Op& op);

}   // namespace tapedeck::test
