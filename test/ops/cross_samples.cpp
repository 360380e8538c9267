// Samples of the ops in lib/ops/linalg/cross.cpp.
#include "ops/sample_inputs.h"
#include "ops/samples.h"
#include "tapedeck/ops.h"

namespace tapedeck::test {
namespace {

using namespace samples;

constexpr OpSamples cross_table[] = {
    {.op = "cross",
     .oracle = "np.cross(a, b)",
     .samples =
         [] {
           return std::vector<Sample>{{.inputs = {uniform({2, 3}, -2, 2), uniform({3}, -2, 2, 1)}},
                                      {.inputs = {uniform({2, 1, 3}, -2, 2), uniform({5, 3}, -2, 2, 1)}},
                                      {.inputs = {zeros({0, 3}, DType::f64), zeros({0, 3}, DType::f64)}},
                                      {.inputs = {f64({{-1.5, 0.5, 2}, {0.25, 3, -2}}), f64({2, -0.5, 4})},
                                       .expected = {f64({{3, 10, -0.25}, {11, -5, -6.125}})}}};
         }},
};

}   // namespace

std::span<const OpSamples> cross_samples() { return cross_table; }

}   // namespace tapedeck::test
